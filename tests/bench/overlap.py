"""`thalweg bench ibcast|iallreduce --overlap` in a lab of two hosts: every column of a launch gets its samples and right
bytes, ours runs a schedule of ours, and the table says how much of it was hidden.

    overlap.py THALWEG MPI
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from common import expect, needs_lab

thalweg, mpi = sys.argv[1:]
SAMPLES = 3

needs_lab(thalweg)
with tempfile.TemporaryDirectory(prefix="tw") as folder:
    for collective in ("ibcast", "iallreduce"):
        out = pathlib.Path(folder) / f"{collective}.jsonl"
        result = subprocess.run([thalweg, "bench", collective, "--overlap", "--together-only", "--mpi", mpi, "--hosts", "2",
                                 "--ppn", "1", "--rate", "100mbit", "--bytes", "64K", "--samples", str(SAMPLES),
                                 "--samples-large", str(SAMPLES), "--out", str(out)],
                                capture_output=True, text=True, timeout=280)
        about = f"{collective}: exit status {result.returncode}\n{result.stdout}{result.stderr}"
        expect(result.returncode == 0, about)
        rows = {row["column"]: row for row in map(json.loads, out.read_text().splitlines())}
        expect({"native", "native blocking", "sockets", "thalweg"} <= rows.keys(), sorted(rows), about)
        for column, row in rows.items():
            expect(row["wrong_words"] == 0 and row["collective"] == collective, row)
            expect(column == "no traffic" or len(row["seconds"]) >= SAMPLES, row)
            # Sums of doubles are declined by default.
            expect(row.get("element") == ("int64" if collective == "iallreduce" else None), row)
        ours = rows["thalweg"]
        expect(ours["algorithm"] and not ours["algorithm"].startswith("native"), ours)
        expect("OSU" in result.stdout and "thalweg" in result.stdout, about)
        print(f"{collective}: {len(rows)} columns, {ours['algorithm']}")
