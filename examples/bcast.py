"""Broadcasts and checks every byte, through mpi4py: several sizes, every root, a strided datatype on the receiving
side, pickled objects, and a communicator split in two. Buffers are poisoned before every call. Exits with 1 on a
wrong byte.

    mpiexec -n 4 python examples/bcast.py
"""
import sys

from mpi4py import MPI

SIZES = [0, 1, 8, 1000, 65536, 262144, 1 << 20]
GUARD = 64
POISON = b"\xa5"


def message(seed, size):
    """`size` bytes that no other seed gives, so data kept from an earlier call is seen."""
    unit = bytes((seed * 31 + i * 7 + (i >> 3)) & 0xFF for i in range(1009))
    return (seed.to_bytes(8, "little") + unit * (size // len(unit) + 1))[:size] if size else b""


def every_root(comm):
    wrong = 0
    seed = 0
    for size in SIZES:
        for root in range(comm.size):
            seed += 1
            expected = message(seed, size)
            buffer = bytearray(POISON * (size + 2 * GUARD))
            view = memoryview(buffer)[GUARD:GUARD + size]
            if comm.rank == root:
                view[:] = expected
            comm.Bcast([view, MPI.BYTE], root=root)
            wrong += view != expected
            wrong += buffer[:GUARD] != POISON * GUARD or buffer[GUARD + size:] != POISON * GUARD
    return wrong


def strided(comm):
    """The root sends plain bytes; the others receive them into blocks of 3 every 5."""
    blocks, length, step = 30000, 3, 5
    root = comm.size - 1
    expected = bytearray(message(12345, blocks * length))
    vector = MPI.BYTE.Create_vector(blocks, length, step).Commit()
    buffer = bytearray(POISON * (blocks * step))
    if comm.rank == root:
        comm.Bcast([expected, MPI.BYTE], root=root)
        wrong = 0
    else:
        comm.Bcast([buffer, 1, vector], root=root)
        wrong = any(buffer[i::step] != expected[i::length] for i in range(length))
        wrong += any(buffer[i::step] != POISON * blocks for i in range(length, step))
    vector.Free()
    return int(wrong)


def objects(comm):
    wrong = 0
    for root in range(comm.size):
        value = {"root": root, "rows": list(range(20000)), "text": "thalweg" * 100}
        try:
            wrong += comm.bcast(value if comm.rank == root else None, root=root) != value
        except Exception as error:  # a damaged pickle may fail in any way
            print(f"rank {comm.rank}: object from root {root}: {error}", file=sys.stderr)
            wrong += 1
    return wrong


def main():
    world = MPI.COMM_WORLD
    wrong = every_root(world) + strided(world) + objects(world)
    half = world.Split(color=world.rank % 2, key=-world.rank)
    wrong += every_root(half)
    half.Free()
    total = world.allreduce(wrong)
    if world.rank == 0:
        print(f"# {total} WRONG broadcasts" if total else f"# {world.size} ranks: every byte correct", flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
