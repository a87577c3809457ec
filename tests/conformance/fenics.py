"""DOLFINx, which exchanges the borders of its meshes by neighbourhood collectives, solves the same problem to the same
answer with Thalweg as without.

    fenics.py MPI.json RANKS      Debian's DOLFINx, which is built with that MPI
"""

import glob
import json
import math
import tempfile

from conformance import HERE, Mpi, Skipped, expect, main, read_report

PYTHON = "/usr/bin/python3"
EVERYTHING = {"ALLTOALLV": "spread", "SETUP": "early"}
# What each launch has besides; the ranks are pretended to lie on two hosts in the last one.
WAYS = {"as it is": {}, "inside the host": {**EVERYTHING, "TRANSPORT": "shm"},
        "between hosts": {**EVERYTHING, "TRANSPORT": "shm", "UCX_TLS": "tcp,self"}}
ROUNDING = 1e-9  # reductions may add in another order


def neighbour_calls(report):
    """[calls, accelerated] of every operation on neighbourhoods."""
    calls = [0, 0]
    for communicator in report["communicators"]:
        for row in communicator["rows"]:
            if "neighbor" in row["operation"]:
                calls[0] += row["calls"]
                calls[1] += row["calls"] if "algorithm" in row else 0
    return calls


def figures_of(ended):
    expect(ended.code == 0, ended)
    lines = [line for line in ended.out.splitlines() if line.startswith("{")]
    expect(len(lines) == 1, "one line of figures:", ended)
    figures = json.loads(lines[0])
    expect(figures["error"] < 1e-6 and figures["stale"] == 0, "wrong:", figures)
    return figures


def test(path, ranks):
    mpi, ranks = Mpi(path), int(ranks)
    packages = glob.glob("/usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages/dolfinx")
    if not packages:
        raise Skipped("Debian's python3-dolfinx-real is not installed")
    mpi.environment["PYTHONPATH"] = packages[-1].rsplit("/", 1)[0]
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        # Forms are compiled once, by the first launch.
        mpi.environment["XDG_CACHE_HOME"] = folder
        program = [PYTHON, "-B", HERE / "programs/poisson.py"]
        native = figures_of(mpi.launch(ranks, program, thalweg=False, limit=300))
        expect(native["ghosts"] > 0, "nothing is exchanged:", native)
        for way, settings in WAYS.items():
            if way == "between hosts":
                settings = {**settings, "TOPOLOGY": f"ranks:{','.join(str(rank // 2) for rank in range(ranks))}"}
            report_file = f"{folder}/report.json"
            ours = figures_of(mpi.launch(ranks, program, limit=300, REPORT=report_file, **settings))
            # Meshes are not cut alike in every run: what lies where is no part of the answer.
            expect(ours["unknowns"] == native["unknowns"], way, native, ours)
            expect(math.isclose(ours["norm"], native["norm"], rel_tol=ROUNDING), way, native, ours)
            expect(abs(ours["iterations"] - native["iterations"]) <= 1, way, native, ours)
            report = read_report(report_file)
            calls, taken = neighbour_calls(report)
            expect(report["totals"]["errors"] == 0, way, report["totals"])
            # On one host, where nothing is asked for, calls are handed on unseen.
            expect(calls > 0 or not settings, way, "no neighbourhood collective was called:", report["totals"])
            expect(taken > 0 or not settings, way, "none was taken:", report["totals"])
            print(f"{way}: {ours}; {calls} calls on neighbourhoods by rank 0, {taken} of them taken")


if __name__ == "__main__":
    main(test)
