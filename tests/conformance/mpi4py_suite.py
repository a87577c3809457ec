"""mpi4py's own test suite ends the same, test by test and rank by rank, with Thalweg taking every broadcast it can, or
everything it can.

    mpi4py_suite.py MPI.json RANKS ALGORITHM [MODULE…]     all modules where none is named
    mpi4py_suite.py MPI.json RANKS LEVEL/TRANSPORT/ALGORITHM [MODULE…]   every operation forced on: the thread level to
                                                           ask for, THALWEG_TRANSPORT, the algorithm of broadcasts
    mpi4py_suite.py MPI.json 4 …/leaders MODULE…           the same on two pretended hosts, whose leaders exchange what
                                                           neighbours have for one another
    mpi4py_suite.py MPI.json sabotaged                     its broadcast tests fail in every mode of the saboteur

The tests are those of the source distribution with the version of the installed wheel; the package is the wheel's.
What the whole suite gave without Thalweg is kept beside MPI.json, for the next test of as many ranks.
"""

import collections
import fcntl
import json
import pathlib
import re
import tarfile
import tempfile

from conformance import HERE, Mpi, Skipped, algorithms_of, expect, main, operations_of, read_report, run
from mpi4py_outcomes import RACES
from programs import MODES

EVERYTHING = {"ALLGATHER": "ring", "ALLREDUCE": "recursive_doubling",
              "BARRIER": "dissemination", "ALLTOALLV": "spread", "BCAST_MIN_BYTES": 0, "SETUP": "early"}
# What the suite calls often enough that some of it must have been taken, over any transport.
TAKEN = {"bcast", "allgather", "allreduce", "alltoall", "alltoallv", "alltoallw", "ibcast", "iallgather", "iallreduce",
         "ibarrier", "ialltoall", "ialltoallv", "ialltoallw", "bcast_init", "allgather_init", "allreduce_init", "barrier_init",
         "alltoall_init", "alltoallv_init", "alltoallw_init"}

REPEATS = 3  # of the suite without Thalweg, before an outcome counts as one that MPI alone does not give


