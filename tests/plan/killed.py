"""Kills a rank, drawn at random, at a moment drawn at random, again and again: each time the job must end within 10 s,
with a status that is not 0, and leave none of its processes behind. A busy machine is given three jobs for the 10 s;
one that hangs, or ends well, or leaves a process, is enough.

    killed.py SEED TIMES PROGRAM COMMAND…     COMMAND starts ranks of PROGRAM, which would run for longer than a minute
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from jobs import left_behind, shared

MOMENTS = 3.0  # seconds after the ranks were there
LIMIT, HANGS = 10.0, 80.0  # seconds from the kill to the end of the job
TRIES = 3


def children():
    """{process: its children}"""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(entry.name))
        except (OSError, IndexError):
            pass  # it has just ended
    return found


def ranks_of(launcher, program):
    """The processes below the launcher that run the program, in the order of their numbers."""
    below, todo, found = children(), [launcher], []
    while todo:
        process = todo.pop()
        todo += below.get(process, [])
        try:
            if os.path.samefile(f"/proc/{process}/exe", program):
                found.append(process)
        except OSError:
            pass
    return sorted(found)


def alive(process, program):
    """Still the program's, not another's process of the same number, and no zombie (whose exe cannot be read)."""
    try:
        return os.path.samefile(f"/proc/{process}/exe", program)
    except OSError:
        return False


def once(draw, program, command, log):
    """What is wrong, if anything is, and how many seconds the job took to end."""
    job = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        deadline, ranks = time.monotonic() + 30, []
        while len(ranks) < 2 or len(ranks) != len(ranks_of(job.pid, program)):
            if job.poll() is not None or time.monotonic() > deadline:
                return f"the ranks did not start: {len(ranks)}, status {job.poll()}", 0
            time.sleep(0.1)
            ranks = ranks_of(job.pid, program)
        moment = draw.uniform(0, MOMENTS)
        time.sleep(moment)
        victim = draw.randrange(len(ranks))
        what = f"rank {victim} of {len(ranks)} killed after {moment:.2f} s"
        if job.poll() is not None:
            return f"{what}: the job was over by then, with status {job.returncode}", 0
        os.kill(ranks[victim], signal.SIGKILL)
        killed = time.monotonic()
        try:
            status = job.wait(timeout=HANGS)
        except subprocess.TimeoutExpired:
            return f"{what}: no end within {HANGS:g} s", HANGS
        took = time.monotonic() - killed
        if status == 0:
            return f"{what}: status 0 after {took:.1f} s", took
        # The launcher may be gone a moment before the ranks that it killed.
        while any(alive(rank, program) for rank in ranks):
            if time.monotonic() - killed > took + LIMIT:
                return f"{what}: ranks are still there {LIMIT:g} s later", took
            time.sleep(0.1)
        print(f"{what}: status {status} after {took:.1f} s", flush=True)
        return None, took
    finally:
        for rank in ranks_of(job.pid, program):
            os.kill(rank, signal.SIGKILL)
        if job.poll() is None:
            job.kill()
            job.wait()


def main(seed, times, program, *command):
    draw, before = random.Random(int(seed)), shared()
    for _ in range(int(times)):
        for _ in range(TRIES):
            with tempfile.TemporaryFile("w+", errors="replace") as log:
                trouble, took = once(draw, program, command, log)
                if trouble:
                    log.seek(0)
                    sys.exit(f"killed.py: {trouble}\n{log.read()[-4000:]}")
            if took <= LIMIT:
                break
        if took > LIMIT:
            sys.exit(f"killed.py: {took:.1f} s from the kill to the end, more than {LIMIT:g} s in each of {TRIES} jobs")
    left = left_behind(before)
    if left:
        sys.exit(f"killed.py: left in /dev/shm: {left}")


main(*sys.argv[1:])
