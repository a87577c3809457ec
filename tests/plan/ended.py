"""Runs a job of which a rank kills itself: it must end within 10 s of that, with a status that is not 0, and leave none of its
processes behind, nor anything in /dev/shm but what the MPI library itself left there. A busy machine is given three jobs for
the 10 s; one that hangs, or ends well, or leaves a process, is enough.

    ended.py COMMAND…     the rank leaves the time of its death in the file that THALWEG_TEST_DIED names
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from jobs import left_behind, marked, shared, survivors

PROMISED, HANGS = 10, 80  # seconds


def run(died):
    """Seconds from the death to the end, the status, what was said."""
    at = sys.argv.index("env") + 1
    mark = f"THALWEG_TEST_DIED={died}"
    command = sys.argv[1:at] + [mark] + sys.argv[at:]
    # The launcher's other processes have the variable from it.
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                           env={**os.environ, "THALWEG_TEST_DIED": str(died)})
    # A program that has just been started has no environment yet for a moment.
    for _ in range(50):
        if found := marked(mark):
            break
        time.sleep(0.02)
    if not found:
        job.terminate()
        sys.exit("ended.py: the processes of a job cannot be told by their environment")
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
    left = survivors(mark, PROMISED)
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if left:
        sys.exit(f"ended.py: still there {PROMISED} s after the job: {left}: {said}")
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
