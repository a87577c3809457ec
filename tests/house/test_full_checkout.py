"""A small git checkout with scripts/test-full, for the tests of it: the jobs' commands are stand-ins."""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Checkout:
    def __init__(self, root, program, folder):
        self.tree, self.program = folder, program
        (folder / "scripts").mkdir()
        for path in root.glob("scripts/test[-_]full*"):
            if path.is_file():
                shutil.copy(path, folder / "scripts" / path.name)
        (folder / ".gitignore").write_text("/.setup/\n/.venv/\n/runs\n/asked\n/build*\n")
        (folder / ".venv/bin").mkdir(parents=True)
        (folder / ".venv/bin/python").symlink_to(sys.executable)
        self.ctest([])
        self.script("setup", "exit 0")
        (folder / "docs").mkdir()
        (folder / "docs/measurements.md").write_text("nothing yet\n")
        self.script("build", "exit 0")
        self.git("init", "-q")
        self.commit("first")

    # Every stand-in counts its runs.
    def script(self, name, does):
        path = self.tree / "scripts" / name
        path.write_text(f"#!/bin/sh\necho {name} >>runs\n{does}\n")
        path.chmod(0o755)

    # The real ctest, of tests that run what is told for each; the runs that it was asked for are counted.
    def ctest(self, names, serial=(), processors=2, **does):
        build, lines = self.tree / "build", []
        build.mkdir(exist_ok=True)
        for name in names:
            (build / f"{name}.sh").write_text(f"cd {self.tree}\nname={name}\necho $name >>runs\n{does.get(name, '')}\n")
            lines += [f'add_test({name} "/bin/sh" "{build}/{name}.sh")',
                      f"set_tests_properties({name} PROPERTIES LABELS full SKIP_RETURN_CODE 77 PROCESSORS {processors}"
                      f" RUN_SERIAL {'TRUE' if name in serial else 'FALSE'} ENVIRONMENT WHO={name})"]
        (build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
        path = self.tree / ".venv/bin/ctest"
        path.write_text(f"""#!/bin/sh
case "$*" in *--tests-from-file*) echo >>asked;; esac
exec {self.program} "$@"
""")
        path.chmod(0o755)

    # Nothing of a repository that this is run from, nor of its owner's git.
    def environment(self):
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return dict(own, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")

    def git(self, *arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run(["git", *identity, *arguments], cwd=self.tree, check=True, text=True, env=self.environment(),
                              capture_output=True).stdout.strip()

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def full(self, *jobs):
        return subprocess.run(["bash", "scripts/test-full", *jobs], cwd=self.tree, text=True, capture_output=True,
                              env=self.environment(), timeout=280)

    def begin(self, *arguments):
        return subprocess.Popen([sys.executable, "scripts/test_full.py", *arguments], cwd=self.tree, env=self.environment(),
                                stdout=subprocess.DEVNULL)

    def log(self):
        return (self.tree / "bench/results/test-full.log").read_text()

    def ran(self):
        """What the stand-ins wrote, in their order."""
        path = self.tree / "runs"
        return path.read_text().split() if path.exists() else []

    def runs(self, name):
        return self.ran().count(name)

    def asked(self):
        """How often ctest was begun to run tests."""
        path = self.tree / "asked"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def head(self):
        return self.git("rev-parse", "--short=12", "HEAD")

    def line(self, part):
        """The log's line of one part, its columns apart."""
        lines = [line for line in self.log().splitlines() if f" s  {part}" in line]
        return re.split(r"\s{2,}", lines[0]) if lines else []

    def beneath(self, part):
        """The words of the lines that belong to that line."""
        _, _, below = self.log().partition(f" s  {part}")
        lines = itertools.takewhile(lambda line: line.startswith("    | "), below.splitlines()[1:])
        return " ".join(line.removeprefix("    | ") for line in lines).split()

    def note(self, part):
        """What that line says at its end; on a busy machine also how long the part had to wait for a processor."""
        note = (self.line(part) + 6 * [""])[5]
        return re.sub(r"(, )?had \d+ s of processors, waited \d+ s for them(?:, )?", r"\1", note)


def expect(right, what, output):
    if not right:
        sys.exit(f"error: {what}\n{output}")


def main(*cases):
    """Runs each of them in a checkout of its own, with what add_test() gives a program of these tests."""
    if shutil.which("git") is None:
        print("no git")
        sys.exit(77)
    root, ctest = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            case(Checkout(root, ctest, pathlib.Path(folder)))
