"""Runs a job of which a rank kills itself: it must end within 10 s of that, with a status that is not 0, and leave nothing
in /dev/shm but what the MPI library itself left there. A busy machine is given three jobs for the 10 s; one that hangs,
or ends well, is enough.

    ended.py COMMAND…     the rank leaves the time of its death in the file that THALWEG_TEST_DIED names
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

from jobs import left_behind, shared

PROMISED, HANGS = 10, 80  # seconds


def run(died):
    """Seconds from the death to the end, the status, what was said."""
    at = sys.argv.index("env") + 1
    command = sys.argv[1:at] + [f"THALWEG_TEST_DIED={died}"] + sys.argv[at:]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        said, _ = job.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        job.terminate()
        try:
            said, _ = job.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            job.kill()
            said, _ = job.communicate()
        sys.exit(f"ended.py: no end after {HANGS} s: {said}")
    ended = time.monotonic()
    if job.returncode == 77 and "skipped: " in said:
        print(said)
        sys.exit(77)
    if job.returncode == 0 or not died.exists() or re.search(r"\.c:\d+: rank \d+: ", said):
        sys.exit(f"ended.py: status {job.returncode}: {said}")
    return ended - float(died.read_text()), job.returncode, said


before = shared()
with tempfile.TemporaryDirectory(prefix="thalweg-ended-") as folder:
    for attempt in range(3):
        took, status, said = run(pathlib.Path(folder) / str(attempt))
        if took <= PROMISED:
            break
if took > PROMISED:
    sys.exit(f"ended.py: {took:.1f} s: {said}")
left = left_behind(before)
if left:
    sys.exit(f"ended.py: left in /dev/shm: {left}")
print(f"ok: status {status} after {took:.1f} s")
