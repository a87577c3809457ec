"""`thalweg bench alltoallv` on this host: every column gets its samples and right bytes, for patterns with and without
gaps, a file's too; what is measured is not measured again; and a byte that MPI got wrong is seen.

    exchange.py THALWEG MPI DAMAGE
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from common import expect, rows

thalweg, mpi, damage = sys.argv[1:]
NATIVE = ["native", "native init", "window per call", "window kept", "window kept, lock"]
PLANS = ["native init", "rma_fence", "rma_fence_barrier", "rma_lock", "rma_pscw"]
if mpi != "impi":  # where it crashes beside another column
    PLANS.append("rma_get")
COLUMNS = NATIVE + PLANS[1:]
RANKS, SAMPLES = 2, 2


def bench(out, *words, **more):
    # A column's name may hold a comma; then it is not given to choose by.
    result = subprocess.run([thalweg, "bench", "alltoallv", "--mpi", mpi, "--hosts", "0", "--ppn", str(RANKS),
                             "--samples", str(SAMPLES), "--out", out, *words], capture_output=True, text=True,
                            env={**os.environ, "OMPI_MCA_osc": "^ucx", **more}, timeout=280)
    result.about = f"{words}\nexit status {result.returncode}\n{result.stdout}{result.stderr}"
    return result


with tempfile.TemporaryDirectory(prefix="tw") as folder:
    matrix = pathlib.Path(folder) / "three.mtx"
    matrix.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 3\n2 2\n3 1\n")
    out = f"{folder}/rows.jsonl"
    points = ["--sizes", "5000", "--pattern", f"uniform,one_to_many,{matrix}"]
    ended = bench(out, *points)
    expect(ended.returncode == 0, ended.about)
    seen = {}
    for row in rows(out):
        # What Thalweg tries of repeated calls, and what decides for the next thousand, comes before the samples.
        if row["column"] in ("thalweg", "native"):
            untimed = row["exchange"]["untimed_calls"]
            expect(untimed > 24 if row["column"] == "thalweg" else untimed == 2, row)
        # And how many of these were ours, by the mark that each leaves; plans and natives have none.
        taken = row["exchange"].get("taken_calls")
        if row["column"] == "thalweg":
            expect(0 <= taken <= SAMPLES and bool(row["algorithm"] or row["reason"]), row)
            expect(taken > 0 or not row["algorithm"], row)
        else:
            expect(taken is None, row)
        if row["column"] not in COLUMNS:
            continue
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES, row, ended.about)
        exchange = row["exchange"]
        expect(bool(exchange["init_seconds"]) == (row["column"] in PLANS), row)
        expect(bool(exchange["set_up_seconds"]) == row["column"].startswith("window"), row)
        seen[exchange["pattern"], row["bytes"], row["column"]] = row
    expect(len(seen) == 3 * len(COLUMNS), len(seen), "rows:", sorted(seen), ended.about)
    expect({pattern for pattern, _, _ in seen} == {"uniform", "one_to_many", "three.mtx"}, seen.keys())
    expect("rma_fence" in ended.stdout and "reduction" in ended.stdout, ended.about)

    before = len(rows(out))
    again = bench(out, *points)
    expect(again.returncode == 0 and len(rows(out)) == before, "measured again:", again.about)

    # Ours: each algorithm that is asked for is what runs. Inside a host nothing advances plans but its memory.
    single = f"{folder}/single.jsonl"
    plans = [f"thalweg init {name}" for name in ("notify", "pairwise", "spread")]
    ended = bench(single, "--sizes", "5000", "--columns", ",".join(["native", *plans]), THALWEG_TRANSPORT="shm")
    expect(ended.returncode == 0, ended.about)
    ran = {row["column"]: row for row in rows(single)}
    expect(ran.keys() == {"native", *plans}, sorted(ran), ended.about)
    for column in plans:
        row = ran[column]
        expect(row["wrong_words"] == 0 and len(row["seconds"]) == SAMPLES and row["exchange"]["init_seconds"], row)
        expect(row["algorithm"].startswith(column.split()[-1]), row)

    damaged = f"{folder}/damaged.jsonl"
    ended = bench(damaged, "--sizes", "5000", "--columns", "native,rma_fence", LD_PRELOAD=damage)
    expect(ended.returncode == 1 and "WRONG WORDS" in ended.stdout, "the damage was not seen:", ended.about)
    for row in rows(damaged):
        expect((row["wrong_words"] > 0) == (row["column"] == "native"), row, ended.about)

    for words in (["--pattern", "dence"], ["--sizes", "x"], ["--columns", "nothing"],
                  ["--columns", "native,rma_fense"]):
        refused = bench(out, *words)
        said = [line for line in refused.stderr.splitlines() if not line.startswith("bench: without the column")]
        expect(refused.returncode == 2 and len(said) == 1, refused.about)
