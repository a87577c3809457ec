"""The command: what it refuses in one line, what it prints, the same twice, and what it says where SimGrid is missing.

    command.py THALWEG
"""
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile

thalweg = pathlib.Path(sys.argv[1])


def run(*words, program=thalweg):
    return subprocess.run([program, "sim", *words], capture_output=True, text=True, timeout=280, check=False)


def refused(sentence, *words, status=2):
    done = run(*words)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    assert sentence in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)


refused("which operation? bcast, allgather, allreduce, barrier, alltoallv, halo, or app", "--ranks", "4")
refused("there is no simulation of scan", "scan", "--ranks", "4", "--bytes", "8")
refused("--ranks is missing: how many, such as", "bcast", "--bytes", "8")
refused("--bytes is missing: a size, such as", "bcast", "--ranks", "8")
refused("--bytes 1X is not valid", "bcast", "--ranks", "8", "--bytes", "1X")
refused("maybe slingshot?", "bcast", "--machine", "slingshott", "--ranks", "8", "--bytes", "8")
refused("--rate fast is not valid", "bcast", "--rate", "fast", "--ranks", "8", "--bytes", "8")
for rate in ("1bit", "101tbit", "1000000000000000000000GB/s"):
    refused(f"--rate {rate} is not valid: expected a rate such as 100mbit, 25gbit, 12GB/s or 900MB/s, from 1kbit to 100tbit", "bcast",
            "--rate", rate, "--ranks", "8", "--bytes", "8")
refused("--trace shows one operation", "bcast", "--ranks", "8", "--bytes", "8", "--trace", "t.json")
refused("--trace: there is no folder /nowhere for t.json", "bcast", "--ranks", "8", "--bytes", "8", "--algorithm",
        "chain", "--trace", "/nowhere/t.json")
refused("--trace= has no value", "bcast", "--ranks", "8", "--bytes", "8", "--algorithm", "chain", "--trace=", "--json")
for path in ("/nowhere.json", "/tmp"):
    refused(f"cannot read the tuning table {path}", "bcast", "--ranks", "8", "--bytes", "8", "--tuning", path)
assert run("bcast", "--algorithm", "chian", "--ranks", "8", "--bytes", "8").returncode == 2
refused("--algorithm impi: no model of its defaults; --mpi impi simulates Thalweg over it", "bcast", "--ranks", "8",
        "--bytes", "8", "--algorithm", "impi")
refused("--mpi impi: no model of its defaults, which app compares with", "app", "stencil", "--mpi", "impi", "--ranks", "8",
        "--bytes", "8K")
refused("--mpi impi: no model of its defaults, which --rma compares with", "alltoallv", "--rma", "--mpi", "impi", "--ranks",
        "8", "--bytes", "8K")
refused("which program?", "app", "--ranks", "8", "--bytes", "8K")
refused("which program?", "app", "weather", "--ranks", "8", "--bytes", "8K")
refused("is not expected behind bcast", "bcast", "stencil", "--ranks", "8", "--bytes", "8K")
refused("--sweep slow is not valid", "app", "cg", "--sweep", "slow", "--ranks", "8", "--bytes", "8K")
refused("--rma is of alltoallv", "bcast", "--rma", "--ranks", "8", "--bytes", "8K")
refused("--ranks 0 is not valid", "bcast", "--ranks", "0", "--bytes", "8")
refused('--ranks "8,," is not valid: expected numbers of ranks from 1', "bcast", "--ranks", "8,,", "--bytes", "8")
for some in ("8,", ",8", ",", "8,,16"):
    refused(f'--ranks "{some}" is not valid: expected numbers of ranks', "bcast", "--ranks", some, "--bytes", "8")
    refused(f'--bytes "{some}" is not valid: expected a number of bytes', "bcast", "--ranks", "8", "--bytes", some)
    refused(f'--cells "{some}": give numbers like 64 or 128x128x16, with commas', "halo", "--ranks", "8", "--cells", some)
refused("2000000 ranks need 17858 hosts of 112; the machine has 1496: ask for fewer ranks", "bcast", "--ranks", "8,2000000",
        "--bytes", "8")
refused("there is no mapping blok; known: block, cyclic, permuted, ragged", "bcast", "--ranks", "8", "--bytes", "8",
        "--mapping", "blok")
