#!/usr/bin/env python3
"""docs/measurements.md and its pictures are what the result files say, and the figures in README.md are those of that
page, in a table as `make demo` prints it."""
import collections
import json
import pathlib
import re
import statistics
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

# How many points are slower, and undecided, of how many, as the page has it at a glance.
glance = {}
for line in page.split("\n## At a glance")[1].split("\n### ")[0].splitlines():
    row = cells(line)
    if len(row) == 10 and row[6].isdigit():
        glance[row[0]] = int(row[8]), int(row[9]), int(row[6])
judged = {"broadcasts": r"MPI_Bcast", "allgathers and allreduces": r"MPI_All(gather|reduce)",
          "nonblocking collectives, computing meanwhile": r"MPI_I(bcast|all\w+), computing meanwhile",
          "nonblocking collectives, waited for at once": r"MPI_I(bcast|all\w+), waited for at once",
          "alltoalls, planned and repeated": r"MPI_Alltoallv.*",
          "exchanges between neighbours": r"MPI_(N|In)eighbor_alltoallw.*"}
for name, operations in judged.items():
    found = [counts for operation, counts in glance.items() if re.fullmatch(operations, operation)]
    slower, undecided, points = (str(sum(each)) for each in zip(*found))
    rows = [row for row in map(cells, readme.splitlines()) if row and row[0] == name]
    if len(rows) != 1 or rows[0][1:4] != [points, slower, undecided]:
        sys.exit(f"README.md: of {points} points of {name} {slower} are slower and {undecided} undecided, and one row of a table "
                 "is to say so")
    checked += 1
if not checked:
    sys.exit("README.md: no row of the applications")

# What README.md says of planned exchanges, in times of the MPI's own calls of the same launch.
exchanges = collections.defaultdict(list)
for path in results:
    if path.stem.split("-")[0] not in ("alltoallv", "halo"):
        continue
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["phase"] == "exchange":
            what = row["exchange"]["pattern"], row["bytes"]
        elif row["phase"] == "halo" and not row["halo"]["corners"] and not row["halo"].get("upwind"):
            what = "x".join(map(str, row["halo"]["grid"])), "x".join(map(str, row["halo"]["cells"]))
        else:
            continue
        if row["seconds"]:
            exchanges[row["context"]["mpi_name"], row["context"]["shape"], *what].append(row)


def of_native(mpi, shape, *what, column="thalweg init"):
    """The newest row of the column, and its time over that of the native column of its launch."""
    ours = max((row for row in exchanges[mpi, shape, *what] if row["column"] == column), key=lambda row: row["launch"])
    native = next(row for row in exchanges[mpi, shape, *what]
                  if row["launch"] == ours["launch"] and row["column"] == "native")
    return statistics.median(ours["seconds"]) / statistics.median(native["seconds"]), ours


def ratios(mpis, shape, *whats, columns=("thalweg init",)):
    return [of_native(mpi, shape, *what, column=column)[0] for mpi in mpis for what in whats for column in columns]


def texts(values):
    return ", ".join(f"{value:.2f}" for value in values)


def span(values):
    return f"{min(values):.2f} to {max(values):.2f}"


every, between = tuple(names.values()), ("3x3", "4x1", "4x2", "8x1")
mixes = [("4x2x1", cells) for cells in ("640x8x1024", "1024x2x1024", "2048x1x1024")]
inside = [("1x2x1", cells) for cells in ("640x8x1024", "1024x2x1024")]


def medium(mpis):
    return [of_native(*key)[0] for key in exchanges if key[0] in mpis and key[1] in between and key[2] == "dense" and
            16 << 10 <= key[3] <= 64 << 10 and any(row["column"] == "thalweg init" for row in exchanges[key])]


# Of allgathers on 4 and 8 hosts: what the agent takes of the time of the communication, and what the sockets' threads do.
gathers = {}
for path in results:
    if path.stem.split("-")[0] not in ("overlap", "rails"):
        continue
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        context = row["context"]
        if (row["collective"] != "iallgather" or not row["seconds"] or context.get("environment", "") or
                context["shape"] not in ("4x1", "4x2", "8x1") or context.get("rails", 1) > 1):
            continue
        for column, threads in (("thalweg", "agent"), ("sockets", "other")):
            key = column, context["mpi_name"], context["shape"], context["rate"], row["bytes"]
            if row["column"] == column and row["launch"] >= gathers.get(key, (0, 0))[0]:
                seconds = row["overlap"][f"{threads}_cpu_seconds"]
                gathers[key] = row["launch"], 100 * seconds / statistics.median(row["seconds"])


def shares(column, long):
    return [share for key, (_, share) in gathers.items() if key[0] == column and (key[-1] >= 256 << 10) == long]


def less(application):
    found = [float(figures[3].split()[0]) for (name, _, shape), figures in applications.items()
             if name == application and shape in ("4x2", "8x1")]
    return f"{min(found):.0f} to {max(found):.0f} %"


agent, sockets = shares("thalweg", True), shares("sockets", True)
product = {mpi: of_native(mpi, "8x1", "poisson-4x4x4.mtx", 8 << 10) for mpi in every}
message = {row["exchange"]["link_bytes"] / row["exchange"]["neighbours"] / 1024 for _, row in product.values()}
both = {"columns": ("thalweg", "thalweg init")}
square = [of_native(mpi, "4x1", "2x2x1", "90x90x90", column="thalweg")[0] for mpi in ("openmpi", "impi")]
said = " ".join(readme.split())
for sentence in (
        f"{min(agent):.0f} to {max(agent):.0f} % of the time that the communication takes (sockets {min(sockets):.0f} to "
        f"{max(sockets):.0f} %), of shorter ones up to {max(shares('thalweg', False)):.0f} % "
        f"({max(shares('sockets', False)):.0f} %)",
        f"the sort takes {less('radix sort')} less, the conjugate gradient {less('conjugate gradient')}",
        "wire's time) | " + " | ".join(texts(ratios([mpi], "4x1", ("dense", 256 << 10))) for mpi in every),
        "between hosts | " + " | ".join(texts(ratios([mpi], "4x2", *mixes)) for mpi in every),
        f"5 and 8 MiB | {texts(ratios(['mpich'], '1x2', *inside))} | | {texts(ratios(['impi'], '1x2', *inside))}",
        f"strided ones | {texts(ratios(['mpich'], '1x2', ('2x1x1', '720x720x12')))} |",
        f"take {span(medium(('mpich', 'impi')))} times the time of MPICH and of Intel MPI and {span(medium(('openmpi',)))}",
        f"messages have {message.pop():.0f} KiB takes {span([ratio for ratio, _ in product.values()])} times",
        f"take {span(ratios(every, '4x2', ('2x2x2', '90x90x90'), **both))} times the time of all three",
        f"as long ({span(ratios(every, '2x4', ('2x2x2', '90x90x90'), **both))})",
        f"take {square[0]:.2f} and {square[1]:.2f} times that of Open MPI and Intel MPI"):
    if sentence not in said:
        sys.exit(f"README.md does not say, as bench/results do: {sentence}")
    checked += 1
checked += len(shown)
print(f"{checked} rows of README.md stand in docs/measurements.md")
