"""A round of `thalweg bench apps` writes right rows of every version on each side, and goes on where its file ends.
One that is interrupted shows the rounds that are whole, and leaves nothing behind.

    apps.py THALWEG MPI         in labs of 2 hosts
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from common import expect, needs_lab

thalweg, mpi = sys.argv[1:]
ALL = {"blocking", "waited", "nonblocking", "manual/16", "manual/64", "manual/256"}
WANTED = {f"{side}/{each}" for side in ("native", "thalweg") for each in ALL}
WANTED |= {"native (A/A)/blocking", "native (A/A)/nonblocking"}


def eventually(condition, seconds):
    """What it returns as soon as that is true; False when it has not been."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        if result := condition():
            return result
        time.sleep(0.05)
    return False


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def words(out, rounds=1):
    return [thalweg, "bench", "apps", "--mpi", mpi, "--hosts", "2", "--ppn", "1", "--rate", "100mbit", "--app", "radix_sort",
            "--rounds", str(rounds)] + ([] if out is None else ["--out", str(out)])


def bench(out):
    ended = subprocess.run(words(out), capture_output=True, text=True, timeout=280)
    expect(ended.returncode == 0, f"exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    expect("radix sort" in ended.stdout and "nonblocking" in ended.stdout, ended.stdout)
    return ended


needs_lab(thalweg)
with tempfile.TemporaryDirectory(prefix="tw") as folder:
    out = pathlib.Path(folder) / "rows.jsonl"
    bench(out)
    whole = out.read_text()
    rows = [json.loads(line) for line in whole.splitlines()]
    seen = {row["column"] for row in rows}
    expect(seen == WANTED and len(rows) == len(WANTED), "columns:", sorted(seen ^ WANTED), len(rows))
    for row in rows:
        expect(row["wrong_words"] == 0 and row["app"]["wrong"] == "" and row["seconds"], row)
        expect(float(row["context"]["settings"]["THALWEG_LAB_RATE_BYTES_PER_S"]) > 1e6, row["context"])
        told = {"transport", "waiting"} & row["context"].keys()
        expect(len(told) in ((0, 2) if row["column"].startswith("thalweg/") else (0,)), row["column"], row["context"])
    bench(out)
    expect(out.read_text() == whole, "a complete file was measured again")
    # Cut off behind the first side: the others are measured.
    kept = [row for row in whole.splitlines() if json.loads(row)["column"].startswith("native/")]
    out.write_text("\n".join(kept) + "\n")
    bench(out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    expect(len(rows) == len(WANTED), "rows after going on:", len(rows))

    # Interrupted in the second round, where nothing is written down.
    place = pathlib.Path(folder) / "place"
    place.mkdir()
    running = subprocess.Popen(words(None, 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(place)})
    for line in running.stderr:
        if "round 2 of 2" in line:
            break
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    shown, said = running.communicate(timeout=60)
    expect(running.returncode == -signal.SIGINT and "thalweg bench: interrupted; " in said, running.returncode, said)
    expect("radix sort" in shown and "nonblocking" in shown, "what was measured is lost:", shown)
    expect(not list(place.glob("thalweg-apps-*")), "something was left behind:", list(place.iterdir()))

    # Killed while a lab runs: the lab goes, too.
    killed = subprocess.Popen(words(pathlib.Path(folder) / "none.jsonl"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = pathlib.Path(f"/proc/{killed.pid}/task/{killed.pid}/children")
    lab = eventually(lambda: [int(child) for child in children.read_text().split()], 20)
    time.sleep(1)
    killed.kill()
    killed.wait()
    expect(lab and eventually(lambda: is_gone(lab[0]), 20), "the lab went on", lab)
print(f"{len(WANTED)} rows of each round")