refused("halo is an alltoallv of few pairs: there is no algorithm", "halo", "--ranks", "8", "--bytes", "8", "--algorithm", "chain")
refused("--algorithm mvapich: no model of its bcast", "bcast", "--ranks", "8", "--bytes", "8", "--algorithm", "mvapich")
refused("cannot read /tmp, which is a folder", "bcast", "--machine", "/tmp", "--ranks", "8", "--bytes", "8")
for seed in ("-1", "18446744073709551616", "1.5"):
    refused(f"--seed: {seed} is not valid: expected a whole number", "bcast", "--ranks", "8", "--bytes", "8", "--seed", seed)
refused("--ranks x is not valid", "bcast", "--ranks", "8,x", "--bytes", "8")
refused("--per-host", "bcast", "--ranks", "8", "--bytes", "8", "--per-host", "-2")
refused("a host of gbe8 has 12 cores", "bcast", "--machine", "gbe8", "--ranks", "8", "--bytes", "8", "--per-host", "13")
refused("no rank has room for more than 1 TiB", "allgather", "--ranks", "4096", "--bytes", "512M")
refused("no rank has room for more than 1 TiB", "bcast", "--ranks", "4", "--bytes", "2048G")
refused("--bytes 1T among 16 ranks keep a link busy for longer than the cost model can count, 53 days", "bcast",
        "--ranks", "16", "--per-host", "4", "--bytes", "1K,1T", "--rate", "1mbit")
refused("--bytes is not of barrier", "barrier", "--ranks", "4", "--bytes", "8")
refused("--grid is of halo", "bcast", "--ranks", "8", "--bytes", "8", "--grid", "4x2x1")
refused("--points is of --cells", "halo", "--ranks", "8", "--bytes", "8", "--points", "27")
refused("--bytes and --cells: give one of them", "halo", "--ranks", "8", "--bytes", "8", "--cells", "64")
refused("--bytes is missing: a size, such as --bytes 64K,1M, or --cells", "halo", "--ranks", "8")
refused("--grid 4x2x1 has 8 ranks, there are 16", "halo", "--ranks", "8,16", "--grid", "4x2x1", "--bytes", "8K")
refused("--grid 4by2: give 3 numbers like 2x2x2, or auto", "halo", "--ranks", "8", "--grid", "4by2", "--cells", "64")
refused("--grid 99999x99999x1: there are more than 4194304 ranks", "halo", "--ranks", "8", "--grid", "99999x99999x1", "--cells", "64")
refused("--grid 2x1x1x1x1", "halo", "--ranks", "2", "--grid", "2x1x1x1x1", "--bytes", "8")
refused("--grid 2x2x1x1: faces of --bytes are of three dimensions, give --cells", "halo", "--grid", "2x2x1x1", "--bytes", "8K")
refused("--cells 8x8: the cells have 2 dimensions and the ranks 3", "halo", "--grid", "4x2x1", "--cells", "8x8")
refused("--cells many: give numbers like 64 or 128x128x16", "halo", "--ranks", "8", "--cells", "64,many")
refused("--points 9: in 3 dimensions there are 7 and 27", "halo", "--ranks", "8", "--cells", "64", "--points", "9")
refused("--ranks is missing", "halo", "--cells", "64")
refused("FILE is required; see `thalweg sim plot --help`", "plot")
assert "(needs Python's matplotlib)" in run("plot", "--help").stdout
refused("--trace is not of app", "app", "cg", "--ranks", "8", "--bytes", "8K", "--trace", "t.json")
refused("--samples is not of app", "app", "cg", "--ranks", "8", "--bytes", "8K", "--samples", "3")
refused("--overlap is not of --rma", "alltoallv", "--rma", "--ranks", "8", "--bytes", "8K", "--overlap")
refused("--libucp is not of --rma", "alltoallv", "--rma", "--ranks", "8", "--bytes", "8K", "--libucp")
refused("--tuning is not of --rma", "alltoallv", "--rma", "--ranks", "8", "--bytes", "8K", "--tuning", "/nowhere.json")
refused("--trace shows one operation, --samples takes the least of several", "bcast", "--machine", "lab-100", "--ranks", "4", "--bytes",
        "8K", "--algorithm", "chain", "--samples", "3", "--trace", "t.json")
