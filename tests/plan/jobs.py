"""What jobs leave behind: names in shared memory, and processes."""

import os
import pathlib
import time

# What MPI libraries call their own.
OF_MPI = ("mpich", "mpi_", "vader_segment", "sm_segment", "open_mpi", "ompi", "Intel_MPI", "impi", "pmix", "prte")


def shared():
    return {name for name in os.listdir("/dev/shm") if not name.startswith(OF_MPI)}


def left_behind(before):
    """Names that are new since `before` and stay: other jobs have files there for a moment, and what they make from now on
    is theirs."""
    left = shared() - before
    for _ in range(200):
        if not left:
            break
        time.sleep(0.1)
        left &= shared()
    return sorted(left)


def marked(mark):
    """{process: its command} of those that were started with the variable NAME=VALUE, zombies not counted."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass  # another user's, or it has just ended
    return found


def survivors(mark, seconds):
    """Those that are still there so much later: a launcher may be gone a moment before the ranks that it killed."""
    deadline = time.monotonic() + seconds
    while left := marked(mark):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return left
