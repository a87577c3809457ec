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

import numpy
from mpi4py import MPI
from random_buffers import POISON, content
from random_operations import OPEN_MPI, Operations

LONGEST_WAIT = 0.004  # seconds a rank comes late


class Place:
    """A communicator, known to all ranks by its members (ranks of the program's world)."""

    def __init__(self, members, comm, sources=None, destinations=None):
        self.members, self.comm = members, comm
        # With a topology: {member: neighbours by their rank here}, in MPI's order; PROC_NULL where a border is.
        self.sources, self.destinations = sources, destinations


class Program(Operations):
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