refused("--sweep is of app", "bcast", "--ranks", "8", "--bytes", "8K", "--sweep", "1GB/s")
refused("--mpi lam is not valid: expected mpich", "bcast", "--ranks", "8", "--bytes", "8", "--mpi", "lam")
refused("no model of its bcast", "bcast", "--ranks", "8", "--bytes", "8", "--mpi", "mvapich")
refused("--seed", "bcast", "--ranks", "8", "--bytes", "8", "--seed", "often")
# Machines that are none: one sentence, with the file's name and the field's.
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "mine.json")
    text = (pathlib.Path(__file__).parents[2] / "sim/machines/gbe8.json").read_text(encoding="utf-8")
    for content, sentence in (("", "mine.json: no JSON"), ("[]", "a machine is a JSON object"), ("{}", '"name" must be a text'),
                              (text[:400], "no JSON: parse error at line"), (text + "x", "no JSON"),
                              (text.replace('"hosts"', '"guests"'), '"hosts" must be'),
                              (text.replace('{"is": 8,', '{"is": 8.5,', 1), '"hosts" must be a whole number from 1'),
                              (text.replace('"star"', '"ring"', 1), '"fabric" must be star, fat_tree or dragonfly')):
        file.write_text(content, encoding="utf-8")
        refused(sentence, "bcast", "--machine", str(file), "--ranks", "8", "--bytes", "8")
    refused("cannot read", "bcast", "--machine", folder + "/other.json", "--ranks", "8", "--bytes", "8")
    file.write_bytes(b"\xff\xfe\x00{")
    refused("no JSON", "bcast", "--machine", str(file), "--ranks", "8", "--bytes", "8")
listed = run("--list-machines")
assert listed.returncode == 0 and "xc40" in listed.stdout and "1536 hosts x 24 cores" in listed.stdout, listed
help_text = run("--help").stdout
assert "--mapping" in help_text and "alltoallv" in help_text, help_text

# A copy of the command alone is a Thalweg that was built without SimGrid.
with tempfile.TemporaryDirectory() as folder:
    alone = shutil.copy(thalweg, folder)
    done = run("bcast", "--ranks", "8", "--bytes", "8", program=alone)
    assert done.returncode == 1 and "built without SimGrid: install it (Debian: libsimgrid-dev)" in done.stderr, done
    done = run("plot", "curve.jsonl", program=alone)
    assert done.returncode == 1 and "thalweg sim: the plotting script sim/plot.py is not installed" in done.stderr, done
    refused("--ranks is missing", "bcast", "--bytes", "8")

if not (thalweg.parent / "thalweg-sim").is_file():
    print("thalweg-sim is not built")
    sys.exit(77)

refused("the machine has 8", "bcast", "--machine", "gbe8", "--ranks", "9", "--per-host", "1", "--bytes", "8")
nothing = run("allgather", "--ranks", "9", "--bytes", "8", "--algorithm", "neighbour_exchange")
assert nothing.returncode == 1 and nothing.stderr == "thalweg sim: cannot run: it needs an even number of ranks\n", nothing
# The edges: one rank, no bytes, hosts of different sizes, all of them lines that can be read.
for ask in (("bcast",), ("allgather",), ("allreduce",), ("alltoallv",), ("halo",), ("app", "stencil"), ("alltoallv", "--rma")):
    alone = run(*ask, "--ranks", "1", "--bytes", "8", "--json")
    lines = [json.loads(line) for line in alone.stdout.splitlines()]
    assert alone.returncode == 0 and lines and all(not row["simulated"] and row["reason"] == "one rank has nobody to talk to"
                                                   for row in lines), (ask, alone)
    empty = run(*ask, "--ranks", "6", "--bytes", "0", "--json")
    lines = [json.loads(line) for line in empty.stdout.splitlines()]
    assert empty.returncode == 0 and lines and all(row["simulated"] for row in lines), (ask, empty)
