#!/usr/bin/env python3
"""docs/simulation.md is what sim/results say; the measured side of those stands in bench/results; and where the
simulator is built it gives the simulated side again, to the last digit, at points drawn from every table.

    simulation.py SOURCE_ROOT BUILD_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "sim"))
import reproduce  # noqa: E402
import validate  # noqa: E402


def read(name):
    return [json.loads(line) for line in (root / f"sim/results/{name}.jsonl").read_text(encoding="utf-8").splitlines()]


subprocess.run([sys.executable, "-B", root / "sim/document.py", "--check"], check=True)

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
for row in read("onehost"):
    now = alone.get(tuple(row[field] for field in ("collective", "ranks", "bytes", "algorithm", "mpi")), (None, None))
    compare("onehost", row, *now)
if wrong:
    sys.exit("sim/results do not tell what bench/results do; " + stale + "\n" + "\n".join(wrong[:5]))
print(f"{len(lab)} points of ours and {len(natives)} of the natives are those of bench/results")
if measured or grown:
    print(f"remark: {len(measured)} points of bench/results are not simulated, {grown} have more samples now; {stale}")

program = build / "bin/thalweg-sim"
if not program.is_file():
    print("thalweg-sim is not built: what is simulated was not looked at again")
    sys.exit(0)


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
if said != found:
    sys.exit("sim/results/published.jsonl is not of what sim/published.json says; " + stale)
few = [{**table, "microseconds": dict(list(table["microseconds"].items())[::7])} for table in published if table["ranks"] <= 64]
with tempfile.TemporaryDirectory() as folder:
    validate.PUBLISHED = pathlib.Path(folder, "few.json")
    validate.PUBLISHED.write_text(json.dumps(few), encoding="utf-8")
    for again in validate.published_rows(program, None):
        if again not in read("published"):
            sys.exit(f"published: now {again}; {stale}")

looked = 0
quick = [row for row in lab if row["bytes"] <= 1 << 20]
for row in quick[:: max(1, len(quick) // 12)]:
    key = tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "algorithm", "mpi"))
    (again,) = asked(validate.question(key, row["link_rate"]))
    if again["seconds"] != row["simulated_seconds"]:
        sys.exit(f"{key}: simulated in {again['seconds']} s, but sim/results/lab.jsonl says {row['simulated_seconds']}; {stale}")
    looked += 1
for row in natives[::9]:
    (again,) = asked(validate.question([row[field] for field in ("collective", "shape", "rate", "bytes", "mpi")], row["link_rate"]))
    if again["seconds"] != row["simulated_seconds"]:
        sys.exit(f"natives: {row}: now {again['seconds']} s; {stale}")
    looked += 1
for row in faces[:: max(1, len(faces) // 12)]:
    (again,) = asked(validate.question_faces(key_of(row), row["link_rate"]))
    if again["seconds"] != row["simulated_seconds"]:
        sys.exit(f"faces: {row}: now {again['seconds']} s; {stale}")
    looked += 1
plain = list(validate.plain_rows(program, None))
if plain != read("plain"):
    sys.exit(f"plain: now {next((row for row in plain if row not in read('plain')), 'fewer rows')}; {stale}")
looked += len(plain)
for name in reproduce.TABLES:
    # By the algorithm that ran: what would be chosen today is the selector's affair, and its tests'.
    small = [row for row in read(name) if row["simulated"] and row["ranks"] <= 64 and "overlap" not in row]
    for row in small[:: max(1, len(small) // 4)]:
        if "app" in row:
            again = asked(["app", row["app"], "--machine", row["machine"], "--ranks", str(row["ranks"]), "--bytes",
                           str(row["bytes"]), "--repeat", str(row["repeat"]), "--mpi", row["family"], "--json", "--quiet",
                           *(["--per-host", "1"] if row["ranks"] == row["hosts"] else [])])
            same = [line["seconds"] for line in again if line["column"] == row["column"]]
            if same != [row["seconds"]]:
                sys.exit(f"{name}: {row['app']}, {row['column']}, {row['bytes']} bytes, {row['ranks']} ranks: now {same} s, "
                         f"sim/results say {row['seconds']}; run python3 sim/reproduce.py {name}, then sim/document.py")
            looked += 1
            continue
        if name == "windows":
            (again,) = asked(["alltoallv", "--rma", "--machine", row["machine"], "--ranks", str(row["ranks"]), "--bytes",
                              str(row["bytes"]), "--json", "--quiet"])
            if again["per_call_seconds"] != row["per_call_seconds"]:
                sys.exit(f"windows: {row['ranks']} ranks, {row['bytes']} bytes: now {again['per_call_seconds']} s, sim/results "
                         f"say {row['per_call_seconds']}; run python3 sim/reproduce.py windows, then sim/document.py")
            looked += 1
            continue
        per_host = [] if name not in ("allgather", "eight", "halo") else ["--per-host", str(row["ranks"] // row["hosts"])]
        (again,) = asked([row["collective"], "--machine", row["machine"], "--ranks", str(row["ranks"]), "--bytes",
                          str(row["bytes"]), "--mapping", row["mapping"], "--rails", str(row["rails"]), "--repeat",
                          str(row["repeat"]), *(["--in-turn"] if row["in_turn"] else []), "--algorithm",
                          native(row) or row["algorithm"], "--json", "--quiet", *per_host])
        if again["seconds"] != row["seconds"]:
            sys.exit(f"{name}: {row['algorithm']} of {row['bytes']} bytes, {row['ranks']} ranks: now {again['seconds']} s, "
                     f"sim/results say {row['seconds']}; run python3 sim/reproduce.py {name}, then sim/document.py")
        looked += 1
print(f"{looked} points were simulated again, with the same digits")
