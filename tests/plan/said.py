"""Runs a job that must end well and say a sentence exactly once, whatever the number of its ranks.

    said.py SENTENCE COMMAND…     SENTENCE is a regular expression; nothing else may come from Thalweg
"""

import re
import subprocess
import sys

sentence, command = sys.argv[1], sys.argv[2:]
done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=280, stdin=subprocess.DEVNULL)
text = done.stdout + done.stderr
if done.returncode != 0:
    sys.exit(f"said.py: status {done.returncode}: {text}")
ours = re.findall(r"thalweg: .*", text)
if len(ours) != 1 or not re.search(sentence, ours[0]):
    sys.exit(f"said.py: {ours} in the place of one that is {sentence!r}: {text}")
print(f"ok: {ours[0]}")
