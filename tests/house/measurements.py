#!/usr/bin/env python3
"""docs/measurements.md and its pictures are what the result files say, and the figures in README.md are those of that
page, in a table as `make demo` prints it."""
import pathlib
import re
import subprocess
import sys
import tempfile

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


drawn = {}  # pictures of all pages, by name


def made_of(name, *arguments):
    """The page of that name; its pictures are kept in `drawn`."""
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        made = pathlib.Path(folder) / f"{name}.md"
        subprocess.run([thalweg, "bench", "document", "--out", made, *arguments], check=True)
        drawn.update({path.name: path.read_bytes() for path in made.parent.glob("pictures/*")})
        return made.read_text(encoding="utf-8")


if made_of("measurements", *results) != page:
    sys.exit("docs/measurements.md is not what bench/results say: run scripts/lab-tables document")
machines = [path for path in sorted(root.glob("bench/results/*")) if path.is_dir()]
if {path.stem for path in root.glob("docs/measurements-*.md")} != {f"measurements-{machine.name}" for machine in machines}:
    sys.exit(f"docs/measurements-MACHINE.md: pages of {', '.join(machine.name for machine in machines)}, and of no other")
for machine in machines:
    own = [path for kind in kinds for path in sorted(machine.glob(f"{kind}-*.jsonl"))]
    if {path.name for path in machine.iterdir()} - {path.name for path in own} != {"about.md"}:
        sys.exit(f"{machine}: result files of {', '.join(kinds)}, and about.md, which says what machine that was")
    name = f"measurements-{machine.name}"
    if made_of(name, "--about", machine / "about.md", *own) != (root / f"docs/{name}.md").read_text(encoding="utf-8"):
        sys.exit(f"docs/{name}.md is not what {machine} says: run scripts/lab-tables document")
kept = {path.name: path.read_bytes() for path in root.glob("docs/pictures/measurements*")}
if kept != drawn:
    wrong = sorted(name for name in kept.keys() | drawn.keys() if kept.get(name) != drawn.get(name))
    sys.exit(f"docs/pictures: {', '.join(wrong)} not as bench/results say: run scripts/lab-tables document, remove what "
             "is on no page")
if not drawn:
    sys.exit("docs/measurements.md shows no picture")


def milliseconds(text):
    number, unit = text.split()
    return f"{float(number) * {'s': 1000, 'ms': 1, 'us': 0.001}[unit]:.2f}"


# Broadcasts as the demo's rows, by MPI and bytes.
measured = {}
for line in page.split("\n## The trimmed ring")[0].splitlines():
    row = cells(line)
    if len(row) > 10 and row[0] in names.values() and row[1] == "4x2" and re.search(r"[KM]iB$", row[2]):
        size, unit = row[2].split()
        size = str(int(size) << {"KiB": 10, "MiB": 20}[unit])
        measured[row[0], size] = [size, milliseconds(row[3]), milliseconds(row[5]), f"{row[6]}x", milliseconds(row[8]), row[9],
                                  row[-1]]

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

readme = (root / "README.md").read_text(encoding="utf-8")
header = re.search(r"def print_table.*?say\(f\"(.*?)\"\)", (root / "scripts/demo.py").read_text(encoding="utf-8"), re.DOTALL)[1]
columns = re.findall(r"\{'([^']+)':>\d+\}", header) + [header.split("}")[-1].strip()]
sizes = re.search(r'^SIZES = \[(.*)\]$', (root / "scripts/demo.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
sizes = [str(int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]) for size in re.findall(r'"(\w+)"', sizes)]
if f"| {' | '.join(columns)} |" not in readme:
    sys.exit(f"README.md: no table has the columns of the demo, {', '.join(columns)}")
shown, checked = [], 0
for line in readme.splitlines():
    row = cells(line)
    if len(row) == 7 and row[0] in ("radix sort", "conjugate gradient"):
        if applications.get((row[0], names[row[1]], "4x1")) != tuple(row[2:]):
            sys.exit(f"README.md: the row {line.strip()} is not in docs/measurements.md; copy it from there")
        checked += 1
    if len(row) == len(columns) and row[0].isdigit():
        if measured.get(("mpich", row[0])) != row:
            sys.exit(f"README.md: the row {line.strip()} is not in docs/measurements.md, which has "
                     f"{measured.get(('mpich', row[0]))}")
        shown.append(row[0])
if shown != sizes:
    sys.exit(f"README.md: rows of {', '.join(shown)} bytes in the table of the demo, which has {', '.join(sizes)}")
others = re.search(r"at 4 MiB the speed-up is (\S+) under\s+Open MPI \S+ and (\S+) under Intel MPI", readme)
if not others or [measured[mpi, str(4 << 20)][3] for mpi in ("openmpi", "impi")] != list(others.groups()):
    sys.exit(f"README.md: the speed-ups under Open MPI and Intel MPI are {measured['openmpi', str(4 << 20)][3]} and "
             f"{measured['impi', str(4 << 20)][3]}")

# How many points are slower, of how many, as the page has it at a glance.
glance = {}
for line in page.split("\n## At a glance")[1].split("\n### ")[0].splitlines():
    row = cells(line)
    if len(row) == 10 and row[6].isdigit():
        glance[row[0]] = int(row[8]), int(row[6])
judged = {"broadcasts": r"MPI_Bcast", "allgathers and allreduces": r"MPI_All(gather|reduce)",
          "nonblocking collectives, computing meanwhile": r"MPI_I(bcast|all\w+), computing meanwhile",
          "nonblocking collectives, waited for at once": r"MPI_I(bcast|all\w+), waited for at once",
          "alltoalls, planned and repeated": r"MPI_Alltoallv.*",
          "exchanges between neighbours": r"MPI_(N|In)eighbor_alltoallw.*"}
for name, operations in judged.items():
    found = [counts for operation, counts in glance.items() if re.fullmatch(operations, operation)]
    slower, points = (str(sum(each)) for each in zip(*found))
    rows = [row for row in map(cells, readme.splitlines()) if row and row[0] == name]
    if len(rows) != 1 or rows[0][1:3] != [points, slower]:
        sys.exit(f"README.md: of {points} points of {name} {slower} are slower, and one row of a table is to say so")
    checked += 1
if not checked:
    sys.exit("README.md: no row of the applications")
checked += len(shown)
print(f"{checked} rows of README.md stand in docs/measurements.md")
