"""What the tables of sim/validate.py share: rows of bench/results, and questions to the simulator."""
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = 15  # of which the least counts, as of the measured ones
# A nonblocking collective that is waited for at once runs the schedule of the blocking one.
COLLECTIVES = {"bcast": "bcast", "ibcast": "bcast", "allgather": "allgather", "iallgather": "allgather",
               "allreduce": "allreduce", "iallreduce": "allreduce", "alltoallv": "alltoallv"}
# Where several hosts are, libucp carries plans of ours and what does not block.
LIBUCP = ("alltoallv", *(name for name, blocking in COLLECTIVES.items() if name != blocking))
MACHINES = {"100mbit": "lab-100", "50mbit": "lab-50"}
NATIVES = ("mpich", "openmpi")


def rows(results, collectives=tuple(COLLECTIVES)):
    for path in sorted(results.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("collective") in collectives and row.get("seconds"):
                yield row


def dense(row):
    """All pairs alike, as the simulated alltoallv."""
    return row["collective"] != "alltoallv" or row["exchange"]["pattern"] == "dense"


def in_lab(row, rails=1):
    """The rate of a link that was measured; None: not from several hosts of so many links each."""
    context = row["context"]
    rate = context.get("settings", {}).get("THALWEG_LAB_RATE_BYTES_PER_S")
    if rate is None or context.get("hosts", 1) < 2 or context.get("rate") not in MACHINES or context.get("rails", 1) != rails:
        return None
    return float(rate)


def middle(rates):
    return sorted(rates)[len(rates) // 2]


def mpi_of(key):
    return ["--mpi", key[-1]]


def question(key, rate, rails=1):
    """The command line that asks for a point at that rate of a link, without the program's name."""
    collective, shape, nominal, size, algorithm = key[:5]
    hosts, per_host = (int(part) for part in shape.split("x"))
    return [COLLECTIVES[collective], "--machine", MACHINES[nominal], "--rate", f"{rate:.1f}B/s",
            "--ranks", str(hosts * per_host), "--per-host", str(per_host), "--bytes", str(size),
            "--algorithm", algorithm, *mpi_of(key), *(["--libucp"] if collective in LIBUCP else []),
            *(["--rails", str(rails)] if rails > 1 else []),
            "--samples", str(SAMPLES), "--json", "--quiet"]


def answers(program, command):
    done = subprocess.run([program, *command], check=True, capture_output=True, text=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


def simulated(program, command, memory):
    key = tuple(command)
    if key not in memory:
        (row,) = answers(program, command)
        assert row["simulated"], row
        memory[key] = row
    return memory[key]
