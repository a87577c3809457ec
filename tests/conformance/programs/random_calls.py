"""A random MPI program: the same seed makes the same program on every rank. It makes, splits and frees communicators and
topologies; calls collectives in their blocking, nonblocking and persistent forms, and others, on all of them; lets ranks
come late; and ends requests in an order and by calls that each rank draws for itself. Buffers of every rank have layouts
of their own and are poisoned; after each operation every byte of them is compared with what the standard defines.

    random_calls.py SEED STEPS     prints "every byte correct", or stops the job with what was wrong
"""

import os
import random
import sys
import time
import traceback
import zlib

import numpy
from mpi4py import MPI

POISON = 0xA5
LONGEST_WAIT = 0.004  # seconds a rank comes late
# What the libraries get wrong by themselves is left out, of the library that does.
OPEN_MPI = "Open MPI" in MPI.Get_library_version()
INTEL_MPI = "Intel" in MPI.Get_library_version()
BASES = [MPI.BYTE, MPI.INT32_T, MPI.DOUBLE]


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


class Place:
    """A communicator, known to all ranks by its members (ranks of the program's world)."""

    def __init__(self, members, comm, sources=None, destinations=None):
        self.members, self.comm = members, comm
        # With a topology: {member: neighbours by their rank here}, in MPI's order; PROC_NULL where a border is.
        self.sources, self.destinations = sources, destinations


class Operation:
    """What is under way on this rank: made once, started once or more."""

    def __init__(self, name, call, sides, begin, units):
        self.name, self.call, self.sides, self.begin, self.units = name, call, sides, begin, units
        self.request, self.active, self.round = None, False, 0

    def prepare(self):
        self.round += 1
        self.begin(self.round)

    def finish(self):
        self.active = False
        for side in self.sides:
            side.check(f"{self.name}, round {self.round}")

    def free(self):
        for unit in self.units:
            unit.free()


