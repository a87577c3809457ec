"""sim/smpi.py, where SimGrid's own MPI is: its times and ours are those of sim/results, and close to each other.

    smpi.py THALWEG_SIM
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).parents[2]
if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
    print("skipped: there is no smpicc")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder, "smpi.jsonl")
    subprocess.run([sys.executable, "-B", root / "sim/smpi.py", "--sim", sys.argv[1], "--out", out], check=True, timeout=280)
    found, kept = ([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                   for path in (out, root / "sim/results/smpi.jsonl"))
if found != kept:
    sys.exit(f"FAILED: {[pair for pair in zip(found, kept) if pair[0] != pair[1]][:3]}")
far = [row for row in found if abs(row["ours_seconds"] / row["smpi_seconds"] - 1) > 0.05]
if far or len(found) < 20:
    sys.exit(f"FAILED: {far} of {len(found)}")
print(f"{len(found)} points within 5 % of SMPI's")
