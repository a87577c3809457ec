"""Runs a program under THALWEG_REPORT and checks that the report says what happened.

    report.py FOLDER COMMAND…   COMMAND runs programs/reported.c on at least two ranks; THALWEG_REPORT is added here
"""

import json
import os
import shutil
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
path = os.path.join(folder, f"report-{os.getpid()}.json")


def run(target, *variables):
    at = command.index("env") + 1
    return subprocess.run(command[:at] + [f"THALWEG_REPORT={target}", *variables] + command[at:], capture_output=True,
                          text=True, timeout=100)


def check(condition, what):
    if not condition:
        sys.exit(f"report.py: {what}")


result = run(path)
check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
with open(path) as file:
    report = json.load(file)
os.remove(path)

# What reported.c does: 7 broadcasts of 100000 bytes by chain, 5 by linear on a duplicate, 3 native on
# MPI_COMM_SELF, 11 of 8 bytes, 2 of a strided type.
totals = report["totals"]
rows = {(c["name"], r.get("algorithm", r.get("declined"))): (c, r) for c in report["communicators"] for r in c["rows"]}
check(totals["calls"] == 28, f"calls: {totals}")
check(totals["accelerated"] == 14 and totals["declined"] == 14, f"accelerated and declined: {totals}")
check(totals["staged"] == 2 and totals["errors"] == 0, f"staged: {totals}")
check(report["largest_of_any_rank"]["accelerated"] == 14, "the largest of any rank")
check(sum(row["calls"] for row in report["small"]) == 11, f"small: {report['small']}")
world, chain = rows[("MPI_COMM_WORLD", "chain:chunk_bytes=64K")]
check(chain["calls"] == 9 and chain["bytes"] == 9 * 100000, f"chain: {chain}")
check(chain["seconds"] > 0 and chain["polls"] > 0, f"time and polls: {chain}")
check(world["size"] == report["ranks"] and world["hosts"] == 1 and world["wait"] in ("spin", "sleep"), f"{world}")
twin, linear = rows[("twin", "linear")]
check(linear["calls"] == 5 and linear["bytes"] == 500000, f"linear: {linear}")
check(rows[("MPI_COMM_SELF", "one rank")][1]["calls"] == 3, "MPI_COMM_SELF")
check(report["settings"]["THALWEG_BCAST"] == "chain:chunk_bytes=64K", f"settings: {report['settings']}")

# A program whose locale writes a decimal comma; the system's own locales need not include one.
locales = os.path.join(folder, f"locales-{os.getpid()}")
os.makedirs(locales)
made = shutil.which("localedef") and subprocess.run(
    ["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(locales, "de_DE.UTF-8")], capture_output=True)
if made and os.path.exists(os.path.join(locales, "de_DE.UTF-8")):
    run(path, f"LOCPATH={locales}", "LC_ALL=de_DE.UTF-8")
    with open(path) as file:
        json.load(file)
    os.remove(path)
else:
    print("localedef or its sources are missing: no locale with a decimal comma was tried")
shutil.rmtree(locales)

table = run("-")
for words in (("MPI_COMM_WORLD",), ("twin",), ("chain:chunk_bytes=64K", " 9 "), ("native: one rank", " 3 ")):
    check(any(all(word in line for word in words) for line in table.stderr.splitlines()), f"{words}: {table.stderr}")
check(run("/nonexistent/report").returncode == 0, "a report that cannot be written must not end the program")
print("ok")
