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
kinds = ("bcast", "rings", "onehost", "small", "blocking", "overlap", "rails", "alltoallv", "halo", "waiters", "apps")  # in the order of scripts/lab-tables
results = [path for kind in kinds for path in sorted(root.glob(f"bench/results/{kind}-*.jsonl"))]
left = {path.name for path in root.glob("bench/results/*.jsonl")} - {path.name for path in results}
if left - {"native-settings.jsonl"}:  # the lab's own sweep, docs/lab.md
    sys.exit(f"bench/results: {', '.join(sorted(left))} is on no page; docs/measurements.md takes {', '.join(kinds)}")
made = subprocess.run([thalweg, "bench", "document", *results], check=True, capture_output=True, text=True).stdout
if made != page:
    sys.exit("docs/measurements.md is not what bench/results say: run scripts/lab-tables document")

measured = set()
for line in page.splitlines():
    row = cells(line)
    if len(row) > 10 and row[1] == "4x2":
        measured.add((row[0], row[2], row[3], row[5], row[6], row[8], row[9]))

# The applications: the first table of their section has a row each, the second one each version.
applications = {}
for line in page.splitlines():
    row = cells(line)
    if len(row) > 11 and row[0] in ("radix sort", "conjugate gradient"):
        key = (row[0], row[1], row[2])
        if row[3] == "nonblocking":
            applications[key] = (*applications[key][:1], row[5], *applications[key][1:])
        elif row[3].endswith("iB"):
            applications[key] = (row[5], row[7], row[8], row[9])

for path in results:
    kind, mpi = path.stem.split("-")[:2]
    heading = {"bcast": f"\n## {mpi}\n", "rings": "\n## The trimmed ring", "onehost": f"\n### {mpi}\n",
               "small": f"\n### {mpi}, short calls\n", "overlap": f"\n### {mpi}, overlap\n",
               "rails": "\n### Several links per host\n",
               "blocking": f"\n### {mpi}, blocking\n",
               "alltoallv": f"\n### {mpi}, alltoallv\n",
               "halo": f"\n### {mpi}, halo exchange\n",
               "waiters": "\n## How a waiting thread wakes\n", "apps": "\n## Applications\n"}[kind]
    if heading not in page:
        sys.exit(f"docs/measurements.md: the rows of {path.name} have no table")

checked = 0
for line in (root / "README.md").read_text(encoding="utf-8").splitlines():
    row = cells(line)
    if len(row) == 7 and row[0] in ("radix sort", "conjugate gradient"):
        if applications.get((row[0], names[row[1]], "4x1")) != tuple(row[2:]):
            sys.exit(f"README.md: the row {line.strip()} is not in docs/measurements.md; copy it from there")
        checked += 1
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
