"""What the conformance tests share: the MPI under test, launching with a limit, reading the report.

CMake writes one JSON file per MPI library (CMakeLists.txt). Exit status 77 means skipped, with the reason printed.
"""

import collections
import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

SKIP = 77
HERE = pathlib.Path(__file__).resolve().parent


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(word) for word in what))


class Run:
    """What one command gave. `code` is None where it had to be stopped."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def __str__(self):
        ended = "stopped at its limit" if self.code is None else f"exit status {self.code}"
        return f"{ended}: {' '.join(self.command)}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"


def run(command, environment=None, limit=280, folder=None):
    """Runs a command in a session of its own and leaves none of it behind. limit: seconds."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                                   env=dict(os.environ, **(environment or {})), start_new_session=True)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
            process.send_signal(signal.SIGTERM)  # a launcher takes its ranks with it
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return Run(command, code, *texts)


class Mpi:
    """One MPI library, and Thalweg for it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.__dict__.update(json.load(file))
        self.root = pathlib.Path(self.root)
        self.kept = pathlib.Path(path).parent  # for what one test may leave for another
        if "missing" in self.__dict__:
            raise Skipped(self.missing)

    def launch(self, ranks, program, thalweg=True, limit=280, saboteur=None, **settings):
        """mpiexec -n RANKS [thalweg run] PROGRAM…; settings: THALWEG_ variables without their prefix."""
        variables = {f"THALWEG_{name}": str(value) for name, value in settings.items()}
        if saboteur:
            variables.update(THALWEG_SABOTEUR=saboteur, THALWEG_HOME=self.saboteur)
        command = [*self.mpiexec, "-n", ranks, *([self.thalweg, "run"] if thalweg else []), *program]
        # Ranks outnumber the cores of a small machine: MPICH's waits have to give way, with and without Thalweg.
        if self.wait_help:
            command = [*self.mpiexec, "-n", ranks, "env", f"LD_PRELOAD={self.wait_help}", "THALWEG_LAB_YIELD_POLLS=20",
                       *command[len(self.mpiexec) + 2:]]
        with tempfile.TemporaryDirectory(prefix="tw") as temporary:  # the launchers' session folders too
            return run(command, {**self.environment, **variables, "TMPDIR": temporary}, limit)

    def compile(self, words, output, environment=None):
        done = run([*words, "-o", output], {**self.environment, **(environment or {})})
        expect(done.code == 0, "does not compile:", done)
        return output


def needs_lab(mpi):
    works = run([mpi.thalweg, "lab", "check"])
    if works.code != 0:
        raise Skipped(works.err.strip() or works.out.strip())


# A file of each rank: bytes received and sent by its host, and the segments that it sent again, before and after.
WITH_COUNTERS = ('f=$0/$(hostname).$$; count() { cat /sys/class/net/rail0/statistics/rx_bytes '
                 '/sys/class/net/rail0/statistics/tx_bytes; grep "^Tcp: [0-9]" /proc/net/snmp | cut -d" " -f13; }; '
                 'count >$f; "$@"; status=$?; count >>$f; exit $status')
SEGMENT = 1514  # bytes on the wire of a full one


def in_lab(mpi, hosts, ppn, program, variables):
    """Under `thalweg run` on the hosts of a lab: the run, [(received, sent)] bytes of each host by the kernel's counters, and
    how many bytes were sent again."""
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        ended = run([mpi.thalweg, "lab", "run", "--hosts", hosts, "--ppn", ppn, "--rate", "100mbit", "--force", "--mpi",
                     mpi.lab, "--", "sh", "-c", WITH_COUNTERS, folder, mpi.thalweg, "run", *program],
                    {**variables, "THALWEG_MPI_ROOTS": mpi.root}, limit=400)
        expect(ended.code == 0, ended)
        moved, again = [], 0
        for host in range(hosts):
            counters = []
            for path in glob.glob(f"{folder}/node{host}.*"):
                with open(path, encoding="utf-8") as file:
                    counters.append([int(word) for word in file.read().split()])
            expect(len(counters) == ppn, f"counters of node{host}:", counters)
            expect(all(len(c) == 6 for c in counters), f"counters of node{host}:", counters)
            received, sent, repeated = (max(c[3 + i] for c in counters) - min(c[i] for c in counters) for i in range(3))
            moved.append((received, sent))
            again += repeated * SEGMENT
    return ended, moved, again


def read_report(path):
    """The totals and rows of THALWEG_REPORT."""
    expect(os.path.exists(path), "no report was written:", path)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def algorithms_of(report):
    """{algorithm: calls} of the accelerated calls."""
    calls = {}
    for communicator in report["communicators"]:
        for row in communicator["rows"]:
            if "algorithm" in row:
                calls[row["algorithm"]] = calls.get(row["algorithm"], 0) + row["calls"]
    return calls


def operations_of(report):
    """{operation: {algorithm: calls}} of the accelerated calls."""
    found = collections.defaultdict(collections.Counter)
    for communicator in report["communicators"]:
        for row in communicator["rows"]:
            if "algorithm" in row:
                found[row["operation"]][row["algorithm"]] += row["calls"]
    return {operation: dict(algorithms) for operation, algorithms in found.items()}


def main(test):
    try:
        test(*sys.argv[1:])
    except Skipped as why:
        print("skipped:", why)
        sys.exit(SKIP)
    except Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
    print("passed")
