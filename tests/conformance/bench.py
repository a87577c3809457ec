"""The bench driver notices every mode of the saboteur, in single calls and in blocks of short ones: it counts wrong
words in our column, none in the native one, and exits with 1. Its race drops a slow column, and no other.

    bench.py MPI.json
"""

import json
import os
import tempfile

from conformance import Mpi, Skipped, expect, main
from programs import MODES

COLUMNS = [{"name": "native", "native": True},
           {"name": "chain", "native": False, "option": "chain:chunk_bytes=4K"},
           {"name": "ring", "native": False, "option": "scatter_ring_trimmed"}]
SIZES = (4096, 65537)
SHORT = 4097  # bytes, in blocks of short calls
SHORT_CALLS = 250
RACED = [{"name": "native", "native": True},
         {"name": "crawling", "native": False, "option": "chain:chunk_bytes=256", "always": False},
         {"name": "kept", "native": False, "option": "chain:chunk_bytes=256"}]
RACE_SAMPLES, RACES = 3, 3


def drive(mpi, folder, name, columns, points, **more):
    """The driver's rows of points and the run."""
    config, rows = f"{folder}/{name}.json", f"{folder}/{name}.jsonl"
    for point in points:
        point["columns"] = list(range(len(columns)))
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"collective": "bcast", "columns": columns, "warm_up_calls": 1, "points": points}, file)
    ended = mpi.launch(2, [mpi.bench, config, rows], BCAST_MIN_BYTES=1, TOPOLOGY="node:2 core:1", **more)
    expect(os.path.exists(rows), "no rows:", ended)
    with open(rows, encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["kind"] == "point"], ended


def measure(mpi, folder, name, **more):
    """{(column, bytes): wrong words} and the run."""
    points = [{"bytes": size, "samples": 2, "back_to_back": 2} for size in SIZES]
    points.append({"bytes": SHORT, "samples": 0, "small_calls": SHORT_CALLS})
    found, ended = drive(mpi, folder, name, COLUMNS, points, **more)
    for row in found:
        if row["bytes"] == SHORT:
            expect(row["calls"]["count"] == SHORT_CALLS and 0 < row["calls"]["min_ns"] <= row["calls"]["median_ns"],
                   row, ended)
    return {(row["column"], row["bytes"]): row["wrong_words"] for row in found}, ended


def race(mpi, folder):
    # Where a call takes longer than the 1 ms from which it is raced, and pieces, whose number a plan bounds, are small
    # enough to be slow.
    size = 8 << 20 if mpi.name.startswith("openmpi") else 32 << 20
    # Where something else holds the native call up, nothing crawls beside it: others do so in one race, not in all.
    for number in range(RACES):
        found, ended = drive(mpi, folder, f"race-{number}", RACED, [{"bytes": size, "samples": RACE_SAMPLES, "back_to_back": 0,
                                                                     "race": True, "warm_up_bytes": 4096}])
        expect(ended.code == 0 and not any(row["wrong_words"] for row in found), ended)
        samples = {row["column"]: len(row["seconds"]) for row in found}
        stopped = {row["column"]: row.get("stopped", "") for row in found}
        if stopped.get("crawling") == "over 2x after 1":
            break
    expect(samples == {"native": RACE_SAMPLES, "crawling": 1, "kept": RACE_SAMPLES}, samples, ended)
    expect(stopped == {"native": "", "crawling": "over 2x after 1", "kept": ""}, stopped, ended)


def test(path):
    mpi = Mpi(path)
    if not mpi.bench:
        raise Skipped(f"there is no bench driver for {mpi.name}")
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        race(mpi, folder)
        found, ended = measure(mpi, folder, "sound")
        expect(ended.code == 0 and found == {key: 0 for key in found} and len(found) == 9, "no damage:", found, ended)
        for mode in MODES:
            found, ended = measure(mpi, folder, mode, saboteur=mode)
            expect(ended.code not in (0, None), mode, "was not noticed:", found, ended)
            for (column, size), wrong in found.items():
                expect((wrong > 0) == (column != "native"), mode, column, size, "bytes:", wrong, "wrong words", ended)
            expect(len(found) == 9 and "wrong words were received" in ended.err, mode, found, ended)
            print(mode, found)


if __name__ == "__main__":
    main(test)
