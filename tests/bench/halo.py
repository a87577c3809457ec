"""`thalweg bench halo` on this host: every style gets its samples and right cells, with corners, in four dimensions and
where the grid goes round; what is measured is not measured again; the choice stands beside every fixed protocol, in a
run that changes too; computation is timed between the parts of a call; and a byte that MPI got wrong is seen.

    halo.py THALWEG MPI DAMAGE            the ways, their rows, what is refused
    halo.py THALWEG MPI DAMAGE choices    --pairs, --changing, --overlap
    halo.py THALWEG MPI DAMAGE corners    eight ranks, two in each dimension: faces, edges and a corner for each
"""
import os
import subprocess
import sys
import tempfile

from common import expect, rows

thalweg, mpi, damage = sys.argv[1:4]
part = "".join(sys.argv[4:])
NATIVE = ["native", "native (A/A)", "native nonblocking", "native init"]
SENDS = ["isend", "persistent", "isend packed waitall", "isend packed waitsome", "isend packed waitany", "isend parted"]
OURS = ["thalweg", "thalweg spread", "thalweg nonblocking", "thalweg nonblocking spread", "thalweg init",
        "thalweg init spread", "thalweg init parted"]
SHM = " [transport=shm]"
RANKS, SAMPLES = 2, 2


def bench(out, *words, ranks=RANKS, **more):
    result = subprocess.run([thalweg, "bench", "halo", "--mpi", mpi, "--hosts", "0", "--ppn", str(ranks),
                             "--samples", str(SAMPLES), "--samples-large", str(SAMPLES), "--out", out, *words],
                            capture_output=True, text=True, env={**os.environ, **more}, timeout=280)
    result.about = f"{words}\nexit status {result.returncode}\n{result.stdout}{result.stderr}"
    return result


def check_choices(folder):
    # Every protocol inside the host beside the choice: the same launch, and only what was asked for differs.
    ended = bench(f"{folder}/pairs.jsonl", "--pairs", "--rounds", "1", "--cells", "64x16x256")
    expect(ended.returncode == 0 and "best fixed pair" in ended.stdout, ended.about)
    seen = {row["column"]: row for row in rows(f"{folder}/pairs.jsonl")}
    fixed = {f"thalweg init spread [transport=shm inside={each}]" for each in ("eager", "cma_get", "cma_put", "coop")}
    expect(set(seen) == {"native" + SHM, "thalweg init spread" + SHM, *fixed}, sorted(seen), ended.about)
    for row in seen.values():
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES, row, ended.about)
    expect(len({row["launch"] for row in seen.values()}) == 1, ended.about)

    ended = bench(f"{folder}/changing.jsonl", "--changing", "--rounds", "1", "--calls", "2")
    expect(ended.returncode == 0 and "fixed pairs" in ended.stdout, ended.about)
    for row in rows(f"{folder}/changing.jsonl"):
        phases = row["halo"]["phases"]
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES and len(phases) == 6, row, ended.about)
        expect(abs(sum(phase["seconds"][0] for phase in phases) - row["seconds"][0]) < 1e-6, row)
    before = len(rows(f"{folder}/changing.jsonl"))
    again = bench(f"{folder}/changing.jsonl", "--changing", "--rounds", "1", "--calls", "2")
    expect(again.returncode == 0 and len(rows(f"{folder}/changing.jsonl")) == before, again.about)

    ended = bench(f"{folder}/overlap.jsonl", "--overlap", "--cells", "64x16x256", "--together-only")
    expect(ended.returncode == 0 and "hidden" in ended.stdout, ended.about)
    for row in rows(f"{folder}/overlap.jsonl"):
        expect(row["wrong_words"] == 0, row, ended.about)
        if row["seconds"]:
            expect(len(row["overlap"]["total"]) == SAMPLES, row, ended.about)
            expect(min(row["overlap"]["total"]) >= min(row["overlap"]["computed"]) > 0, row)


