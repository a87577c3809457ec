"""Runs a job of which a rank is killed: it must end within 10 s of that, with a status that is not 0, and leave nothing
in /dev/shm but what the MPI library itself left there.

    ended.py COMMAND…
"""

import os
import subprocess
import sys
import time

# What MPI libraries call their own.
OF_MPI = ("mpich", "mpi_", "vader_segment", "sm_segment", "open_mpi", "ompi", "Intel_MPI", "impi", "pmix", "prte")


def shared():
    return {name for name in os.listdir("/dev/shm") if not name.startswith(OF_MPI)}


before = shared()
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
# Other jobs have files there for a moment.
for _ in range(20):
    left = shared() - before
    if not left:
        break
    time.sleep(0.1)
if left:
    sys.exit(f"ended.py: left in /dev/shm: {sorted(left)}")
print(f"ok: status {job.returncode} after {took:.1f} s")
