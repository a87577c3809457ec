"""The HPC Challenge, as Debian builds it, gives right answers with everything forced on as without Thalweg: its transforms
transpose by MPI_Alltoall, and each of its parts checks itself.

    hpcc.py MPI.json RANKS      Debian's HPCC, which is built with that MPI
"""

import os
import pathlib
import re
import shutil
import tempfile

from conformance import HERE, Mpi, Skipped, expect, main, operations_of, read_report, run

EVERYTHING = {"ALLTOALLV": "spread", "ALLREDUCE": "recursive_doubling", "ALLGATHER": "ring", "BCAST": "binomial",
              "BCAST_MIN_BYTES": 0, "BARRIER": "dissemination", "SETUP": "early"}
# What each launch has besides; the ranks are pretended to lie on two hosts in the last ones. Over the MPI exchanges would
# stay native, because the program asks for one thread.
HOSTS = {"TOPOLOGY": "node:2 core:2", "UCX_TLS": "tcp,self"}
WAYS = {"inside the host": {"TRANSPORT": "shm"},
        "between hosts": {"TRANSPORT": "shm", **HOSTS},
        "of whole hosts": {"TRANSPORT": "ucx", "ALLTOALLV": "node_leader", **HOSTS}}
# What is counted as wrong, and what is off by rounding.
ERRORS = ("MPIRandomAccess_Errors", "MPIRandomAccess_LCG_Errors", "PTRANS_residual")
ROUNDING = {"MPIFFT_maxErr": 1e-13}
SIZES = ("HPL_N", "PTRANS_n", "MPIRandomAccess_N", "MPIFFT_N")


def figures_of(ended, folder):
    """The summary, of which each part says that it is right."""
    path = pathlib.Path(folder) / "hpccoutf.txt"
    expect(ended.code == 0 and path.exists(), ended)
    text = path.read_text(encoding="utf-8", errors="replace")
    path.unlink()
    figures = {name: float(value) for name, value in re.findall(r"^(\w+)=(-?[\d.e+-]+)$", text, re.M)}
    expect(figures.get("Success") == 1, text[-3000:])
    expect(all(figures[name] == 0 for name in ERRORS), {name: figures[name] for name in ERRORS})
    expect(all(0 <= figures[name] < most for name, most in ROUNDING.items()), {name: figures[name] for name in ROUNDING})
    failed = re.findall(r"^ +(\d+) tests completed and failed residual checks", text, re.M)
    expect(failed and not any(int(count) for count in failed), "residuals:", failed, text[-3000:])
    return {name: figures[name] for name in SIZES}


def test(path, ranks):
    mpi, ranks = Mpi(path), int(ranks)
    program = shutil.which("hpcc")
    if program is None:
        raise Skipped("Debian's hpcc is not installed")
    needed = run(["ldd", program]).out
    expect("libmpi.so.40" in needed, "it is built with another MPI:", needed)
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        shutil.copy(HERE / "programs/hpccinf.txt", folder)
        os.chdir(folder)  # where it reads and writes
        native = figures_of(mpi.launch(ranks, [program], thalweg=False), folder)
        for way, settings in WAYS.items():
            report_file = f"{folder}/report.json"
            ended = mpi.launch(ranks, [program], REPORT=report_file, **{**EVERYTHING, **settings})
            ours = figures_of(ended, folder)
            expect(ours == native, way, native, ours)
            report = read_report(report_file)
            taken = {name: sum(calls.values()) for name, calls in operations_of(report).items()}
            expect(report["totals"]["errors"] == 0, way, report["totals"])
            expect(taken.get("alltoall", 0) > 0, way, "no transpose was taken:", taken)
            print(f"{way}: {taken}")


if __name__ == "__main__":
    main(test)
