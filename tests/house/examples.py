"""The examples pass on a sound MPI and fail on one that delivers wrong bytes, in each of four ways: other tests rely
on their exit status.

    examples.py SOURCE_ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MODES = ("flip", "stale", "swap", "overrun")


def run(words, **variables):
    return subprocess.run([str(word) for word in words], env=dict(os.environ, **variables), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=280)


def build(words):
    result = run(words)
    if result.returncode != 0:
        sys.exit(f"{words}: {result.stderr}")


class Suite:
    def __init__(self, launcher, cc, folder):
        self.launcher, self.folder, self.failures = launcher, folder, 0
        self.saboteur = folder / "libsabotage.so"
        build([cc, "-shared", "-fPIC", "-O1", pathlib.Path(__file__).parent / "sabotage.c", "-o", self.saboteur])

    def check(self, name, *command):
        # Two ranks: one root, one receiver. The preload is for the ranks, not for the launcher.
        start = [self.launcher, "-n", "2"]
        sound = run([*start, *command])
        if sound.returncode != 0 or "every byte correct" not in sound.stdout:
            self.fail(name, "on a sound MPI", sound)
        for mode in MODES:
            result = run([*start, "env", f"LD_PRELOAD={self.saboteur}", f"SABOTAGE={mode}", *command])
            if result.returncode == 0 or "WRONG" not in result.stdout:
                self.fail(name, f"does not see {mode}", result)
        print("checked", name)

    def fail(self, name, what, result):
        self.failures += 1
        print(f"FAILED {name}: {what}: exit {result.returncode}\n{result.stdout}{result.stderr}")


def main(root):
    examples, venv = root / "examples", root / ".venv-mpich/bin"
    failures = ran = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if (venv / "mpicc").is_file():
            suite = Suite(venv / "mpiexec", venv / "mpicc", folder)
            build([venv / "mpicc", "-O2", examples / "bcast.c", "-o", folder / "bcast"])
            suite.check("bcast.c", folder / "bcast", "--reps", "2", "0", "1", "1000", "64K")
            suite.check("bcast.py", venv / "python", examples / "bcast.py")
            failures, ran = failures + suite.failures, ran + 2
        if shutil.which("mpifort.mpich"):
            suite = Suite("mpiexec.mpich", "mpicc.mpich", folder)
            for name in ("bcast_mpif.f", "bcast_use_mpi.f90", "bcast_f08.f90"):
                program = folder / name.split(".")[0]
                # Modules of one program must not meet those of another.
                build(["mpifort.mpich", f"-J{folder}", examples / "bcast_checks.f90", examples / name, "-o", program])
                suite.check(name, program)
                ran += 1
            failures += suite.failures
    if ran == 0:
        print("no MPI of the set-up is here")
        return 77
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
