"""Runs a program with and without Thalweg: it must say the same, but for lines that begin with "ok:", and leave nothing in
shared memory.

    same.py [ends] COMMAND…     behind its `env` COMMAND names the preload objects and the settings, which the other run
                                lacks; `ends`: the program need not end well, but as badly with us as without us, and what
                                is said is not compared: launchers drop what they have not passed on by then
"""

import subprocess
import sys

from jobs import left_behind, shared


def run(command, may_fail):
    """Whether it ended well; what was said, in no order."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=140,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        sys.exit(f"same.py: no end after {late.timeout:g} s: {command}\n{late.stdout}\n{late.stderr}")
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    text = done.stdout + done.stderr
    if done.returncode != 0 and not may_fail or ".c:" in text and "rank" in text:
        sys.exit(f"same.py: status {done.returncode}: {command}\n{text}")
    if may_fail:
        return [f"ended {'well' if done.returncode == 0 else 'badly'}"]
    return sorted(line for line in done.stdout.splitlines() if line and not line.startswith("ok:"))


ours = sys.argv[1:]
ends = ours[0] == "ends"
ours = ours[ends:]
at = ours.index("env") + 1
end = next(i for i in range(at, len(ours)) if "=" not in ours[i])
without = [word for word in ours[at:end] if not word.startswith(("LD_PRELOAD=", "THALWEG_"))]
native = run([*ours[:at], *without, "THALWEG_TEST_EXPECT=native", *ours[end:]], ends)
before = shared()
found = run(ours, ends)
if found != native:
    sys.exit(f"same.py: without Thalweg: {native}\nwith it: {found}")
left = left_behind(before)
if left:
    sys.exit(f"same.py: left in /dev/shm: {left}")
print(f"ok: {len(found)} lines alike: {' '.join(found)[:500]}")
