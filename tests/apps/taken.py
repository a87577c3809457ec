"""Runs an application under Thalweg: it finds its own answer right, and operations of these kinds were taken.

    taken.py FOLDER OPERATION,OPERATION… COMMAND…    an operation as reports name it; COMMAND contains "env"

COMMAND may be `thalweg lab run …`: exit status 77 where this machine has no lab, and neighbours must be on several hosts.
"""

import json
import os
import pathlib
import subprocess
import sys

folder, operations, command = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
path = folder / f"taken-{os.getpid()}.json"
lab = command[1:3] == ["lab", "run"]
if lab:
    check = subprocess.run([command[0], "lab", "check"], capture_output=True, text=True)
    if check.returncode != 0:
        print(check.stdout + check.stderr)
        sys.exit(77)
at = command.index("env") + 1
done = subprocess.run([*command[:at], f"THALWEG_REPORT={path}", *command[at:]], capture_output=True, text=True,
                      errors="replace", timeout=280, stdin=subprocess.DEVNULL)
print(done.stdout)
if done.returncode != 0 or "\nright\n" not in done.stdout:
    sys.exit(f"taken.py: status {done.returncode}: {done.stderr}")
said = json.loads(path.read_text(encoding="utf-8"))
path.unlink()
if said["totals"]["errors"] != 0:
    sys.exit(f"taken.py: {said['totals']}")
if lab and not any(each["hosts"] > 1 for each in said.get("neighbourhoods", [])):
    sys.exit(f"taken.py: no neighbours on several hosts: {said}")
for operation in operations:
    row = said["operations"].get(operation)
    if row is None or row["accelerated"] == 0:
        sys.exit(f"taken.py: {operation} was not taken: {said['operations']}")
    print(f"{operation}: {row['accelerated']} of {row['seen']} taken")
