"""Runs a program whose last rank has another host name than the others, or other namespaces under the same name: either
way it counts as on another host, every byte is right, and nothing fails.

    places.py FOLDER COMMAND…     COMMAND starts three ranks and checks bytes; it contains "-n 3"
"""

import json
import os
import pathlib
import subprocess
import sys

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
SKIP = 77
PLACES = {
    "together": (1, []),
    "another network of the same name": (2, ["unshare", "--net"]),
    "another name in the same network": (2, ["unshare", "--uts", "sh", "-c", 'hostname elsewhere; exec "$@"', "sh"]),
}


def run(apart, *variables):
    at = command.index("-n")
    program = command[at + 2:]
    after = program.index("env") + 1
    program = program[:after] + list(variables) + program[after:]
    return subprocess.run([*command[:at], "-n", "2", *program, ":", "-n", "1", *apart, *program], capture_output=True,
                          text=True, errors="replace", timeout=140, stdin=subprocess.DEVNULL)


ran = 0
for place, (hosts, apart) in PLACES.items():
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        print(f"left out: no {' '.join(apart[:2])} here")
        continue
    native = run(apart, "LD_PRELOAD=", "THALWEG_TEST_EXPECT=native")
    if native.returncode != 0 and not apart:
        sys.exit(f"places.py: without Thalweg: status {native.returncode}: {native.stdout}{native.stderr}")
    if native.returncode != 0:
        print(f"left out: {place}: this MPI does not start there: {native.stdout[-500:]}{native.stderr[-500:]}")
        continue
    report = folder / f"places-{os.getpid()}.json"
    report.unlink(missing_ok=True)
    done = run(apart, f"THALWEG_REPORT={report}")
    if done.returncode != 0 or "ok:" not in done.stdout:
        sys.exit(f"places.py: {place}: status {done.returncode}: {done.stdout}{done.stderr}")
    said = json.loads(report.read_text(encoding="utf-8"))
    report.unlink()
    world = next(row for row in said["communicators"] if row["size"] == 3)
    if world["hosts"] != hosts or said["totals"]["accelerated"] == 0 or said["totals"]["errors"] > 0:
        sys.exit(f"places.py: {place}: {world['hosts']} hosts, not {hosts}; {said}")
    print(f"ok: {place}: {hosts} hosts, {said['totals']['accelerated']} broadcasts")
    ran += bool(apart)
if ran == 0:
    print("skipped: no rank could be put elsewhere")
    sys.exit(SKIP)
