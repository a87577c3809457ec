"""Simulates what the lab has measured: every column of bench/results that is a schedule of ours, on the lab's machine
at the link rate of that very lab. Writes one line per point and MPI with the measured minimum beside the simulation.

    sim/validate.py --sim build/bin/thalweg-sim [--out sim/results/lab.jsonl]
"""
import argparse
import collections
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A nonblocking collective that is waited for at once runs the schedule of the blocking one.
COLLECTIVES = {"bcast": "bcast", "ibcast": "bcast", "allgather": "allgather", "iallgather": "allgather",
               "allreduce": "allreduce", "iallreduce": "allreduce"}
MACHINES = {"100mbit": "lab-100", "50mbit": "lab-50"}


def measured(results):
    """(collective, shape, nominal rate, bytes, algorithm, mpi) -> the samples' number, minimum and link rate."""
    points = {}
    for path in sorted(results.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            context = row.get("context", {})
            rate = context.get("settings", {}).get("THALWEG_LAB_RATE_BYTES_PER_S")
            if (not row.get("algorithm") or not row.get("seconds") or rate is None or context.get("hosts", 1) < 2
                    or context.get("rate") not in MACHINES or context.get("rails", 1) != 1
                    or row["collective"] not in COLLECTIVES):
                continue
            key = (row["collective"], context["shape"], context["rate"], row["bytes"], row["algorithm"],
                   context["mpi_name"])
            count, least, rates = points.get(key, (0, float("inf"), []))
            points[key] = (count + len(row["seconds"]), min([least, *row["seconds"]]), [*rates, float(rate)])
    return points


def question(key, rates):
    """The command line that asks for a point, without the program's name."""
    collective, shape, nominal, size, algorithm, _ = key
    hosts, per_host = (int(part) for part in shape.split("x"))
    rate = sorted(rates)[len(rates) // 2]
    return [COLLECTIVES[collective], "--machine", MACHINES[nominal], "--rate", f"{rate:.1f}B/s",
            "--ranks", str(hosts * per_host), "--per-host", str(per_host), "--bytes", str(size),
            "--algorithm", algorithm, "--json", "--quiet"]


def simulated(program, command, memory):
    key = tuple(command)
    if key not in memory:
        done = subprocess.run([program, *command], check=True, capture_output=True, text=True, timeout=300)
        row = json.loads(done.stdout)
        assert row["simulated"], row
        memory[key] = row["seconds"]
    return memory[key]


def rows_of(program, results):
    memory = collections.OrderedDict()
    for key, (count, least, rates) in sorted(measured(results).items()):
        collective, shape, nominal, size, algorithm, mpi = key
        yield {"collective": collective, "shape": shape, "rate": nominal, "bytes": size, "algorithm": algorithm,
               "mpi": mpi, "samples": count, "measured_seconds": least,
               "simulated_seconds": simulated(program, question(key, rates), memory)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", required=True, help="the program thalweg-sim")
    parser.add_argument("--out", default=ROOT / "sim/results/lab.jsonl", type=pathlib.Path)
    arguments = parser.parse_args()
    with open(arguments.out, "w", encoding="utf-8") as file:
        for row in rows_of(arguments.sim, ROOT / "bench/results"):
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
