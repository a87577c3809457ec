"""Intel's benchmarks IMB-MPI1 Alltoallv and IMB-RMA, as binaries, between pretended hosts on one: they run to their end with
every size, and Thalweg says that it carried out the exchanges, without an error.

    imb_exchanges.py MPI.json MPI1 RANKS      alltoallv, repeated and forced on; over the MPI it would stay native, because
                                              the benchmark asks for one thread
    imb_exchanges.py MPI.json RMA RANKS       windows of the program's own, beside everything that is ours

Bytes are the business of the other tests, because these binaries were built without IMB's check of data.
"""

import re
import tempfile

from conformance import Mpi, Skipped, expect, main, operations_of, read_report

REPETITIONS, LOW, HIGH = 20, 10, 18
EVERYTHING = {"BCAST": "binomial", "BCAST_MIN_BYTES": 0, "ALLGATHER": "ring", "ALLREDUCE": "recursive_doubling",
              "BARRIER": "dissemination", "SETUP": "early"}
TRANSPORTS = ("ucx", "shm")
WINDOWS = ("Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get", "One_put_all", "One_get_all", "All_put_all", "All_get_all",
           "Put_local", "Put_all_local", "Exchange_put", "Exchange_get", "Accumulate", "Get_accumulate")


def benchmark(mpi, name, ranks, calls, folder, settings):
    """The run and its report."""
    program = mpi.root / ".venv-impi/bin" / name
    if not program.exists():
        raise Skipped(f"{name} is not installed")
    report_file = f"{folder}/report.json"
    ended = mpi.launch(ranks, [program, *calls, "-npmin", ranks, "-iter", REPETITIONS, "-iter_policy", "off", "-time", 20,
                               "-msglog", f"{LOW}:{HIGH}"], REPORT=report_file, **settings)
    expect(ended.code == 0, ended)
    for call in calls:
        table = re.search(rf"# Benchmarking {call} *$(.*?)(?=# Benchmarking|# All processes|\Z)", ended.out, re.M | re.S)
        expect(table is not None, "no table of", call, ended)
        rows = re.findall(r"^ +(\d+) +\d+ +[\d.]+", table.group(1), re.M)
        expect(len(rows) == HIGH - LOW + 2, call, "has sizes", rows, ended)
    report = read_report(report_file)
    expect(report["totals"]["errors"] == 0, report["totals"])
    return ended, report


def test(path, which, ranks):
    mpi, ranks = Mpi(path), int(ranks)
    settings = {**EVERYTHING, "ALLTOALLV": "spread", "TOPOLOGY": f"node:{ranks // 2} core:2",
                "UCX_TLS": "tcp,self"}
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        if which == "RMA":
            _, report = benchmark(mpi, "IMB-RMA", ranks, WINDOWS, folder, settings)
            taken = operations_of(report)
            expect(taken, "nothing was taken beside the windows:", report["totals"])
            print(f"{len(WINDOWS)} benchmarks; taken beside them: {taken}")
            return
        for transport in TRANSPORTS:
            _, report = benchmark(mpi, "IMB-MPI1", ranks, ["Alltoallv"], folder,
                                  {**settings, "TRANSPORT": transport})
            taken = operations_of(report)
            expect(sum(taken.get("alltoallv", {}).values()) >= REPETITIONS * (HIGH - LOW + 1), transport, taken)
            print(f"{transport}: {taken}")


if __name__ == "__main__":
    main(test)