def check_corners(folder):
    styles = ["native", "native nonblocking", "isend", "isend packed waitall", "thalweg spread", "thalweg nonblocking spread",
              "thalweg init spread"]
    cells = (9, 5, 6)
    x, y, z = cells
    ended = bench(f"{folder}/corners.jsonl", "--cells", "x".join(map(str, cells)), "--points", "27", "--styles",
                  ",".join(styles), ranks=8)
    expect(ended.returncode == 0, ended.about)
    found = rows(f"{folder}/corners.jsonl")
    expect(set(styles) <= {row["column"] for row in found}, found, ended.about)
    for row in found:
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES, row, ended.about)
        halo = row["halo"]
        expect(halo["grid"] == [2, 2, 2] and halo["corners"] and not halo["periodic"], row)
        # Each rank has something for every other one: 3 faces, 3 edges, 1 corner.
        each = x * y + y * z + x * z + x + y + z + 1
        expect(halo["inside_bytes"] == 8 * 8 * each and halo["link_bytes"] == 0, row)
    ended = bench(f"{folder}/damaged.jsonl", "--cells", "6", "--points", "27", "--styles", "native,isend", "--together-only",
                  ranks=8, LD_PRELOAD=damage)
    expect(ended.returncode == 1 and "WRONG WORDS" in ended.stdout, "the damage was not seen:", ended.about)
    for row in rows(f"{folder}/damaged.jsonl"):
        expect((row["wrong_words"] > 0) == (row["column"] == "native"), row, ended.about)


with tempfile.TemporaryDirectory(prefix="tw") as folder:
    if part:
        {"choices": check_choices, "corners": check_corners}[part](folder)
        sys.exit()
    out = f"{folder}/rows.jsonl"
    points = ["--cells", "9x5x6", "--points", "27"]
    ended = bench(out, *points)
    expect(ended.returncode == 0, ended.about)
    seen = {}
    for row in rows(out):
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES, row, ended.about)
        halo = row["halo"]
        expect(halo["grid"] == [2, 1, 1] and halo["corners"] and not halo["periodic"], row)
        # Two ranks: the face between them is all there is; what else a cell has around it lies beyond a border.
        width, height = halo["cells"][1:]
        expect(halo["inside_bytes"] == 2 * 8 * width * height and halo["link_bytes"] == 0, row)
        expect(halo["copied_bytes_per_s"] > 0 and halo["make_seconds"], row)
        # Choices of ours change between calls: an untimed call goes before each sample of every column.
        expect(halo["warm_samples"] == SAMPLES, row)
        seen[tuple(halo["cells"]), row["column"]] = row
    wanted = NATIVE + SENDS + OURS + [name + SHM for name in ["native", *OURS]]
    expect(len(seen) == len(wanted), len(seen), "rows:", sorted(seen), ended.about)
    expect({column for _, column in seen} == set(wanted), sorted(seen))
    # Over shared memory everything is Thalweg's where its algorithm is asked for.
    for column in (name for name in OURS if name.endswith(("spread", "parted"))):
        row = seen[(9, 5, 6), column + SHM]
        expect(row["algorithm"] == "spread", row, ended.about)
    expect("time/limit" in ended.stdout and "copies" in ended.stdout, ended.about)

    before = len(rows(out))
    again = bench(out, *points)
    expect(again.returncode == 0 and len(rows(out)) == before, "measured again:", again.about)

    # Edges to oneself, and two edges to the same neighbour.
    ended = bench(f"{folder}/round.jsonl", "--dims", "4", "--periodic", "--cells", "3x2x4x2", "--styles",
                  ",".join(SENDS + OURS))
    expect(ended.returncode == 0, ended.about)
    for row in rows(f"{folder}/round.jsonl"):
        expect(row["wrong_words"] == 0 and row["halo"]["grid"] == [2, 1, 1, 1], row)

    damaged = f"{folder}/damaged.jsonl"
    ended = bench(damaged, "--cells", "6", "--styles", "native,isend", "--together-only", LD_PRELOAD=damage)
    expect(ended.returncode == 1 and "WRONG WORDS" in ended.stdout, "the damage was not seen:", ended.about)
    for row in rows(damaged):
        expect((row["wrong_words"] > 0) == (row["column"] == "native"), row, ended.about)

    # In a sample, behind all that is called before: a cell that no message touches, on both ranks.
    elsewhere = f"{folder}/elsewhere.jsonl"
    ended = bench(elsewhere, "--cells", "6", "--styles", "native,isend", "--together-only", LD_PRELOAD=damage,
                  BENCH_DAMAGE_ELSEWHERE="4")
    expect(ended.returncode == 1 and "WRONG WORDS" in ended.stdout, "the damage was not seen:", ended.about)
    for row in rows(elsewhere):
        expect(row["wrong_words"] == RANKS, row, ended.about)

    for words in (["--pairs", "--overlap"], ["--pairs", "--changing"]):
        expect(bench(out, *words).returncode == 2, words)
    for words in (["--cells", "x"], ["--grid", "3x1x1"], ["--points", "8"], ["--styles", "nothing"]):
        refused = bench(out, *words)
        expect(refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.about)