ragged = run("bcast", "--machine", "xc40", "--ranks", "30", "--per-host", "8", "--mapping", "ragged", "--bytes", "64K", "--json")
lines = [json.loads(line) for line in ragged.stdout.splitlines()]
assert ragged.returncode == 0 and all(row["simulated"] and row["hosts"] == 5 for row in lines), ragged
assert "nobody to talk to" in run("bcast", "--ranks", "1", "--bytes", "8").stdout
# Cells of a grid: the bytes of each face follow, and the number of ranks from the grid.
ask = ("halo", "--machine", "lab-100", "--per-host", "2", "--grid", "4x2x1", "--cells", "1024x2x1024,64", "--algorithm", "auto")
lines = [json.loads(line) for line in run(*ask, "--json").stdout.splitlines()]
assert [(row["ranks"], row["bytes"], row["halo"]["cells"]) for row in lines] == [
    (8, 8 << 20, [1024, 2, 1024]), (8, 8 * 64 * 64, [64, 64, 64])], lines
assert "4x2x1 ranks of 64x64x64 cells, 7 points" in run(*ask).stdout
around = run("halo", "--machine", "gbe8", "--ranks", "16", "--cells", "8", "--points", "81", "--grid", "2x2x2x2", "--periodic", "--json")
lines = [json.loads(line) for line in around.stdout.splitlines()]
assert len(lines) == 3 and all(row["simulated"] and row["messages"] == 16 * 80 for row in lines), around
# An algorithm is one word: what stands behind it is the operation.
chain = ("--machine", "lab-100", "--ranks", "4", "--per-host", "1", "--bytes", "64K", "--json", "--algorithm", "chain")
first, last = run(*chain, "bcast"), run("bcast", *chain)
assert first.returncode == 0 and first.stdout == last.stdout, (first, last)
assert json.loads(first.stdout)["column"] == "chain", first
# Samples: the least counts, the same again, and what they differ by is what was sent before them.
ask = ("bcast", "--machine", "lab-100", "--ranks", "5", "--per-host", "1", "--bytes", "256K", "--algorithm", "scatter_ring", "--json")
once, again, (sampled,) = run(*ask), run(*ask, "--samples", "9"), [json.loads(run(*ask, "--samples", "9").stdout)]
assert json.loads(again.stdout) == sampled and "samples" not in json.loads(once.stdout), (once, again)
assert len(sampled["samples"]) == 9 and sampled["samples"] == sorted(sampled["samples"]), sampled
assert sampled["seconds"] == sampled["samples"][0] < sampled["samples"][-1], sampled
assert json.loads(run(*ask, "--samples", "9", "--seed", "2").stdout)["samples"] != sampled["samples"]


def slices_and_arrows(events, hosts):
    """Says how many there are. A process per rank, in rank order, slices of a thread that follow one another, and both ends
    of an arrow inside the slices of its message: what viewers need to draw them."""
    names = [(event["pid"], event["args"]["name"]) for event in events if event["name"] == "process_name"]
    assert names == [(rank, f"rank {rank} (host {host})") for rank, host in enumerate(hosts)], names
    sorts = [(event["pid"], event["args"]["sort_index"]) for event in events if event["name"] == "process_sort_index"]
    assert sorts == [(rank, rank) for rank in range(len(hosts))], sorts
    titles = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    threads, arrows = {}, {}
    for event in events:
        if event["ph"] == "X":
            span = (round(event["ts"] * 1e3), round(event["ts"] * 1e3) + round(event["dur"] * 1e3), event["name"])
            threads.setdefault((event["pid"], event["tid"]), []).append(span)
        elif event["ph"] in "sf":
            arrows.setdefault(event["id"], {})[event["ph"]] = event
    assert titles.keys() == threads.keys(), (titles, threads)
    for thread, spans in threads.items():
        spans.sort()
        assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), (thread, spans)
        assert {name.split()[0] for *_, name in spans} == {titles[thread].split()[0]}, (titles[thread], spans)
    for ends in arrows.values():
        around = [name for end in (ends["s"], ends["f"]) for begin, until, name in threads[end["pid"], end["tid"]]
                  if begin < round(end["ts"] * 1e3) < until]
        assert around == [f"send to {ends['f']['pid']}", f"recv from {ends['s']['pid']}"], (ends, around)
    return sum(map(len, threads.values())), len(arrows)


