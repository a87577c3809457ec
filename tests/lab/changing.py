"""Halo exchanges in a lab whose links, or ranks, change in mid-run. Run as real_lab.py says.

Why messages inside a host are copied as they are is in the report; that every byte is right the program checks.
"""
import json
import os
import pathlib
import tempfile

from real_lab import ROOT, THALWEG, Others, check, equal, lab, good, build, main

WIRE = "the wire takes longest"


def reasons(mpi, program, folder, phases):
    """Of rank 0 at the end of a run of programs/halo.c: why its neighbour's messages are copied as they are, and how
    many were for the wire's sake."""
    report = pathlib.Path(folder, "report.json")
    environment = {**os.environ, "THALWEG_ALLTOALLV": "spread", "THALWEG_TRANSPORT": "shm", "THALWEG_SETUP": "early",
                   "THALWEG_TEST_TAKEN": "1", "THALWEG_TEST_LEVEL": "single", "THALWEG_REPORT": str(report)}
    print(phases, good(lab("run", "--quiet", "--rate", "1gbit", "--mpi", mpi, "--hosts", "2", "--ppn", "2", "--",
                           THALWEG, "run", program, phases, env=environment)).strip())
    peers = json.loads(report.read_text(encoding="utf-8"))["agent"]["inside_hosts"]["peers"]
    used = [peer for peer in peers if sum(peer["bytes"].values()) > 0]
    equal(len(used), 1, f"{phases}: rank 0 has one neighbour on its host: {peers}")
    print(phases, used[0])
    return used[0]["because"], used[0]["messages_because"].get(WIRE, 0)


def test_slowed_link(mpi):
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder, ROOT / "tests/plan/programs/halo.c")
        others = Others()  # ranks that wait for a core are late, too, and their links slow
        others.in_time(reasons(mpi, program, folder, "h")[0] != WIRE, "the links are fast")
        # More than there are while the links are fast: 3 rounds of two exchanges, and 6 starts.
        check(reasons(mpi, program, folder, "hH")[1] > 12, "the links have become slow")
        others.in_time(reasons(mpi, program, folder, "hHhh")[0] != WIRE,
                       "the links are fast again, and the choice is not back")


def test_late_rank(mpi):
    """A wait for a rank that is late now and then is not taken for a slow link."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder, ROOT / "tests/plan/programs/halo.c")
        others = Others()
        others.in_time(reasons(mpi, program, folder, "hLhL")[0] != WIRE, "a late rank was taken for a slow link")


if __name__ == "__main__":
    main(globals())
