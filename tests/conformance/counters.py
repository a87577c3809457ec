"""The programs of programs.py on the hosts of a lab: the kernel's counters and the report tell the same of their broadcasts.

    counters.py MPI.json PROGRAM

With an algorithm that delivers every byte once, and roots that change, all hosts together receive each broadcast of the
report as often as its communicator has ranks but the root. HDF5 moves what it writes as well, so there the counters are a
lower bound.
"""

import tempfile

from conformance import Mpi, algorithms_of, expect, in_lab, main, needs_lab, read_report
from programs import PROGRAMS, RIGHT

HOSTS, ALGORITHM = 3, "chain:chunk_bytes=16K"
# What a byte of payload may become on the wire, and what start-up and small messages may add in all.
OVERHEAD, BESIDES = 1.12, 1 << 20


def expected_of(report):
    """Bytes that cross a link, by the report: one rank a host, each byte once."""
    return sum(row["bytes"] * (communicator["size"] - 1) for communicator in report["communicators"]
               for row in communicator["rows"] if "algorithm" in row)


def test(path, name):
    mpi = Mpi(path)
    needs_lab(mpi)
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        program = PROGRAMS[name](mpi, folder)
        report_file = f"{folder}/report.json"
        ended, moved, again = in_lab(mpi, HOSTS, 1, program, {**mpi.environment, "THALWEG_BCAST": ALGORITHM,
                                                              "THALWEG_BCAST_MIN_BYTES": "1", "THALWEG_REPORT": report_file})
        report = read_report(report_file)
    expect(RIGHT in ended.out, ended)
    totals, expected, received = report["totals"], expected_of(report), sum(received for received, _ in moved)
    print(f"{totals['accelerated']} of {totals['calls']} broadcasts, {expected} bytes to receive; received {received}, of which"
          f" {again} again: {received / expected:.3f}")
    expect(set(algorithms_of(report)) == {ALGORITHM} and totals["errors"] == 0, report)
    expect(totals["accelerated_bytes"] > 0.9 * totals["bytes"], "most bytes are not ours:", totals)
    expect(expected > 2 * BESIDES, "too little to be told from the rest:", expected)
    expect(received >= expected, "the hosts received less than the report says:", moved, report)
    if name != "hdf5":
        expect(received <= OVERHEAD * expected + BESIDES + again, "the hosts received more:", moved, report)


if __name__ == "__main__":
    main(test)
