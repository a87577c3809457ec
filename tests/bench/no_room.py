"""The bench driver ends, and says so, where there is no room for its results: hours would be measured in vain.

    no_room.py DRIVER MPI_ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import expect, rows

driver, root = sys.argv[1:3]
config = {"collective": "bcast", "columns": [{"name": "native", "native": True}],
          "points": [{"bytes": 8, "samples": 1, "columns": [0]}]}
with tempfile.TemporaryDirectory(prefix="tw") as folder:
    asked, kept = pathlib.Path(folder) / "config.json", pathlib.Path(folder) / "rows.jsonl"
    asked.write_text(json.dumps(config))

    def run(out):
        result = subprocess.run([f"{root}/bin/mpiexec", "-n", "1", driver, asked, out], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=120,
                                env={**os.environ, "LD_LIBRARY_PATH": f"{root}/lib"})
        result.about = f"{out}\nexit status {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    whole = run(kept)
    expect(whole.returncode == 0 and [row["kind"] for row in rows(kept)] == ["launch", "point"], whole.about)
    full = run("/dev/full")
    expect(full.returncode != 0 and "thalweg bench: a result could not be written" in full.stderr, full.about)