# A timeline: a slice for every step and an arrow for every message, the same again.
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "t.json")
    chain = ("bcast", "--per-host", "1", "--bytes", "64K", "--algorithm", "chain:chunk_bytes=16K")
    pairs = ("alltoallv", "--per-host", "2", "--bytes", "4K", "--algorithm", "spread")
    for hosts, ask, found in (((0, 1, 2, 3), chain, (2 * 4 * 3, 4 * 3)), ((0, 0, 1, 1, 2, 2, 3, 3), pairs, None)):
        texts = set()
        for _ in range(2):
            traced = run(*ask, "--machine", "lab-100", "--ranks", str(len(hosts)), "--trace", str(path))
            assert traced.returncode == 0, traced
            texts.add(path.read_text(encoding="utf-8"))
        (text,) = texts
        steps, messages = slices_and_arrows(json.loads(text)["traceEvents"], hosts)
        assert messages >= 8 * 7 if found is None else (steps, messages) == found, (steps, messages)
    kept = (pathlib.Path(__file__).parents[2] / "sim/results/timeline.json").read_text(encoding="utf-8")
    assert slices_and_arrows(json.loads(kept)["traceEvents"], (0, 1, 2, 3)) == (72, 0)
# On a terminal there is a progress bar, on standard error; elsewhere there is none.
master, slave = pty.openpty()
shown = subprocess.Popen([thalweg, "sim", "bcast", "--ranks", "8", "--bytes", "8"], stdout=subprocess.DEVNULL, stderr=slave)
os.close(slave)
drawn = b""
while True:
    try:
        part = os.read(master, 4096)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    drawn += part
assert shown.wait(60) == 0 and b"1/3" in drawn and b"3/3" in drawn, drawn
ask = ("bcast", "--machine", "gbe8", "--ranks", "24,96", "--bytes", "4K,1M", "--mapping", "permuted", "--seed", "7")
first, second = (run(*ask, "--json") for _ in range(2))
assert first.returncode == 0 and first.stdout == second.stdout, first.stderr
rows = [json.loads(line) for line in first.stdout.splitlines()]
assert [(row["ranks"], row["bytes"], row["column"]) for row in rows] == [
    (ranks, size, column) for ranks in (24, 96) for size in (4096, 1 << 20) for column in ("auto", "mpich", "openmpi")]
assert all(row["simulated"] and row["seconds"] >= row["limit_seconds"] for row in rows), first.stdout
assert run(*ask[:-1], "8", "--json").stdout != first.stdout
# What hides is of one operation, however many were in a row.
beside = ("bcast", "--machine", "dane", "--ranks", "8", "--per-host", "1", "--bytes", "4M", "--algorithm",
          "chain:chunk_bytes=64K", "--overlap", "--json")
one, several = (json.loads(run(*beside, *more).stdout) for more in ((), ("--repeat", "4")))
assert several["mean_seconds"] < one["mean_seconds"] and several["overlap"] == one["overlap"], (one, several)
# So do halos with other pasts, operations behind computation, and windows.
for again in (("halo", "--machine", "lab-100", "--per-host", "2", "--grid", "4x2x1", "--cells", "32", "--libucp", "--samples", "3"),
              ("allgather", "--machine", "gbe8", "--ranks", "24", "--bytes", "16K", "--mapping", "permuted", "--overlap"),
              ("alltoallv", "--rma", "--machine", "dane", "--ranks", "24", "--per-host", "4", "--bytes", "4K", "--mapping", "permuted")):
    first_time, second_time = (run(*again, "--seed", "7", "--json") for _ in range(2))
    assert first_time.returncode == 0 and first_time.stdout == second_time.stdout, (again, first_time, second_time)
    found = [json.loads(line) for line in first_time.stdout.splitlines()]
    assert found and all(row["simulated"] for row in found), (again, found)
    assert ("--overlap" in again) == all("overlap" in row for row in found), (again, found)
table = run(*ask)
assert table.returncode == 0 and table.stderr == "" and "permuted mapping, 12 ranks per host" in table.stdout, table
# A point that is too dear is the cost model's, and says so.
dear = run("allgather", "--machine", "ib2304", "--ranks", "2304", "--bytes", "8", "--algorithm", "ring", "--json",
           "--most-memory", "200M")
