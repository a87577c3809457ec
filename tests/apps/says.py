"""Runs an application: it ends with this status, and says so in a line.

    says.py STATUS LINE COMMAND…    LINE is a regular expression of its begin
"""

import re
import subprocess
import sys

status, line, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=280, stdin=subprocess.DEVNULL)
said = done.stdout + done.stderr
print(said)
if done.returncode != status or not re.search(f"^{line}", said, re.MULTILINE):
    sys.exit(f"says.py: status {done.returncode}, where {status} and {line!r} were to come")
