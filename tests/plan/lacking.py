"""A job on one of whose ranks libucp does not start: it ends well, and rank 0's report says what carries its operations.

    lacking.py single|multiple COMMAND…     COMMAND runs programs/collectives.c on three ranks with THALWEG_REPORT=-
"""

import subprocess
import sys

level, command = sys.argv[1], sys.argv[2:]
done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=280, stdin=subprocess.DEVNULL)
said = done.stdout + done.stderr
if done.returncode != 0 or "ok:" not in said:
    sys.exit(f"lacking.py: status {done.returncode}: {said[-3000:]}")
if "nonblocking over ucx" in said:
    sys.exit(f"lacking.py: libucp is used where a rank has none: {said[-3000:]}")
wanted = "nonblocking over mpi" if level == "multiple" else "nothing would advance it while the program computes"
if wanted not in said:
    sys.exit(f"lacking.py: no {wanted!r} in the report: {said[-3000:]}")
print("ok")