(row,) = [json.loads(line) for line in dear.stdout.splitlines()]
assert dear.returncode == 0 and not row["simulated"] and row["seconds"] == row["predicted_seconds"] > 0, dear
assert row["reason"] == "takes more than 200 MiB", row
# Of programs and of windows there is no model: where all is too dear there is no answer, and of no point a timeline.
large = ("--machine", "ib2304", "--ranks", "2304", "--bytes", "8", "--json")
refused("takes more than 1 s of a processor", "app", "fourier", *large, "--most-seconds", "1", status=1)
refused("it computes for longer than 53 days", "app", "stencil", "--ranks", "8", "--bytes", "1K", "--sweep", "0.0001B/s", "--json", status=1)
refused("takes more than 200 MiB", "alltoallv", "--rma", *large, "--most-memory", "200M", status=1)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "t.json")
    for sentence, *ask in (
            ("takes more than 200 MiB", "allgather", *large, "--algorithm", "ring", "--most-memory", "200M"),
            ("one rank has nobody to talk to", "bcast", "--ranks", "1", "--bytes", "8", "--algorithm", "chain")):
        refused(f"--trace: nothing was simulated that it could show: {sentence}", *ask, "--trace", str(path), status=1)
        assert not path.exists(), ask
# One switch instead of the machine's fabric: nothing blocks, so nothing takes longer, and the line says so.
crossed = [json.loads(run("alltoallv", "--machine", "slingshot", "--ranks", "32", "--per-host", "1", "--bytes", "1M",
                          "--algorithm", "spread", "--json", *star).stdout) for star in ((), ("--star",))]
assert [row["fabric"] for row in crossed] == ["dragonfly", "star"], crossed
assert crossed[0]["seconds"] > 2 * crossed[1]["seconds"] > 2 * crossed[1]["limit_seconds"] > 0, crossed
# Four times the rails, links busy for a quarter of the time.
wide = [json.loads(run("bcast", "--machine", "gbe8", "--ranks", "8", "--per-host", "1", "--bytes", "16M", "--algorithm",
                       "chain:chunk_bytes=64K", "--json", "--rails", rails).stdout)["seconds"] for rails in ("1", "4")]
assert 3 < wide[0] / wide[1] < 4.1, wide
# Another rate is that of the limit and of a message alone, too.
rated = {rate: json.loads(run("bcast", "--machine", "dane", "--ranks", "2", "--per-host", "1", "--bytes", "16M", "--algorithm",
                              "binomial", "--rate", rate, "--json").stdout) for rate in ("123MB/s", "12.3GB/s", "24.6GB/s")}
for row in rated.values():
    assert 0.999 < row["seconds"] / row["limit_seconds"] < 1.04, rated
assert 99 < rated["123MB/s"]["seconds"] / rated["12.3GB/s"]["seconds"] < 101, rated
assert 1.95 < rated["12.3GB/s"]["seconds"] / rated["24.6GB/s"]["seconds"] < 2.01, rated
# The limit is the link's, of which one message alone reaches 85 % here.
alone = json.loads(run("bcast", "--machine", "xc40", "--ranks", "2", "--per-host", "1", "--bytes", "16M", "--algorithm",
                         "binomial", "--json").stdout)
assert 1.16 < alone["seconds"] / alone["limit_seconds"] < 1.19, alone
# Programs: the same twice, no iteration shorter than its computation, and an agent hides no less than the caller.
for app in ("stencil", "amr", "sort", "cg", "fourier"):
    ask = ("app", app, "--machine", "xc40", "--ranks", "48", "--bytes", "256K", "--json", "--repeat", "2")
    first, second = run(*ask), run(*ask)
    assert first.returncode == 0 and first.stdout == second.stdout, first
    rows = {row["column"]: row for row in map(json.loads, first.stdout.splitlines())}
    assert len(rows) == 5 and all(row["simulated"] and row["seconds"] > row["compute_seconds"] > 0
                                  for row in rows.values()), first.stdout
    assert rows["thalweg, agent"]["seconds"] <= rows["thalweg, started"]["seconds"] * 1.02, first.stdout
