"""Two links per host against one: MPI_Iallgather of 1 MiB blocks, as it is chosen by itself, is at least 1.8 times as fast.

    rails.py THALWEG MPI        in two labs of 4 hosts, each link at 50 Mbit/s
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from common import expect, needs_lab

thalweg, mpi = sys.argv[1:]
BLOCK, WANTED = 1 << 20, 1.8


def measured(folder, rails):
    """Seconds of one operation, and the algorithm that was chosen."""
    out = pathlib.Path(folder) / f"{rails}.jsonl"
    result = subprocess.run([thalweg, "bench", "iallgather", "--overlap", "--together-only", "--mpi", mpi, "--hosts", "4",
                             "--ppn", "1", "--rate", "50mbit", "--rails", str(rails), "--bytes", str(BLOCK),
                             "--compute", "sleep", "--samples", "6", "--samples-large", "6", "--out", str(out)],
                            capture_output=True, text=True, timeout=900)
    expect(result.returncode == 0, f"{rails} rails: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    columns = {row["column"]: row for row in map(json.loads, out.read_text().splitlines())}
    # Over several links the rings of one port and of as many stand beside it.
    for ring in ("ring", f"kport_ring:ports={rails}"):
        found = columns.get(f"thalweg {ring}")
        expect((found is not None) == (rails > 1), f"{rails} rails: {sorted(columns)}")
        ran = found is None or (found["wrong_words"] == 0 and found["algorithm"].startswith(ring.split(":")[0]))
        expect(ran, found)
    rows = [row for column, row in columns.items() if column == "thalweg"]
    expect(len(rows) == 1 and rows[0]["wrong_words"] == 0 and len(rows[0]["seconds"]) >= 6, rows)
    expect(rows[0]["context"]["rails"] == rails, rows[0]["context"])
    return statistics.median(rows[0]["seconds"]), rows[0]["algorithm"]


needs_lab(thalweg)
with tempfile.TemporaryDirectory(prefix="tw") as folder:
    one, of_one = measured(folder, 1)
    two, of_two = measured(folder, 2)
print(f"one rail: {1e3 * one:.1f} ms by {of_one}; two: {1e3 * two:.1f} ms by {of_two}; {one / two:.2f} times as fast")
expect(of_two == "ring:chunk_bytes=128K", "the pieces are not those that are cut up over both links:", of_two)
expect(one / two >= WANTED, "less than", WANTED, "times as fast")
