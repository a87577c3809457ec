"""Intel's benchmark IMB-NBC, as a binary, on the hosts of a lab: Iallgather, Ibcast and Iallreduce run to their end with
every size, and Thalweg says that it carried them out without an error.

    imb_nbc.py MPI.json HOSTS MIN_LOG MAX_LOG      sizes 2^MIN_LOG to 2^MAX_LOG; a rank per host

IMB's computation spins, so there are no more ranks than cores. The overlap that it finds is printed, not judged: whoever
else runs comes out of it, and `thalweg bench iallgather --overlap` measures it better. Bytes are the business of the other
tests, because this binary was built without IMB's check of data.
"""

import re
import tempfile

from conformance import Mpi, Skipped, expect, main, needs_lab, read_report, run

CALLS = ("Iallgather", "Ibcast", "Iallreduce")
REPETITIONS = 5


def overlaps(text, call, sizes):
    """{bytes: percent} of one benchmark's table: bytes, repetitions, overlapped, pure, computed, overlap."""
    table = re.search(rf"# Benchmarking {call} *$(.*?)(?=# Benchmarking|# All processes|\Z)", text, re.M | re.S)
    expect(table is not None, "no table of", call, text)
    rows = re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) *$", table.group(1), re.M)
    found = {int(size): float(percent) for size, percent in rows}
    expect([size for size in found if size] == sizes, call, "has sizes", list(found), text)
    return found


def test(path, hosts, low, high):
    mpi = Mpi(path)
    needs_lab(mpi)
    program = mpi.root / ".venv-impi/bin/IMB-NBC"
    if not program.exists():
        raise Skipped("IMB-NBC is not installed")
    hosts, low, high = int(hosts), int(low), int(high)
    sizes = [1 << log for log in range(low, high + 1)]
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        ended = run([mpi.thalweg, "lab", "run", "--hosts", hosts, "--ppn", 1, "--rate", "100mbit", "--force",
                     "--mpi", mpi.lab, "--", mpi.thalweg, "run", program, *CALLS, "-npmin", hosts, "-iter", REPETITIONS,
                     "-iter_policy", "off", "-time", 60, "-msglog", f"{low}:{high}"],
                    {"THALWEG_SETUP": "early", "THALWEG_REPORT": f"{folder}/report.json",
                     "THALWEG_MPI_ROOTS": mpi.root}, limit=400)
        expect(ended.code == 0, ended)
        report = read_report(f"{folder}/report.json")
    expect(report["totals"]["errors"] == 0, report)
    for call in CALLS:
        found = overlaps(ended.out, call, sizes)
        print(f"{call}: overlap in percent by bytes: {found}")
        row = report["operations"][call.lower()]
        # Each with computation and without.
        expect(row["accelerated"] >= 2 * REPETITIONS * len(sizes), call, row)


if __name__ == "__main__":
    main(test)
