#!/usr/bin/env python3
"""docs/measurements.md is what the result files say, and the figures in README.md are those of that page."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
thalweg = pathlib.Path(sys.argv[2]) / "bin/thalweg"
names = {"MPICH": "mpich", "Open MPI": "openmpi", "Intel MPI": "impi"}


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


page = (root / "docs/measurements.md").read_text(encoding="utf-8")
results = sorted(root.glob("bench/results/bcast-*.jsonl")) + sorted(root.glob("bench/results/rings-*.jsonl"))
made = subprocess.run([thalweg, "bench", "document", *results], check=True, capture_output=True, text=True).stdout
if made != page:
    sys.exit("docs/measurements.md is not what bench/results say: run scripts/lab-tables document")

measured = set()
for line in page.splitlines():
    row = cells(line)
    if len(row) > 10 and row[1] == "4x2":
        measured.add((row[0], row[2], row[3], row[5], row[6], row[8], row[9]))

checked = 0
for line in (root / "README.md").read_text(encoding="utf-8").splitlines():
    row = cells(line)
    if len(row) != 7 or not re.search(r"[KM]iB$", row[1]):
        continue
    name = next(short for long, short in names.items() if row[0].startswith(long))
    wanted = (name, *row[1:])
    if wanted not in measured:
        sys.exit(f"README.md: the row {line.strip()} is not in docs/measurements.md; copy it from there")
    checked += 1
if checked == 0:
    sys.exit("README.md: the table of measured rows is gone")
print(f"{checked} rows of README.md stand in docs/measurements.md")
