"""Runs a program whose first rank has not loaded one of our objects, which the second has.

    mixed_planners.py OBJECT COMMAND…     OBJECT: "persistent" or "bigcount"; COMMAND starts two ranks; it contains
                                          "-n 2" and one LD_PRELOAD
"""

import subprocess
import sys

lacking, command = sys.argv[1], sys.argv[2:]
at = command.index("-n")
program = command[at + 2:]
without = []
for word in program:
    if word.startswith("LD_PRELOAD="):
        word = ":".join(part for part in word.split(":") if not part.endswith(f"-{lacking}.so"))
    without.append(word)
if without == program:
    sys.exit("mixed_planners.py: the command loads no such object")
result = subprocess.run([*command[:at], "-n", "1", *without, ":", "-n", "1", *program], capture_output=True, text=True,
                        errors="replace", timeout=60, stdin=subprocess.DEVNULL)
sys.stdout.write(result.stdout + result.stderr)
sys.exit(result.returncode)
