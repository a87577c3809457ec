"""The command: what it refuses in one line, what it prints, the same twice, and what it says where SimGrid is missing.

    command.py THALWEG
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

thalweg = pathlib.Path(sys.argv[1])


def run(*words, program=thalweg):
    return subprocess.run([program, "sim", *words], capture_output=True, text=True, timeout=60, check=False)


def refused(sentence, *words):
    done = run(*words)
    assert done.returncode == 2, (words, done.returncode, done.stderr)
    assert sentence in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)


refused("which operation?", "--ranks", "4")
refused("there is no simulation of scan", "scan", "--ranks", "4", "--bytes", "8")
refused("--ranks is missing", "bcast", "--bytes", "8")
refused("--bytes is missing", "bcast", "--ranks", "8")
refused("--bytes 1X is not valid", "bcast", "--ranks", "8", "--bytes", "1X")
refused("maybe slingshot?", "bcast", "--machine", "slingshott", "--ranks", "8", "--bytes", "8")
refused("--rate fast is not valid", "bcast", "--rate", "fast", "--ranks", "8", "--bytes", "8")
refused("--trace shows one operation", "bcast", "--ranks", "8", "--bytes", "8", "--trace", "t.json")
refused("cannot read the tuning table", "bcast", "--ranks", "8", "--bytes", "8", "--tuning", "/nowhere.json")
assert run("bcast", "--algorithm", "chian", "--ranks", "8", "--bytes", "8").returncode == 2
refused("which program?", "app", "--ranks", "8", "--bytes", "8K")
refused("which program?", "app", "weather", "--ranks", "8", "--bytes", "8K")
refused("is not expected behind bcast", "bcast", "stencil", "--ranks", "8", "--bytes", "8K")
refused("--sweep slow is not valid", "app", "cg", "--sweep", "slow", "--ranks", "8", "--bytes", "8K")
refused("--rma is of alltoallv", "bcast", "--rma", "--ranks", "8", "--bytes", "8K")
listed = run("--list-machines")
assert listed.returncode == 0 and "xc40" in listed.stdout and "1536 hosts x 24 cores" in listed.stdout, listed
help_text = run("--help").stdout
assert "--mapping" in help_text and "alltoallv" in help_text, help_text

# A copy of the command alone is a Thalweg that was built without SimGrid.
with tempfile.TemporaryDirectory() as folder:
    alone = shutil.copy(thalweg, folder)
    done = run("bcast", "--ranks", "8", "--bytes", "8", program=alone)
    assert done.returncode == 1 and "built without SimGrid: install it (Debian: libsimgrid-dev)" in done.stderr, done
    refused("--ranks is missing", "bcast", "--bytes", "8")

if not (thalweg.parent / "thalweg-sim").is_file():
    print("thalweg-sim is not built")
    sys.exit(77)

refused("the machine has 8", "bcast", "--machine", "gbe8", "--ranks", "9", "--per-host", "1", "--bytes", "8")
ask = ("bcast", "--machine", "gbe8", "--ranks", "24,96", "--bytes", "4K,1M", "--mapping", "permuted", "--seed", "7")
first, second = (run(*ask, "--json") for _ in range(2))
assert first.returncode == 0 and first.stdout == second.stdout, first.stderr
rows = [json.loads(line) for line in first.stdout.splitlines()]
assert [(row["ranks"], row["bytes"], row["column"]) for row in rows] == [
    (ranks, size, column) for ranks in (24, 96) for size in (4096, 1 << 20) for column in ("auto", "mpich", "openmpi")]
assert all(row["simulated"] and row["seconds"] >= row["limit_seconds"] for row in rows), first.stdout
assert run(*ask[:-1], "8", "--json").stdout != first.stdout
table = run(*ask)
assert table.returncode == 0 and table.stderr == "" and "permuted mapping, 12 ranks per host" in table.stdout, table
# A point that is too dear is the cost model's, and says so.
dear = run("allgather", "--machine", "ib2304", "--ranks", "2304", "--bytes", "8", "--algorithm", "ring", "--json",
           "--most-memory", "200M")
(row,) = [json.loads(line) for line in dear.stdout.splitlines()]
assert dear.returncode == 0 and not row["simulated"] and row["seconds"] == row["predicted_seconds"] > 0, dear
assert row["reason"] == "takes more than 200 MiB", row
# Four times the rails, links busy for a quarter of the time.
wide = [json.loads(run("bcast", "--machine", "gbe8", "--ranks", "8", "--per-host", "1", "--bytes", "16M", "--algorithm",
                       "chain:chunk_bytes=64K", "--json", "--rails", rails).stdout)["seconds"] for rails in ("1", "4")]
assert 3 < wide[0] / wide[1] < 4.1, wide
# Programs: the same twice, no iteration shorter than its computation, and an agent hides no less than the caller.
for app in ("stencil", "amr", "sort", "cg", "fourier"):
    ask = ("app", app, "--machine", "xc40", "--ranks", "48", "--bytes", "256K", "--json", "--repeat", "2")
    first, second = run(*ask), run(*ask)
    assert first.returncode == 0 and first.stdout == second.stdout, first
    rows = {row["column"]: row for row in map(json.loads, first.stdout.splitlines())}
    assert len(rows) == 5 and all(row["simulated"] and row["seconds"] > row["compute_seconds"] > 0
                                  for row in rows.values()), first.stdout
    assert rows["thalweg, agent"]["seconds"] <= rows["thalweg, started"]["seconds"] * 1.02, first.stdout
assert "hidden" in run("app", "stencil", "--ranks", "8", "--bytes", "64K").stdout
# Windows: what a plan makes once, a call makes every time; where nothing is registered the rest remains.
ask = ("alltoallv", "--rma", "--ranks", "16", "--per-host", "2", "--bytes", "64K", "--json")
(dane,), (gbe,) = ([json.loads(line) for line in run(*ask, "--machine", machine).stdout.splitlines()]
                   for machine in ("dane", "gbe8"))
assert dane["registered_seconds"] > 0 == gbe["registered_seconds"] and gbe["agreed_seconds"] > 0, (dane, gbe)
for row in (dane, gbe):
    parts = row["agreed_seconds"] + row["registered_seconds"]
    assert abs(row["per_call_seconds"] - row["per_plan_seconds"] - parts) < 1e-12, row
print("the command does what it says")
