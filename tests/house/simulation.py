#!/usr/bin/env python3
"""docs/simulation.md is what sim/results say; the measured side of those stands in bench/results; and where the
simulator is built it gives the simulated side again, to the last digit, at points drawn from every table, small ones and a
large one; and what Thalweg chose there is what it chooses today.

    simulation.py SOURCE_ROOT BUILD_ROOT
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "sim"))
import beside  # noqa: E402
import reproduce  # noqa: E402
import sparse  # noqa: E402
import validate  # noqa: E402


def read(name):
    return [json.loads(line) for line in (root / f"sim/results/{name}.jsonl").read_text(encoding="utf-8").splitlines()]


subprocess.run([sys.executable, "-B", root / "sim/document.py", "--check"], check=True)

def bytes_of(text):
    return int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1], 0)


# Every point that sim/reproduce.py asks for is there.
for table, commands in reproduce.TABLES.items():
    points = {(row.get("app") or row["collective"], row["machine"], row["ranks"], row["bytes"]) for row in read(table)}
    for command in commands:
        words = dict(zip(command, command[1:]))
        operation = words["app"] if command[0] == "app" else command[0]
        for ranks in words["--ranks"].split(","):
            for count in words.get("--bytes", "0").split(","):
                if (operation, words["--machine"], int(ranks), bytes_of(count)) not in points:
                    sys.exit(f"sim/results/{table}.jsonl lacks {operation} on {words['--machine']}, {ranks} ranks, {count}; run "
                             f"python3 sim/reproduce.py {table}, then sim/document.py")

# Operation by operation the page says how many points the targets count from 1 MiB, and how far they are off.
said = [[cell.strip() for cell in line.split("|")[1:5]] for line in
        (root / "docs/simulation.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
for name in sorted({row["collective"] for row in read("lab")}):
    off = [abs(row["simulated_seconds"] / row["measured_seconds"] - 1) for row in read("lab")
           if row["collective"] == name and row["samples"] >= 15 and row["bytes"] >= 1 << 20]
    line = [name, str(len(off)), f"{100 * statistics.median(off):.1f} %",
            f"{100 * sum(one <= 0.2 for one in off) / len(off):.0f} %"] if off else [name, "-", "-", "-"]
    if line not in said:
        sys.exit(f"docs/simulation.md does not say of the targets: {line}")

lab, natives, wrong, grown = read("lab"), read("natives"), [], 0
stale = "run python3 sim/validate.py --sim build/bin/thalweg-sim, then sim/document.py"


def compare(name, row, samples, least):
    """A point is what bench/results say, or said before they got more rows."""
    global grown
    if samples is None or samples < row["samples"] or least > row["measured_seconds"]:
        wrong.append(f"{name}: {row}; now {samples} samples, {least} s")
    grown += (samples, least) != (row["samples"], row["measured_seconds"])


measured = validate.measured(root / "bench/results")
for row in lab:
    now = measured.pop(tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "algorithm", "mpi")), (None, None))
    compare("lab", row, *now[:2])
rails, by_rails = read("rails"), validate.measured_rails(root / "bench/results")
for row in rails:
    now = by_rails.get(tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "way", "mpi")), (None, None))
    compare("rails", row, *now[:2])
default, alone = validate.measured_natives(root / "bench/results"), validate.measured_onehost(root / "bench/results")
for row in natives:
    now = default.get(tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "mpi")), {})
    compare("natives", row, now.get("samples"), now.get("seconds"))
faces, by_grid = read("faces"), validate.measured_faces(root / "bench/results")


def key_of(face):
    return tuple(tuple(face[field]) if isinstance(face[field], list) else face[field]
                 for field in ("shape", "rate", "grid", "cells", "points", "mpi", "way", "column"))


for row in faces:
    now = by_grid.get(key_of(row), {"seconds": []})["seconds"]
    compare("faces", row, len(now) or None, min(now, default=None))
onehost = read("onehost")
for row in onehost:
    now = alone.get(tuple(row[field] for field in ("collective", "ranks", "bytes", "algorithm", "mpi")), (None, None))
    compare("onehost", row, *now)
overlap, programs = read("overlap"), read("programs")
totals, iterations = beside.measured_overlap(root / "bench/results"), beside.measured_programs(root / "bench/results")


def overlap_key(row):
    return tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "way", "mpi"))


def program_key(row):
    return tuple(row[field] for field in ("shape", "rate", "bytes", "mpi"))


for row in overlap:
    now = totals.get(overlap_key(row), {"total": []})["total"]
    compare("overlap", row, len(now) or None, min(now, default=None))
for row in programs:
    now = iterations.get(program_key(row), {"columns": {}})["columns"].get(row["column"], {"seconds": []})["seconds"]
    compare("programs", row, len(now) or None, min(now, default=None))
uneven, by_pattern = read("sparse"), sparse.measured_sparse(root / "bench/results")
for row in uneven:
    now = by_pattern.get(tuple(row[field] for field in ("pattern", "shape", "rate", "bytes", "way", "mpi")), {})
    compare("sparse", row, now.get("samples"), now.get("seconds"))
for name, rows in (("lab", lab), ("natives", natives), ("rails", rails), ("sparse", uneven), ("faces", faces), ("onehost", onehost),
                   ("overlap", overlap), ("programs", programs)):
    if not rows:
        sys.exit(f"sim/results/{name}.jsonl has no row; {stale}")
if wrong:
    sys.exit("sim/results do not tell what bench/results do; " + stale + "\n" + "\n".join(wrong[:5]))
print(f"{len(lab)} points of ours and {len(natives)} of the natives are those of bench/results")
if measured or grown:
    print(f"remark: {len(measured)} points of bench/results are not simulated, {grown} have more samples now; {stale}")

program = build / "bin/thalweg-sim"
if not program.is_file():
    print("skipped: thalweg-sim is not built: what is simulated was not looked at again")
    sys.exit(77)


def asked(command):
    done = subprocess.run([program, *command], check=True, capture_output=True, text=True, timeout=280)
    return [json.loads(line) for line in done.stdout.splitlines()]


def native(row):
    """The column of a row that a native library ran: its copies are made in another order."""
    if row["reason"].startswith("left to "):
        return row["reason"].split()[2].rstrip(":")
    return row["column"] if row["column"] in ("mpich", "openmpi", "mvapich") else None


published = json.loads(validate.PUBLISHED.read_text(encoding="utf-8"))
said = {(table["name"], int(count)): microseconds * 1e-6 for table in published for count, microseconds in table["microseconds"].items()}
found = {(row["name"], row["bytes"]): row["measured_seconds"] for row in read("published")}
if not said or said != found:
    sys.exit("sim/results/published.jsonl is not of what sim/published.json says; " + stale)
few = [{**table, "microseconds": dict(list(table["microseconds"].items())[::7])} for table in published if table["ranks"] <= 64]
if not few:
    sys.exit("sim/published.json has nothing that is simulated in no time")
with tempfile.TemporaryDirectory() as folder:
    validate.PUBLISHED = pathlib.Path(folder, "few.json")
    validate.PUBLISHED.write_text(json.dumps(few), encoding="utf-8")
    for again in validate.published_rows(program, None):
        if again not in read("published"):
            sys.exit(f"published: now {again}; {stale}")

looked = 0


def look_again(table, row, command):
    global looked
    (again,) = asked(command)
    seconds = again[row.get("figure", validate.FROM_INSTANT)]
    if seconds != row["simulated_seconds"]:
        sys.exit(f"{table}: {row}: now {seconds} s; {stale}")
    looked += 1


def fields(row, *names):
    return [row[name] for name in names]


def hosts_times_bytes(row):
    return int(row["shape"].split("x")[0]) * row["bytes"]


quick = [row for row in lab if row["bytes"] <= 1 << 20]
# Whole messages are simulated in no time, whatever their size.
large = max((row for row in lab if "chunk_bytes" not in row["algorithm"]), key=hosts_times_bytes)
for row in [*quick[:: max(1, len(quick) // 12)], large]:
    look_again("lab", row, validate.question(fields(row, "collective", "shape", "rate", "bytes", "algorithm", "mpi"), row["link_rate"]))
for row in natives[::9]:
    look_again("natives", row, validate.question(fields(row, "collective", "shape", "rate", "bytes", "mpi"), row["link_rate"]))
for row in rails[:: max(1, len(rails) // 4)]:
    key = fields(row, "collective", "shape", "rate", "bytes", "way", "mpi")
    look_again("rails", row, validate.question(key, row["link_rate"], row["rails"]))
for row in [row for row in uneven if row["bytes"] <= 1 << 18][:: max(1, len(uneven) // 12)]:
    look_again("sparse", row, sparse.question_sparse(fields(row, "pattern", "shape", "rate", "bytes", "way", "mpi"), row["link_rate"], root))
for row in faces[:: max(1, len(faces) // 12)]:
    look_again("faces", row, validate.question_faces(key_of(row), row["link_rate"]))
for row in [*onehost[:: max(1, len(onehost) // 8)], max(onehost, key=lambda row: row["bytes"])]:
    look_again("onehost", row, validate.question_onehost(fields(row, "collective", "ranks", "bytes", "algorithm", "mpi")))
for row in overlap[:: max(1, len(overlap) // 12)]:
    (again,) = asked(beside.question_overlap(overlap_key(row), row["link_rate"]))
    if beside.overlapped(again, row["way"]) != (row["simulated_seconds"], row["simulated_percent"]):
        sys.exit(f"overlap: {row}: now {again['overlap']}; {stale}")
    looked += 1
for row in programs[:: max(1, len(programs) // 4)]:
    command = beside.question_programs(program_key(row), row["link_rate"], row["sweep"])
    kinds = {again["column"]: again for again in asked(command)}
    if kinds[beside.KINDS[row["column"]]]["seconds"] != row["simulated_seconds"]:
        sys.exit(f"programs: {row}: now {kinds[beside.KINDS[row['column']]]}; {stale}")
    looked += 1
plain = list(validate.plain_rows(program, None))
if plain != read("plain"):
    sys.exit(f"plain: now {next((row for row in plain if row not in read('plain')), 'fewer rows')}; {stale}")
looked += len(plain)

STEP_SECONDS, LONGEST = 6e-6, 3.0  # of a core: about what a step takes, and what one point may take here


def work(row):
    """Processor seconds that a row takes: as it took when it was written, or about."""
    if "cost" in row:
        return row["cost"]["build_seconds"] + row["cost"]["replay_seconds"]
    if "steps" in row:
        return STEP_SECONDS * row["steps"] * (3 if "overlap" in row else 1)
    # All columns of a program are asked for; windows are asked about two exchanges of all pairs.
    return 2 * STEP_SECONDS * (5 * row["messages"] if "app" in row else 2 * row["ranks"] ** 2)


def drawn(found):
    """A few small points of a table, the least of each machine, and the largest one that takes seconds."""
    found = [row for row in found if row["simulated"]]
    small = [row for row in found if row["ranks"] <= 64]
    some = small[:: max(1, len(small) // 4)]
    quick = [row for row in found if work(row) <= LONGEST and row not in some]
    for machine in sorted({row["machine"] for row in quick} - {row["machine"] for row in some}):
        some.append(min((row for row in quick if row["machine"] == machine), key=work))
    quick = [row for row in quick if row not in some]
    return [*some, *([max(quick, key=work)] if quick else [])]


def command_of(table, row, algorithm=None):
    """By the algorithm that ran, or by another."""
    size = [] if row.get("collective") == "barrier" else ["--bytes", str(row["bytes"])]
    common = ["--machine", row["machine"], "--ranks", str(row["ranks"]), *size, "--rails", str(row["rails"]), "--json", "--quiet"]
    if "app" in row:
        return ["app", row["app"], *common, "--repeat", str(row["repeat"]), "--mpi", row["family"],
                *(["--per-host", "1"] if row["ranks"] == row["hosts"] else [])]
    if table == "windows":
        return ["alltoallv", "--rma", *common]
    common += ["--pattern", row["pattern"]] if "pattern" in row else []
    per_host = [] if table not in ("allgather", "eight", "halo") else ["--per-host", str(row["ranks"] // row["hosts"])]
    flags = {"--in-turn": row["in_turn"], "--overlap": "overlap" in row, "--star": row.get("fabric") == "star",
             "--libucp": table == "puts"}
    return [row["collective"], *common, "--mapping", row["mapping"], "--repeat", str(row["repeat"]), "--algorithm",
            algorithm or native(row) or row["algorithm"], *per_host, *(flag for flag, given in flags.items() if given)]


for table in reproduce.TABLES:
    kept = ("per_call_seconds",) if table == "windows" else ("seconds", "overlap")
    points = drawn(read(table))
    if not points:
        sys.exit(f"{table}: no point is simulated again")
    for row in points:
        found = [line for line in asked(command_of(table, row)) if "app" not in row or line["column"] == row["column"]]
        if [[line.get(field) for field in kept] for line in found] != [[row.get(field) for field in kept]]:
            what = row.get("algorithm") or row.get("app", "windows")
            sys.exit(f"{table}: {what}, {row.get('column', '')}, {row['bytes']} bytes, {row['ranks']} ranks: now {found}, sim/results "
                     f"say {[row.get(field) for field in kept]}; run python3 sim/reproduce.py {table}, then sim/document.py")
        looked += 1
print(f"{looked} points were simulated again, with the same digits")


def choices(found):
    """Of a table's rows that Thalweg chose, the quickest of each operation, machine and size."""
    quickest = {}
    for row in sorted((row for row in found if row.get("column") == "auto" and work(row) <= LONGEST), key=work):
        quickest.setdefault((row["collective"], row["machine"], row["bytes"]), row)
    found = [quickest[key] for key in sorted(quickest)]
    return found[:: max(1, len(found) // 4)]


chosen = 0
for table in reproduce.TABLES:
    for row in choices(read(table)):
        (again,) = asked(command_of(table, row, "auto"))
        now, then = (f"{line['algorithm']} ({line['predicted_seconds']} s by the model)" for line in (again, row))
        if now != then:
            sys.exit(f"{table}: {row['collective']} on {row['machine']}, {row['ranks']} ranks, {row['bytes']} bytes: Thalweg "
                     f"chooses {now} today, and sim/results say {then}; run python3 sim/reproduce.py {table}, then "
                     "sim/document.py")
        chosen += 1
if not chosen:
    sys.exit("sim/results have no row that Thalweg chose")
print(f"{chosen} choices are today's")
