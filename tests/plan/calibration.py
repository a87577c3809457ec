"""Lets one end of the measurement of the network fail, fall silent or come late: both give up, in time, all ranks say why
and go on with a guess, and what follows is right.

    calibration.py usual|late COMMAND…    COMMAND runs programs/agreement.c with programs/faults.c preloaded behind Thalweg
"""

import os
import re
import subprocess
import sys
import time

share, command = sys.argv[1], sys.argv[2:]
MEASURED, DECLINED = "the network between hosts: ", "the network between hosts was not measured: "
FAILED, SILENT = "a call of the MPI library failed at one end", "one end did not answer in time"


def run(fault, seconds):
    """The job's output and duration, when it ended well within so many seconds."""
    at = command.index("env") + 1
    began = time.monotonic()
    job = subprocess.Popen(command[:at] + [f"THALWEG_TEST_FAULT={fault}", "THALWEG_LOG=info"] + command[at:],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        said, _ = job.communicate(timeout=seconds + 30)
    except subprocess.TimeoutExpired:
        job.terminate()
        said, _ = job.communicate(timeout=30)
        sys.exit(f"calibration.py: {fault}: no end: {said[-2000:]}")
    taken = time.monotonic() - began
    if job.returncode != 0 or "ok:" not in said or taken > seconds:
        sys.exit(f"calibration.py: {fault}: status {job.returncode} after {taken:.1f} s: {said[-2000:]}")
    return said, taken


said, whole = run("count:1", 60)
# Where all of a stream is there at once, nothing is timed.
if said.count(MEASURED) > 1 or DECLINED in said:
    sys.exit(f"calibration.py: not measured once: {said[-2000:]}")
# The first messages are the measurement's: eight round trips, two or three streams of 16 parts with an answer to each, and
# what each end says at its end.
# Ranks 0 and 1 are the ends. How long the job may take beyond its usual time: an end that fails says so; only where that
# fails, too, or a message is lost does the other one wait for its 10 s, and as long for the end; so does one that comes
# after the other has left.
if share == "usual":
    faults = [("Isend:1:0", 8, FAILED), ("Isend:15:0", 8, FAILED), ("Irecv:16:1", 8, FAILED), ("Testsome:18:1", 8, FAILED),
              ("Isend:9:1:lost", 22, SILENT)]
else:
    faults = [("Isend:1:0:lost", 22, SILENT), ("Isend:20:0:lost", 22, SILENT), ("Irecv:1:0", 22, FAILED),
              ("Irecv:1:1", 22, FAILED), ("Isend:41:0", 22, FAILED), ("Isend:15:0:12", 15, SILENT),
              ("Isend:8:1:12", 15, SILENT), ("Isend:15:0:26", 38, SILENT), ("Isend:9:1:26", 38, SILENT)]
    faults += [(f"Testsome:{number}:{rank}", 22, FAILED) for number in (1, 5, 12) for rank in (0, 1)]
for fault, beyond, why in faults:
    said, taken = run(fault, 2 * whole + beyond + 5)
    if said.count(DECLINED + why) != 1 or MEASURED in said:
        sys.exit(f"calibration.py: {fault}: not declined once because {why}: {said[-2000:]}")
    print(f"{fault}: {taken - whole:+.1f} s")
print("ok")
