"""What the tests of `thalweg bench` share."""
import json
import pathlib
import subprocess
import sys


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def rows(path):
    """Of a file of results."""
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def needs_lab(thalweg):
    """Exit status 77 where this machine has no lab."""
    works = subprocess.run([thalweg, "lab", "check"], capture_output=True, text=True)
    if works.returncode != 0:
        print("skipped:", works.stderr.strip() or works.stdout.strip())
        sys.exit(77)