def tests_folder(mpi):
    """The test/ folder of the source distribution, fetched once by pip into .setup/."""
    with open(mpi.root / "versions.txt", encoding="utf-8") as file:
        requirement = re.search(rf"^\.venv-{mpi.wheel}\s+(mpi4py==(\S+))", file.read(), re.M)
    home = mpi.root / ".setup"
    home.mkdir(exist_ok=True)
    source = home / f"mpi4py-{requirement[2]}"
    with open(home / "mpi4py.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (source / "thalweg.stamp").exists():
            return source / "test"
        with tempfile.TemporaryDirectory(prefix="tw") as folder:
            pip = run([mpi.python, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps",
                       "--no-binary", "mpi4py", "--dest", folder, requirement[1]], limit=280)
            archives = list(pathlib.Path(folder).glob("mpi4py-*.tar.gz"))
            if pip.code != 0 or len(archives) != 1:
                raise Skipped(f"pip cannot fetch the source of {requirement[1]}: {pip}")
            with tarfile.open(archives[0]) as archive:
                archive.extractall(home, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (source / "thalweg.stamp").touch()
    return source / "test"


def outcomes(mpi, ranks, folder, arguments, limit, **more):
    """{(rank, test): (outcome, …)} and the run."""
    mpi.environment["PYTHONPATH"] = str(folder)  # for the processes that the suite spawns
    with tempfile.TemporaryDirectory(prefix="tw") as temporary:
        program = [mpi.python, "-B", HERE / "mpi4py_outcomes.py", folder, f"{temporary}/rank", *arguments]
        ended = mpi.launch(ranks, program, limit=limit, **more)
        found = collections.defaultdict(list)
        for rank in range(ranks):
            try:
                with open(f"{temporary}/rank.{rank}", encoding="utf-8") as lines:
                    for line in lines:
                        name, outcome = json.loads(line)
                        found[rank, name].append(outcome)
            except (FileNotFoundError, json.JSONDecodeError):
                pass  # the rank did not get far enough: its "ended" is missing
    return {key: tuple(value) for key, value in found.items()}, ended


def complete(found, ranks):
    return all("ended" in found.get((rank, "suite"), ()) for rank in range(ranks))


class Native:
    """What became of each test without Thalweg, in every run so far: {(rank, test): {outcomes, …}}. Of the wheels, and
    without the tests, that the key names."""

    def __init__(self, path, key):
        self.path, self.key, self.seen = path, key, {}
        if path and path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["key"] == key:
                self.seen = {(rank, name): {tuple(outcome) for outcome in outcomes} for rank, name, outcomes in
                             kept["seen"]}

    def add(self, found):
        for key, value in found.items():
            self.seen.setdefault(key, set()).add(value)

    def keep(self):
        if self.path:
            seen = [[rank, name, sorted(outcomes)] for (rank, name), outcomes in sorted(self.seen.items())]
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps({"key": self.key, "seen": seen}), encoding="utf-8")
            draft.replace(self.path)


def arguments_for(modules):
    return ["--no-builddir"] + [word for module in modules for word in ("-i", rf"^{module}\.py$")]


def compare(mpi, ranks, algorithm, modules):
    level, forced, leaders = "multiple", "/" in algorithm, []  # what mpi4py asks for where it is not told
    if forced:
        level, transport, algorithm, *leaders = algorithm.split("/")
        mpi.environment["MPI4PY_RC_THREAD_LEVEL"] = level  # with Thalweg and without
    folder, arguments = tests_folder(mpi), arguments_for(modules)
    limit = 1300 if not modules else 400 if leaders else 120
    native = Native(None if modules else mpi.kept / f"{mpi.wheel}.{ranks}.{level}.native.json",
                    (mpi.root / "versions.txt").read_text(encoding="utf-8") + " ".join(sorted(RACES)))
    if not native.seen:
        found, ended = outcomes(mpi, ranks, folder, arguments, limit, thalweg=False)
        expect(complete(found, ranks), "the suite does not end without Thalweg:", ended)
        native.add(found)
        native.keep()
    with tempfile.TemporaryDirectory(prefix="tw") as temporary:
        report_file = f"{temporary}/report.json"
        settings = {"BCAST": algorithm, "BCAST_MIN_BYTES": 0, "REPORT": report_file}
        if forced:
            settings = {**EVERYTHING, **settings, "TRANSPORT": transport, "UCX_TLS": "tcp,self"}
            if leaders:
                settings |= {"ALLTOALLV": "node_leader", "TOPOLOGY": "node:2 core:2"}
        ours, ended = outcomes(mpi, ranks, folder, arguments, limit, **settings)
        expect(complete(ours, ranks), "the suite does not end with Thalweg; last of rank 0:", list(ours)[-1:], ended)
        report = read_report(report_file)

    # A test that has several outcomes by itself proves nothing; it may have those, and no other.
    seen = native.seen
    different = [key for key in seen | ours if ours.get(key) not in seen.get(key, ())]
    for _ in range(REPEATS - 1):
        if not different:
            break
        again, _ = outcomes(mpi, ranks, folder, arguments, limit, thalweg=False)
        native.add(again)
        if complete(again, ranks):
            native.keep()
        different = [key for key in different if ours.get(key) not in seen.get(key, ())]
    for key in different:
        print(f"rank {key[0]} {key[1]}: without Thalweg {seen.get(key)}, with it {ours.get(key)}")
    expect(not different, len(different), "tests end differently with Thalweg:", ended)

    calls, chosen = report["totals"], algorithms_of(report)
    # What is left over has one rank, no bytes, or an intercommunicator.
    expect(calls["accelerated"] > 0 or ranks == 1, "accelerated:", calls)
    expect(calls["errors"] == 0, "errors:", calls)
    if forced:
        chosen = operations_of(report)
        if leaders:
            led = {operation for operation in chosen if "neighbor" in operation and "node_leader" in chosen[operation]}
            for form in (r"neighbor_\w+(?<!_init)", r"ineighbor_\w+", r"neighbor_\w+_init"):
                expect(any(re.fullmatch(form, operation) for operation in led), form, "not by leaders:", chosen)
        # Over the MPI library an agent needs that thread level.
        wanted = TAKEN if transport != "mpi" or level == "multiple" else {"bcast"}
        expect(ranks == 1 or modules or wanted <= set(chosen), "nothing was taken of", wanted - set(chosen), chosen)
        expect(ranks == 1 or modules or wanted != TAKEN or
               any("neighbor" in operation for operation in chosen), "no neighbourhood was served:", chosen)
    else:
        expect(all(name.split(":")[0] == algorithm.split(":")[0].split("(")[0] or "node_leader" in name
                   for name in chosen), "another algorithm ran:", chosen)
    kinds = collections.Counter(value[-1].split(":")[0] for (_, name), value in ours.items() if name != "suite")
    print(f"{ranks} ranks, {sum(kinds.values()) // ranks} tests, of all ranks: {dict(kinds)}; rank 0: {calls['calls']}"
          f" calls, {calls['accelerated']} accelerated, {chosen}")


def sabotaged(mpi):
    """The first failure of any rank ends the job; what was written until then counts."""
    folder, arguments = tests_folder(mpi), [*arguments_for(["test_cco_buf"]), "-k", "testBcast"]
    settings = {"BCAST": "binomial", "BCAST_MIN_BYTES": 0, "TEST_ABORT": 1}
    for mode in ("flip:4000000000", *MODES):
        found, ended = outcomes(mpi, 3, folder, arguments, 60, saboteur=mode, **settings)
        bad = [key for key, value in found.items() if value[-1].startswith(("failed", "error"))]
        if mode in MODES:
            expect(bad, mode, "was not noticed:", found, ended)
            expect(any("testBcast" in name for _, name in bad), mode, bad)
        else:
            expect(complete(found, 3) and not bad and len(found) > 3, "the saboteur at rest:", found, ended)
    print("noticed:", ", ".join(MODES))


def test(path, ranks, *more):
    if ranks == "sabotaged":
        sabotaged(Mpi(path))
    else:
        compare(Mpi(path), int(ranks), more[0], more[1:])


if __name__ == "__main__":
    main(test)
