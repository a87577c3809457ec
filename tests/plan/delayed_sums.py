"""Launches a program of floating-point sums twice, with another rank late in each: both must print the same bits.

    delayed_sums.py COMMAND…    COMMAND runs programs/delayed_sums.c; who comes late is added here
"""

import subprocess
import sys


def bits(late):
    """The lines that tell the bits of a sum, in the order of the calls."""
    done = subprocess.run([*sys.argv[1:], late], capture_output=True, text=True, errors="replace", timeout=140,
                          stdin=subprocess.DEVNULL)
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    lines = [line for line in done.stdout.splitlines() if line.startswith("sum ")]
    if done.returncode != 0 or len(lines) != 12:
        sys.exit(f"delayed_sums.py: {late}: status {done.returncode}, {len(lines)} sums: {done.stdout}{done.stderr}")
    return lines


first, last = bits("first"), bits("last")
different = [f"{one}, but {other.split()[-1]}" for one, other in zip(first, last) if one != other]
if different:
    sys.exit(f"delayed_sums.py: other bits in the second launch: {'; '.join(different)}")
print(f"ok: {len(first)} sums have the same bits in both launches")
