"""tests/open_mpi.sh, through which the tests start Open MPI, with stand-ins for its launcher: each has a folder of
sessions of its own while it runs, one whose listener did not start is tried again, and what it says, its exit status
and signals pass. No test starts the launcher of Open MPI 4 without it.

    open_mpi.py SOURCE_ROOT
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

BASE = "OMPI_MCA_orte_tmpdir_base"
SAYS_BASE = f'test -d "${BASE}" && mkdir -p "${BASE}/ompi.host.0/pid.1" && echo "${BASE}"'
REFUSES = 'echo x >>"$1"; test $(wc -l <"$1") -ge "$2" || { echo "a listener thread failed to start" >&2; exit 7; }; exit 3'


def expect(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def start(script, folder, code, *arguments):
    return subprocess.Popen([script, "sh", "-c", code, "launcher", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=str(folder)))


def main(root):
    script = root / "tests/open_mpi.sh"
    wrapped, launcher = root / "tests/CMakeLists.txt", "mpiexec." + "openmpi"
    starting = [path for kind in ("CMakeLists.txt", "*.cmake", "*.py", "*.sh") for path in root.glob(f"tests/**/{kind}")
                if launcher in path.read_text(encoding="utf-8")]
    expect(starting == [wrapped], f"{launcher} is started without open_mpi.sh: {starting}")
    with tempfile.TemporaryDirectory(prefix="thalweg-open-mpi-") as name:
        folder = pathlib.Path(name)
        launchers = [start(script, folder, SAYS_BASE) for _ in range(4)]
        bases = {launcher.communicate(timeout=60)[0].strip() for launcher in launchers}
        expect(len(bases) == 4 and all(pathlib.Path(base).parent == folder for base in bases), f"four folders: {bases}")
        expect(not any(launcher.returncode for launcher in launchers), "they end well")
        for starts, last, status in ((1, 1, 3), (2, 2, 3), (3, 4, 7)):
            count = folder / "count"
            launcher = start(script, folder, REFUSES, count, last)
            said = launcher.communicate(timeout=60)[1]
            started = len(count.read_text(encoding="utf-8").splitlines())
            expect((started, launcher.returncode) == (starts, status), f"{started} starts, status {launcher.returncode}")
            expect(said.count("failed to start") == starts - (status == 3), f"what it says comes back: {said}")
            count.unlink()
        launcher = start(script, folder, 'trap "exit 5" TERM; echo up; while :; do sleep 0.01; done')
        launcher.stdout.readline()
        launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=60)
        expect(launcher.returncode == 5, f"told to end, it ended with {launcher.returncode}")
        expect(not list(folder.iterdir()), f"left behind: {list(folder.iterdir())}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
