"""Runs a job of which a rank is killed: it must end within 10 s of that, with a status that is not 0.

    ended.py COMMAND…
"""

import subprocess
import sys
import time

began = time.monotonic()
job = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
try:
    said, _ = job.communicate(timeout=20)
except subprocess.TimeoutExpired:
    job.terminate()
    try:
        said, _ = job.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        job.kill()
        said, _ = job.communicate()
    sys.exit(f"ended.py: no end after 20 s: {said}")
took = time.monotonic() - began
if job.returncode == 0 or "rank" in said and ".c:" in said:
    sys.exit(f"ended.py: status {job.returncode} after {took:.1f} s: {said}")
if took > 12:
    sys.exit(f"ended.py: {took:.1f} s: {said}")
print(f"ok: status {job.returncode} after {took:.1f} s")
