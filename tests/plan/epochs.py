"""Runs a program whose MPI begins and ends more than once, first without Thalweg: what the library itself does not bear is
skipped, and said; everything else must go with Thalweg too, to the same end.

    epochs.py COMMAND…     behind its `env` COMMAND names the preload objects and the settings, which the other run lacks
"""

import re
import subprocess
import sys

# On a busy machine MPICH 5.0.2 fails in MPI_Comm_create_from_group now and then, without Thalweg too.
SPOILT = re.compile("create_from_group|failed to unpack address")


def run(command):
    """What was said, in no order, and whether the end was good."""
    for _ in range(5):
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=50,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            return f"no end after {late.timeout:g} s", False
        said = done.stdout + done.stderr
        if done.returncode == 0 or not SPOILT.search(said):
            break
    return said, done.returncode == 0


def lines(said):
    return sorted(line for line in said.splitlines() if not line.startswith("ok:"))


ours = sys.argv[1:]
at = ours.index("env") + 1
end = next(i for i in range(at, len(ours)) if "=" not in ours[i])
kept = [word for word in ours[at:end] if not word.startswith(("LD_PRELOAD=", "THALWEG_"))]
native, good = run([*ours[:at], *kept, "THALWEG_TEST_EXPECT=native", *ours[end:]])
if not good:
    print(f"skipped: {ours[-1]} does not end well without Thalweg either:\n{native[:1000]}")
    sys.exit(77)
said, good = run(ours)
if not good or lines(said) != lines(native):
    sys.exit(f"epochs.py: {' '.join(ours)}\n{said}\nwithout Thalweg: {native}")
print(f"ok: {' '.join(lines(said))}")
