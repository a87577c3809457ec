"""The operations of the random program (random_calls.py): each collective with its buffers and with what the standard
defines to be in them at the end."""

import random

import numpy
from mpi4py import MPI
from random_buffers import POISON, Side, Unit, content

# What the libraries get wrong by themselves is left out, of the library that does.
OPEN_MPI = "Open MPI" in MPI.Get_library_version()
INTEL_MPI = "Intel" in MPI.Get_library_version()
BASES = [MPI.BYTE, MPI.INT32_T, MPI.DOUBLE]


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


class Operations:
    """Draws operations. `shared` draws alike on all ranks; `places` are communicators, `number` counts operations."""

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
