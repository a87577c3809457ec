"""What jobs leave behind in shared memory."""

import os
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