class Program:
    def __init__(self, seed, world):
        self.shared = random.Random(seed)  # drawn alike on all ranks
        self.world, self.rank, self.size = world, world.Get_rank(), world.Get_size()
        self.own = random.Random(f"{seed}/{self.rank}")
        self.seed = seed
        self.places = [Place(list(range(self.size)), world)]
        self.pending, self.plans, self.number, self.lines = [], [], 0, []

    # ---- communicators
    def make_place(self):
        rng = self.shared
        parent = rng.choice(self.places)
        kind = rng.choice(["dup", "split", "split", "cart", "cart", "graph", "graph"])
        if OPEN_MPI and parent.sources is not None:
            parent = self.places[0]  # what is made of a topology and freed takes the topology along
        inside = self.rank in parent.members
        size = len(parent.members)
        if kind == "dup":
            self.places.append(Place(parent.members, parent.comm.Dup() if inside else None))
        elif kind == "split":
            colours = [rng.randrange(2) for _ in parent.members]
            keys = [rng.randrange(4) for _ in parent.members]
            mine = None
            if inside:
                me = parent.members.index(self.rank)
                mine = parent.comm.Split(colours[me], keys[me])
            for colour in sorted(set(colours)):
                members = [parent.members[i] for i in sorted(range(size), key=lambda i: (keys[i], i)) if colours[i] == colour]
                self.places.append(Place(members, mine if self.rank in members else None))
        elif kind == "cart":
            self.make_grid(rng, parent, inside, size)
        else:
            # No edge twice: of those this MPI may get the order wrong where it runs the call.
            density = rng.choice([0.3, 0.7, 1.0])
            edges = [[j for j in range(size) if rng.random() < density] for _ in range(size)]
            sources = {i: [j for j in range(size) if i in edges[j]] for i in range(size)}
            for i in range(size):
                rng.shuffle(edges[i])
                rng.shuffle(sources[i])
            comm = None
            if inside:
                me = parent.members.index(self.rank)
                comm = parent.comm.Create_dist_graph_adjacent(sources[me], edges[me])
            self.places.append(Place(parent.members, comm, sources, dict(enumerate(edges))))

    def make_grid(self, rng, parent, inside, size):
        dims = rng.choice([d for d in [(size,), (2, size // 2), (size // 2, 2), (3, size // 3), (1, size)]
                           if d[0] > 0 and numpy.prod(d) == size])
        # A periodic dimension of size 1 or 2 has two edges between the same ranks; see above.
        periods = [d > 2 and rng.random() < 0.5 for d in dims]
        neighbours = {}
        for i in range(size):
            at = numpy.unravel_index(i, dims)
            neighbours[i] = []
            for d, length in enumerate(dims):
                for step in (-1, 1):
                    to = list(at)
                    to[d] += step
                    if periods[d]:
                        to[d] %= length
                    inner = 0 <= to[d] < length
                    neighbours[i].append(int(numpy.ravel_multi_index(to, dims)) if inner else MPI.PROC_NULL)
        comm = parent.comm.Create_cart(dims, periods, False) if inside else None
        self.places.append(Place(parent.members, comm, neighbours, neighbours))

    def free_place(self):
        if len(self.places) < 3:
            return
        place = self.places.pop(self.shared.randrange(1, len(self.places)))
        if place.comm is not None:
            self.drop([plan for plan in self.plans if plan.place is place])  # their starts would be its use
            if OPEN_MPI:  # which ends what is under way
                self.complete([operation for operation in self.pending if operation.place is place])
            place.comm.Free()

    # ---- operations
    def size_of_blocks(self, most):
        """Units per block, and elements per unit."""
        rng = self.shared
        elements = int(2 ** rng.uniform(0, most)) if rng.random() > 0.1 else 0
        length = rng.choice([1, 1, 2, 3, 5])
        return elements // length, length

    def operation(self):
        rng = self.shared
        place = rng.choice(self.places)
        number = self.number = self.number + 1
        names = ["bcast", "allgather", "allgatherv", "allreduce", "barrier", "alltoall", "alltoallv", "alltoallw"]
        if place.sources is not None:
            names += ["neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw", "neighbor_allgather",
                      "neighbor_allgatherv"] * 2
        name = rng.choice(names)
        form = rng.choice(["", "", "I", "I", "init"])
        base = rng.choice(BASES)
        p = len(place.members)
        count, length = self.size_of_blocks({"bcast": 18, "allgather": 14, "allreduce": 16}.get(name.rstrip("v"), 13))
        in_place = rng.random() < 0.15
        root = rng.randrange(p)
        reduction = rng.choice(["SUM", "MAX", "BXOR"])
        counts = [[0 if rng.random() < 0.2 else rng.randrange(count + 1) for _ in range(p)] for _ in range(p)]
        if place.comm is None:
            return None
        if INTEL_MPI and (form, name) == ("init", "allgather"):
            form = "I"  # its second start sends what the first one sent
        me = place.members.index(self.rank)
        mine = random.Random(f"{self.seed}/{number}/{me}")  # the layout of this rank
        build = getattr(self, "build_" + name.replace("neighbor_", ""))
        about = f"{form}{name} #{number} of {p} ranks"
        made = build(about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name)
        call = {"": name.capitalize(), "I": "I" + name, "init": name.capitalize() + "_init"}[form]
        function = getattr(place.comm, call)
        return form, function, made, place

    def finished(self, about, arguments, sides, begin, units):
        return Operation(about, arguments, sides, begin, units)

    def build_barrier(self, about, *_):
        return self.finished(about, (), [], lambda number: None, [])

    def build_bcast(self, about, place, number, me, mine, base, length, count, counts, root, *_):
        unit = Unit(mine, base, length)
        side = Side(mine, [unit], [count], True)

        def begin(i):
            (side.fill if me == root else side.expect)([(number, i)])
        return self.finished(about, (side.whole(), root), [side], begin, [unit])

    def build_allreduce(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        p = len(place.members)
        kind = numpy.int32 if base == MPI.INT32_T or reduction == "BXOR" else numpy.float64
        datatype = MPI.INT32_T if kind is numpy.int32 else MPI.DOUBLE
        n = count * length
        send, receive = numpy.zeros(n, kind), numpy.zeros(n + 4, kind)
        wanted = numpy.zeros(n + 4, kind)
        combine = {"SUM": numpy.add, "MAX": numpy.maximum, "BXOR": numpy.bitwise_xor}[reduction]

        def of(rank, i):
            return (numpy.arange(n) * (rank + 3) + i * 7 + number) % 1000

        def begin(i):
            result = of(0, i)
            for rank in range(1, p):
                result = combine(result, of(rank, i))
            receive[:] = wanted[:] = -5
            wanted[:n] = result
            if in_place:
                receive[:n] = of(me, i)
            else:
                send[:] = of(me, i)

        class Sum:
            def check(self, what):
                if not numpy.array_equal(receive, wanted):
                    raise AssertionError(f"{what}: {numpy.count_nonzero(receive != wanted)} of {n} elements WRONG")
        first = MPI.IN_PLACE if in_place else [send, n, datatype]
        return self.finished(about, (first, [receive, n, datatype], getattr(MPI, reduction)), [Sum()], begin, [])

    def gathered(self, about, number, me, mine, base, length, per_rank, in_place, vector):
        """Allgather and allgatherv; per_rank: units of each rank."""
        out, into = Unit(mine, base, length), Unit(mine, base, length)
        send, receive = Side(mine, [out], [per_rank[me]], True), Side(mine, [into], per_rank, not vector)

        def begin(i):
            keys = [(number, i, rank) for rank in range(len(per_rank))]
            send.fill([keys[me]])
            receive.expect(keys)
            if in_place:
                receive.memory[receive.blocks[me]] = receive.expected[receive.blocks[me]]
        arguments = (MPI.IN_PLACE if in_place else send.whole(), receive.vector() if vector else receive.whole())
        return self.finished(about, arguments, [send, receive], begin, [out, into])

    def build_allgather(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        if name.startswith("neighbor"):
            return self.neighbours(about, place, number, me, mine, base, length, count, None, "gather")
        return self.gathered(about, number, me, mine, base, length, [count] * len(place.members), in_place, False)

    def build_allgatherv(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        if name.startswith("neighbor"):
            return self.neighbours(about, place, number, me, mine, base, length, count, counts, "gatherv")
        # One layout for all ranks: the rings of MPICH 5.0 cut blocks by the receiver's extent, and pieces do not match.
        alike = random.Random(f"{self.seed}/{number}")
        return self.gathered(about, number, me, alike, base, length, counts[0], in_place, True)

    def build_alltoall(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        if name.startswith("neighbor"):
            return self.neighbours(about, place, number, me, mine, base, length, count, None, "alltoall")
        same = [[count] * len(place.members)] * len(place.members)
        return self.exchanged(about, number, me, mine, base, length, same, in_place, "whole")

    def build_alltoallv(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        if name.startswith("neighbor"):
            return self.neighbours(about, place, number, me, mine, base, length, count, counts, "alltoallv")
        return self.exchanged(about, number, me, mine, base, length, counts, in_place, "vector")

    def build_alltoallw(self, about, place, number, me, mine, base, length, count, counts, root, in_place, reduction, name):
        if name.startswith("neighbor"):
            return self.neighbours(about, place, number, me, mine, base, length, count, counts, "alltoallw")
        return self.exchanged(about, number, me, mine, base, length, counts, in_place, "each")

    def exchanged(self, about, number, me, mine, base, length, counts, in_place, form):
        p = len(counts)
        if OPEN_MPI and "I" in about.split("#")[0]:
            in_place = False  # gaps of the datatype are not kept apart from its bytes
        if in_place:  # both directions of a pair have one size
            counts = [[counts[min(a, b)][max(a, b)] for b in range(p)] for a in range(p)]
        many = p if form == "each" else 1
        outs, intos = ([Unit(mine, base, length) for _ in range(many)] for _ in range(2))
        send = Side(mine, outs, counts[me], form == "whole")
        receive = Side(mine, intos, [counts[peer][me] for peer in range(p)], form == "whole")

        def begin(i):
            to = [(number, i, me, peer) for peer in range(p)]
            send.fill(to)
            receive.expect([(number, i, peer, me) for peer in range(p)])
            if in_place:
                for block, key in zip(receive.blocks, to):
                    receive.memory[block] = content(key, len(block))
        spell = {"whole": Side.whole, "vector": Side.vector, "each": Side.each}[form]
        arguments = (MPI.IN_PLACE if in_place else spell(send), spell(receive))
        return self.finished(about, arguments, [send, receive], begin, outs + intos)

    def neighbours(self, about, place, number, me, mine, base, length, count, counts, form):
        to, from_ = place.destinations[me], place.sources[me]
        gathers = form.startswith("gather")

        def units(sender, receiver):
            if MPI.PROC_NULL in (sender, receiver):
                return count if counts is None else 1
            if counts is None:
                return count
            return counts[sender][0] if gathers else counts[sender][receiver]
        many = form == "alltoallw"
        outs = [Unit(mine, base, length) for _ in range(max(len(to), 1) if many else 1)]
        intos = [Unit(mine, base, length) for _ in range(max(len(from_), 1) if many else 1)]
        uniform = form in ("alltoall", "gather")
        if gathers:
            send = Side(mine, outs, [count if counts is None else counts[me][0]], True)
        else:
            send = Side(mine, outs[:max(len(to), 1)], [units(me, peer) for peer in to], uniform)
        receive = Side(mine, intos, [units(peer, me) for peer in from_], uniform)

        def begin(i):
            send.fill([(number, i, me, None if gathers else peer) for peer in (to if not gathers else [None])])
            receive.expect([(number, i, peer, None if gathers else me) for peer in from_])
            for block, peer in zip(receive.blocks, from_):
                if peer == MPI.PROC_NULL:  # left as it is
                    receive.expected[block] = POISON

        def spell(side, peers, unit):
            if form == "alltoallw":
                return side.each() if peers else [side.memory, [], [], []]
            if form in ("alltoallv", "gatherv"):
                return side.vector() if peers else [side.memory, [], [], unit.type]
            return [side.memory, count, unit.type]
        first = send.whole() if gathers else spell(send, to, outs[0])
        return self.finished(about, (first, spell(receive, from_, intos[0])), [send, receive], begin, outs + intos)

    def call(self):
        made = self.operation()
        if made is None:
            return
        form, function, operation, place = made
        if form == "":
            operation.prepare()
            function(*operation.call)
            operation.finish()
            operation.free()
        elif form == "I":
            operation.prepare()
            operation.request = function(*operation.call)
            operation.active = True
            operation.place = place
            if self.own.random() < 0.5 and not OPEN_MPI:
                operation.free()  # datatypes may go while the operation is under way
                operation.units = []
            self.pending.append(operation)
        else:
            operation.request = function(*operation.call)
            operation.number, operation.place = self.number, place
            self.plans.append(operation)

    def plans_of_all(self):
        """Numbers of plans drawn alike: every rank draws from all numbers ever made, and starts those it has."""
        return self.number and self.shared.randrange(1, self.number + 1)

    def start(self):
        drawn = {self.plans_of_all() for _ in range(8)}
        chosen = [plan for plan in self.plans if plan.number in drawn]
        active = [plan for plan in chosen if plan.active]
        self.complete(active)
        for plan in chosen:
            plan.prepare()
            plan.active = True
        if chosen and self.own.random() < 0.5:
            MPI.Prequest.Startall([plan.request for plan in chosen])
        else:
            for plan in chosen:
                plan.request.Start()

    def drop_plans(self):
        drawn = {self.plans_of_all() for _ in range(3)}
        self.drop([plan for plan in self.plans if plan.number in drawn])

    def drop(self, plans):
        self.complete([plan for plan in plans if plan.active])
        for plan in list(plans):
            plan.request.Free()
            plan.free()
            self.plans.remove(plan)

    # ---- completion
    def complete(self, operations):
        """Waits for these, by calls that this rank draws."""
        rng, left = self.own, list(operations)
        rng.shuffle(left)
        while left:
            requests = [operation.request for operation in left]
            way = rng.choice(["wait", "test", "waitall", "testall", "waitany", "testany", "waitsome", "testsome", "status"])
            if way == "testall" and any(isinstance(request, MPI.Prequest) for request in requests):
                continue  # MPICH 5.0 mistakes plans that have not ended for errors
            done = []
            if way == "wait":
                requests[0].Wait()
                done = [0]
            elif way == "test":
                while not requests[0].Test():
                    pass
                done = [0]
            elif way == "status":
                while not requests[0].Get_status():
                    pass
                requests[0].Wait()
                done = [0]
            elif way == "waitall":
                statuses = []
                try:
                    MPI.Request.Waitall(requests, statuses)
                except MPI.Exception as error:
                    raise AssertionError([(operation.name, MPI.Get_error_string(status.Get_error()))
                                          for operation, status in zip(left, statuses)]) from error
                done = range(len(left))
            elif way == "testall":
                while not MPI.Request.Testall(requests):
                    pass
                done = range(len(left))
            elif way == "waitany":
                done = [MPI.Request.Waitany(requests)]
            elif way == "testany":
                flag = False
                while not flag:
                    index, flag = MPI.Request.Testany(requests)
                done = [index]
            else:
                done = []
                while not done:
                    done = getattr(MPI.Request, way.capitalize())(requests) or []
            for operation, request in zip(left, requests):
                operation.request = request
            for index in sorted(done, reverse=True):
                operation = left.pop(index)
                operation.finish()
                if operation in self.pending:
                    self.pending.remove(operation)
                    operation.free()

    def some(self):
        under_way = self.pending + [plan for plan in self.plans if plan.active]
        self.complete(self.own.sample(under_way, self.own.randrange(len(under_way) + 1)))

    # ---- what goes on besides
    def message(self):
        """A message of the program's own, around the world, large enough for a handshake now and then."""
        size = self.shared.choice([10, 5000, 200000])
        key = (self.number, "message")
        got = numpy.full(size, POISON, dtype=numpy.uint8)
        receive = self.world.Irecv([got, MPI.BYTE], (self.rank - 1) % self.size, 5)
        send = self.world.Isend([content((*key, self.rank), size), MPI.BYTE], (self.rank + 1) % self.size, 5)
        MPI.Request.Waitall([receive, send])
        if not numpy.array_equal(got, content((*key, (self.rank - 1) % self.size), size)):
            raise AssertionError(f"message after #{self.number}: WRONG")

    def native(self):
        place = self.shared.choice(self.places)
        if place.comm is not None:
            p = len(place.members)
            total = place.comm.scan(1)
            if total != place.members.index(self.rank) + 1 or place.comm.gather(self.rank, p - 1) not in (None, place.members):
                raise AssertionError("scan or gather: WRONG")

    def late(self):
        if self.own.random() < 0.3:
            time.sleep(self.own.random() * LONGEST_WAIT)

    def run(self, steps):
        actions = {self.call: 12, self.start: 5, self.some: 4, self.make_place: 1, self.free_place: 1, self.drop_plans: 1,
                   self.message: 1, self.native: 1, self.late: 2}
        for self.step in range(steps):
            (action,) = self.shared.choices(list(actions), actions.values())
            if action == self.make_place and len(self.places) > 7:
                action = self.free_place
            action()
        self.complete(self.pending)
        self.drop(self.plans)
        for place in self.places[1:]:
            if place.comm is not None:
                place.comm.Free()


def main(seed, steps):
    world = MPI.COMM_WORLD.Dup()
    program = Program(seed, world)
    try:
        program.run(steps)
    except BaseException:
        print(f"rank {world.Get_rank()}, step {program.step}:", traceback.format_exc(), file=sys.stderr, flush=True)
        os._exit(1)
    world.Free()
    if MPI.COMM_WORLD.Get_rank() == 0:
        print("every byte correct", flush=True)


main(sys.argv[1], int(sys.argv[2]))
