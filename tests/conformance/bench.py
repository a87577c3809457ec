"""The bench driver notices every mode of the saboteur: it counts wrong words in our column, none in the native one,
and exits with 1.

    bench.py MPI.json
"""

import json
import tempfile

from conformance import Mpi, Skipped, expect, main
from programs import MODES

COLUMNS = [{"name": "native", "native": True},
           {"name": "chain", "native": False, "option": "chain:chunk_bytes=4K"},
           {"name": "ring", "native": False, "option": "scatter_ring_trimmed"}]
SIZES = (4096, 65537)


def measure(mpi, folder, name, **more):
    """{(column, bytes): wrong words} and the run."""
    config, rows = f"{folder}/{name}.json", f"{folder}/{name}.jsonl"
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"collective": "bcast", "columns": COLUMNS, "warm_up_calls": 1,
                   "points": [{"bytes": size, "samples": 2, "back_to_back": 2, "columns": list(range(len(COLUMNS)))}
                              for size in SIZES]}, file)
    ended = mpi.launch(2, [mpi.bench, config, rows], BCAST_MIN_BYTES=1, TOPOLOGY="node:2 core:1", **more)
    found = {}
    with open(rows, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["kind"] == "point":
                found[row["column"], row["bytes"]] = row["wrong_words"]
    return found, ended


def test(path):
    mpi = Mpi(path)
    if not mpi.bench:
        raise Skipped(f"there is no bench driver for {mpi.name}")
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        found, ended = measure(mpi, folder, "sound")
        expect(ended.code == 0 and found == {key: 0 for key in found} and len(found) == 6, "no damage:", found, ended)
        for mode in MODES:
            found, ended = measure(mpi, folder, mode, saboteur=mode)
            expect(ended.code not in (0, None), mode, "was not noticed:", found, ended)
            for (column, size), wrong in found.items():
                expect((wrong > 0) == (column != "native"), mode, column, size, "bytes:", wrong, "wrong words", ended)
            expect(len(found) == 6 and "wrong words were received" in ended.err, mode, found, ended)
            print(mode, found)


if __name__ == "__main__":
    main(test)