# What carries our messages is no matter of the library's own.
ask = ("app", "fourier", "--machine", "lab-100", "--ranks", "8", "--per-host", "2", "--bytes", "128K", "--json")
ways = [{row["column"]: row["seconds"] for row in map(json.loads, run(*ask, *more).stdout.splitlines())}
        for more in ((), ("--libucp",))]
assert ways[0].keys() == ways[1].keys() and [column for column in ways[0] if ways[0][column] == ways[1][column]] == [
    "native, blocking", "native, started"], ways
# Where kernels send, ranks that compute for a moment and come back lose nothing on the way.
brief = run("app", "cg", "--machine", "lab-100", "--ranks", "8", "--per-host", "2", "--bytes", "256K", "--sweep", "1GB/s",
            "--repeat", "3", "--json")
assert brief.returncode == 0 and "never completes" not in brief.stdout, brief
assert "hidden" in run("app", "stencil", "--ranks", "8", "--bytes", "64K").stdout
# Windows: what a plan makes once, a call makes every time; where nothing is registered the rest remains.
ask = ("alltoallv", "--rma", "--ranks", "16", "--per-host", "2", "--bytes", "64K", "--json")
(dane,), (gbe,) = ([json.loads(line) for line in run(*ask, "--machine", machine).stdout.splitlines()]
                   for machine in ("dane", "gbe8"))
assert dane["registered_seconds"] > 0 == gbe["registered_seconds"] and gbe["agreed_seconds"] > 0, (dane, gbe)
for row in (dane, gbe):
    parts = row["agreed_seconds"] + row["registered_seconds"]
    assert abs(row["per_call_seconds"] - row["per_plan_seconds"] - parts) < 1e-12, row
# The library's own is that of its column, with its messages as it posts them, however large.
for family in ("mpich", "openmpi"):
    ask = ("alltoallv", "--machine", "lab-100", "--ranks", "8", "--per-host", "2", "--bytes", "128K", "--json")
    own, beside = (json.loads(run(*ask, *more).stdout) for more in (("--algorithm", family), ("--rma", "--mpi", family)))
    assert own["seconds"] == beside["alltoallv_seconds"] > 0, (own, beside)
# Alltoallvs of which pairs differ: of the library's rounds every pair has a message, of the others those with bytes.
ask = ("alltoallv", "--machine", "lab-100", "--ranks", "8", "--per-host", "2", "--bytes", "64K", "--json")
dense, banded = ([json.loads(line) for line in run(*ask, *more, "--algorithm", "spread", "--algorithm", "mpich").stdout.splitlines()]
                 for more in ((), ("--pattern", "banded")))
assert [row["messages"] for row in banded] == [14, 14] and banded[0]["pattern"] == "banded", banded
assert "pattern" not in dense[0] and dense[0]["seconds"] > 4 * banded[0]["seconds"], (dense, banded)
matrix = pathlib.Path(__file__).resolve().parents[2] / "bench/matrices/poisson-4x4x4.mtx"
assert run(*ask, "--pattern", str(matrix)).returncode == 0
# A file may have any name, which JSON cannot say of all.
with tempfile.TemporaryDirectory() as folder:
    named = os.path.join(os.fsencode(folder), b"caf\xe9.mtx")
    shutil.copy(matrix, named)
    found = [json.loads(line)["pattern"] for line in run(*ask, "--pattern", named).stdout.splitlines()]
    assert found and all(name.endswith("caf\ufffd.mtx") for name in found), found
for words, sentence in (((*ask, "--pattern", "bandit"), "--pattern: there is no pattern bandit; there are dense, uniform"),
                        ((*ask, "--pattern", "banded", "--rma"), "--pattern is not of --rma"),
                        (("halo", *ask[1:], "--pattern", "banded"), "--pattern is of alltoallv"),
                        (("alltoallv", "--machine", "slingshot", "--ranks", "4097", "--bytes", "1K", "--pattern", "banded"),
                         "--pattern banded: of up to 4096 ranks"),
                        ((*ask, "--pattern", "/nowhere/a.mtx"), "--pattern: /nowhere/a.mtx: cannot be opened")):
    refused = run(*words)
    assert refused.returncode == 2 and refused.stderr.startswith(f"thalweg sim: {sentence}"), (words, refused)
print("the command does what it says")
