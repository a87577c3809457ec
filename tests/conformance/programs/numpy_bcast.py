"""Broadcasts NumPy arrays: many types, shapes, roots, a strided receiver, and structured records; every byte is
compared, those around the arrays too. Exits with 1 on a wrong byte."""

import sys

import numpy
from mpi4py import MPI

TYPES = "b h i l B H I L f d F D".split()
SHAPES = [(1,), (7,), (1000,), (33, 65), (5, 4, 3, 2), (300000,)]
GUARD, POISON = 64, 0xA5


def contents(seed, bytes_):
    return numpy.random.default_rng(seed).integers(0, 256, bytes_, dtype=numpy.uint8)


def once(comm, root, shape, dtype, seed):
    """Bit patterns, not values: a NaN that changes its payload is damage too."""
    bytes_ = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    expected = contents(seed, bytes_)
    area = numpy.full(bytes_ + 2 * GUARD, POISON, dtype=numpy.uint8)
    data = area[GUARD:GUARD + bytes_]
    if comm.rank == root:
        data[:] = expected
    comm.Bcast(data.view(dtype).reshape(shape), root=root)
    guards = numpy.concatenate((area[:GUARD], area[GUARD + bytes_:]))
    return int(not numpy.array_equal(data, expected) or not (guards == POISON).all())


def column(comm, root, seed):
    """The root sends a vector; the others receive it into a column of a matrix."""
    rows, columns = 5000, 3
    expected = contents(seed, rows * 8).view("u8")
    if comm.rank == root:
        comm.Bcast([expected, MPI.UINT64_T], root=root)
        return 0
    matrix = numpy.full((rows, columns), 0xA5A5A5A5A5A5A5A5, dtype="u8")
    kind = MPI.UINT64_T.Create_vector(rows, 1, columns).Commit()
    comm.Bcast([matrix.ravel()[1:], 1, kind], root=root)
    kind.Free()
    others = matrix[:, [0, 2]]
    return int(not numpy.array_equal(matrix[:, 1], expected) or not (others == 0xA5A5A5A5A5A5A5A5).all())


def main():
    comm, wrong, seed = MPI.COMM_WORLD, 0, 0
    for root in range(comm.size):
        for shape in SHAPES:
            for dtype in TYPES if shape != SHAPES[-1] else "lD":
                seed += 1
                wrong += once(comm, root, shape, dtype, seed)
        wrong += column(comm, root, seed := seed + 1)
    total = comm.allreduce(wrong)
    if comm.rank == 0:
        print(f"# {total} WRONG arrays" if total else f"# {comm.size} ranks: every byte correct", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
