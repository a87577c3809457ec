"""A sweep of `thalweg bench bcast` that was cut off goes on where it stopped when it is given the same file again, and
measures nothing twice; with other settings it measures anew.

    sweep.py THALWEG MPI
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

thalweg, mpi = sys.argv[1:]
SIZES = (3000, 20000)


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def bench(out, **more):
    ended = subprocess.run([thalweg, "bench", "bcast", "--mpi", mpi, "--hosts", "0", "--ppn", "2", "--bytes",
                            ",".join(map(str, SIZES)), "--screen-samples", "1", "--decide-samples", "2", "--ours",
                            "binomial", "--out", str(out)], capture_output=True, text=True, timeout=250,
                           env={**os.environ, **more})
    expect(ended.returncode == 0, ended.stdout, ended.stderr)
    return ended


def points(lines):
    """(phase, column, bytes) of each line, and how often it is there."""
    count = {}
    for line in map(json.loads, lines):
        key = line["phase"], line["column"], line["bytes"]
        count[key] = count.get(key, 0) + 1
    return count


with tempfile.TemporaryDirectory(prefix="tw") as folder:
    out = pathlib.Path(folder) / "rows.jsonl"
    bench(out)
    whole = out.read_text().splitlines()
    everything = points(whole)
    for size in SIZES:
        for phase in ("screen", "decide"):
            expect((phase, "thalweg", size) in everything, "no row of", phase, size)
    for line in map(json.loads, whole):
        expect(line["wrong_words"] == 0, line)

    # Complete: nothing is measured, and the table is printed all the same.
    ended = bench(out)
    expect(out.read_text().splitlines() == whole, "a complete file was measured again")
    expect("3000 B" in ended.stdout, ended.stdout)

    # Cut off in the screen of the second size: the rest of it is measured, and both decisions.
    kept = [line for line in whole if json.loads(line)["phase"] == "screen"][:-3]
    lost = set(everything) - set(points(kept))
    out.write_text("\n".join(kept) + "\n")
    bench(out)
    lines = out.read_text().splitlines()
    expect(lines[:len(kept)] == kept, "rows that were there have changed")
    fresh = points(lines[len(kept):])
    expect(lost <= set(fresh), "not measured:", lost - set(fresh))
    # What is always measured stands beside what was missing; nothing else comes twice.
    again = {key for key in fresh if key in points(kept)}
    expect({column for _, column, _ in again} <= {"native", "native (A/A)", "thalweg"}, "measured again:", again)
    expect({size for _, _, size in again} <= {SIZES[1]}, "a size that was complete was measured again:", again)

    # Other settings: all of it, though other natives may be the best, and the rows say so.
    bench(out, THALWEG_WAIT="sleep")
    others = out.read_text().splitlines()[len(lines):]
    wanted = {key for key in everything if key[0] == "screen" or key[1] == "thalweg"}
    expect(wanted <= set(points(others)), "not measured anew:", wanted - set(points(others)))
    for line in map(json.loads, others):
        expect(line["context"]["settings"]["THALWEG_WAIT"] == "sleep", line)
print(f"{len(lost)} of {len(everything)} points were cut off and measured")
