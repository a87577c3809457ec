"""What the random program (random_calls.py) sends and receives: contents that no other message has, datatypes laid out at
random, poisoned buffers."""

import zlib

import numpy

POISON = 0xA5


def content(key, size):
    """`size` bytes that no other key has, as good as."""
    start = numpy.uint64(zlib.crc32(repr(key).encode()))
    places = numpy.arange(size, dtype=numpy.uint64) + start * numpy.uint64(7919)
    return ((places * numpy.uint64(2654435761)) >> numpy.uint64(13)).astype(numpy.uint8)


class Unit:
    """A datatype with the signature of `length` elements of `base`, laid out as `rng` draws it."""

    def __init__(self, rng, base, length):
        element = base.Get_size()
        self.freed = []
        shape = rng.choice(["plain", "plain", "gaps", "shuffled", "spread"])
        if shape == "plain" or length == 0:
            places, extent = list(range(length)), length
        elif shape == "gaps":
            places, extent = [2 * i for i in range(length)], 2 * length + rng.randrange(3)
        elif shape == "shuffled":
            places, extent = rng.sample(range(length + 2), length), length + 2
        else:
            cut = rng.randrange(length + 1)
            places, extent = [*range(cut), *range(cut + 3, length + 3)], length + 3
        self.extent = extent * element
        if shape == "plain" and length == 1:
            self.type = base
        else:
            inner = base.Create_contiguous(length) if shape == "plain" or length == 0 else base.Create_indexed_block(1, places)
            self.type = inner.Create_resized(0, self.extent).Commit()
            inner.Free()
            self.freed.append(self.type)
        self.bytes = length * element
        self.places = (numpy.array(places, dtype=numpy.int64)[:, None] * element + numpy.arange(element)).ravel()

    def block(self, start, count):
        """Where the bytes of `count` units from byte `start` lie, in the order of the type map."""
        return (start + numpy.arange(count, dtype=numpy.int64)[:, None] * self.extent + self.places).ravel()

    def free(self):
        for datatype in self.freed:
            datatype.Free()


class Side:
    """What one rank sends or receives: a poisoned buffer, and a block of it for each peer."""

    def __init__(self, rng, units, counts, uniform):
        """units: one for all blocks, or one each. uniform: blocks follow one another."""
        self.units = units if len(units) == len(counts) else units * len(counts)
        self.counts = counts
        order = list(range(len(counts)))
        if not uniform:
            rng.shuffle(order)
        self.starts, end = [0] * len(counts), 0
        for i in order:
            unit = self.units[i]
            step = max(unit.extent, 1)
            self.starts[i] = end
            end += counts[i] * unit.extent + (0 if uniform else step * rng.randrange(3))
            if len(units) == len(counts) and len(set(units)) > 1:
                end += -end % 8
        self.size = end + 64
        self.memory = numpy.full(self.size, POISON, dtype=numpy.uint8)
        self.blocks = [self.units[i].block(self.starts[i], counts[i]) for i in range(len(counts))]
        self.expected = None

    def fill(self, keys):
        self.memory[:] = POISON
        for block, key in zip(self.blocks, keys):
            self.memory[block] = content(key, len(block))
        self.expected = self.memory.copy()

    def expect(self, keys):
        """Everything else of the buffer keeps its poison."""
        self.memory[:] = POISON
        self.expected = self.memory.copy()
        for block, key in zip(self.blocks, keys):
            self.expected[block] = content(key, len(block))

    def check(self, what):
        if not numpy.array_equal(self.memory, self.expected):
            wrong = numpy.flatnonzero(self.memory != self.expected)
            raise AssertionError(f"{what}: {len(wrong)} of {self.size} bytes WRONG, from byte {wrong[0]} to {wrong[-1]}")

    # The forms in which mpi4py takes it. Displacements of v are in extents, those of w in bytes.
    def whole(self):
        return [self.memory, self.counts[0], self.units[0].type]

    def vector(self):
        return [self.memory, self.counts, [start // max(self.units[0].extent, 1) for start in self.starts], self.units[0].type]

    def each(self):
        return [self.memory, self.counts, self.starts, [unit.type for unit in self.units]]
