"""Runs a program whose first rank has not loaded the object for persistent collectives, which the second has.

    mixed_planners.py COMMAND…     COMMAND starts two ranks; it contains "-n 2" and one LD_PRELOAD
"""

import subprocess
import sys

command = sys.argv[1:]
at = command.index("-n")
program = command[at + 2:]
without = []
for word in program:
    if word.startswith("LD_PRELOAD="):
        word = ":".join(part for part in word.split(":") if not part.endswith("-persistent.so"))
    without.append(word)
if without == program:
    sys.exit("mixed_planners.py: the command loads no such object")
result = subprocess.run([*command[:at], "-n", "1", *without, ":", "-n", "1", *program], capture_output=True, text=True,
                        errors="replace", timeout=60, stdin=subprocess.DEVNULL)
sys.stdout.write(result.stdout + result.stderr)
sys.exit(result.returncode)
