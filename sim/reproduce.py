"""Simulates what docs/simulation.md shows beside the papers, and the curves. One file of JSON lines per table.

    sim/reproduce.py --sim build/bin/thalweg-sim [TABLE...]     into sim/results/TABLE.jsonl, timeline.json
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

RINGS = ("scatter_ring", "scatter_ring_trimmed")
FLAT = ("ring", "standard_exchange", "bruck", "kport_ring:ports=2", "standard_exchange:ports=3", "bruck:ports=3")
BY_HOSTS = tuple(f"hierarchical(intra=binomial,inter={inter})" for inter in
                 ("ring", "standard_exchange", "bruck", "kport_ring:ports=2", "bruck:ports=3")) + (
                     "node_leader(intra=linear,inter=ring)",)


def asks(operation, machine, ranks, sizes, algorithms=(), *more):
    command = [*operation.split(), "--machine", machine, "--ranks", ",".join(map(str, ranks)), "--json", "--quiet"]
    if sizes:
        command += ["--bytes", ",".join(sizes)]
    for algorithm in algorithms:
        command += ["--algorithm", algorithm]
    return [*command, *more]


# Broadcasts of the paper's classes; 24 ranks per host. Alone, and eight in a row without a barrier.
SIZES = ("16K", "64K", "256K", "1M", "4M")
RING_RANKS = (8, 9, 10, 16, 17, 24, 32, 33, 64, 65, 128, 129, 256)
TABLES = {
    "rings": [asks("bcast", "xc40", RING_RANKS, SIZES, RINGS + ("auto",)),
              asks("bcast", "xc40", RING_RANKS, SIZES, RINGS, "--in-turn"),
              asks("bcast", "xc40", RING_RANKS[:10], SIZES, RINGS, "--in-turn", "--repeat", "8")],
    "allgather": [asks("allgather", "ib2304", (32, 128), ("1K", "8K", "64K"), FLAT + BY_HOSTS,
                       "--per-host", "8", "--overlap", *rails)
                  for rails in ((), ("--rails", "2"))],
    "eight": [asks(collective, machine, (8,), sizes, algorithms, "--per-host", "1", "--overlap")
              for machine in ("gbe8", "ib2304")
              for collective, sizes, algorithms in (
                  ("allgather", ("8K", "64K", "512K"), ("ring", "bruck", "auto")),
                  ("allreduce", ("8", "8K", "512K"), ("recursive_doubling", "rabenseifner", "auto")),
                  ("bcast", ("64K", "1M"), ("binomial", "auto")))],
    "eight_cg": [asks("app cg", machine, (8,), ("16K", "256K"), (), "--per-host", "1", "--repeat", "2")
                 for machine in ("gbe8", "ib2304")],
    "defaults": [asks(collective, machine, ranks, sizes, ("auto", "mpich", "openmpi"), *more)
                 for collective, sizes in (("bcast", ("4K", "64K", "1M", "4M")), ("allgather", ("1K", "16K")))
                 for machine, ranks, more in (("dane", (448,), ()), ("xc40", (192,), ()),
                                              ("dane", (448,), ("--mapping", "cyclic")),
                                              ("gbe8", (96,), ()))],
    "alltoallv": [asks("alltoallv", "dane", (224, 448), ("4K", "32K", "512K"), ("auto", "mpich", "openmpi"))],
    # Plans of exchanges that are sparse or uneven: what is chosen by what their messages are like together.
    "patterns": [asks("alltoallv", "dane", (224, 448), ("4K", "32K", "512K"), ("auto", "mpich", "openmpi"), "--pattern", pattern)
                 for pattern in ("uniform", "powerlaw", "banded", "block", "one_to_many")],
    "windows": [asks("alltoallv", "dane", (32, 64, 112, 224, 448, 896, 1792), ("4K", "32K", "512K"), (), "--rma")],
    # The same exchanges as a plan of ours, which puts and tells instead of fencing.
    "puts": [asks("alltoallv", "dane", (32, 64, 112, 224, 448, 896), ("4K", "32K", "512K"), ("notify",), "--libucp")],
    "halo": [asks("halo", "ib2304", (288, 2304), ("8K", "64K", "512K"), ("auto", "mpich", "mvapich"), "--cost"),
             *(asks("halo", "ib2304", (2304,), ("64K", "512K"), ("auto", "mpich", "mvapich"), "--cost", "--rails", rails)
               for rails in ("4", "8")),
             asks("halo", "slingshot", (65536,), ("64K",), ("auto",), "--cost")],
    "apps": [asks("app stencil", "ib2304", (48, 2304), ("8K", "64K", "512K"), (), "--repeat", "3"),
             asks("app amr", "ib2304", (48, 2304), ("8K", "64K", "512K"), (), "--repeat", "3"),
             asks("app sort", "xc40", (48, 192), ("1M",), (), "--repeat", "2"),
             asks("app cg", "xc40", (48, 192), ("16K", "256K"), (), "--repeat", "2"),
             asks("app fourier", "xc40", (48, 192), ("4K", "64K")),
             *(asks(f"app {app}", "ib2304", (2304,), ("64K", "512K"), (), "--repeat", "3", "--mpi", "mvapich", "--rails", rails)
               for app in ("stencil", "amr") for rails in ("1", "4"))],
    # Each with the machine's fabric and with one switch that never blocks.
    "routes": [asks(operation, machine, ranks, sizes, algorithms, *star)
               for operation, machine, ranks, sizes, algorithms in (
                   ("bcast", "xc40", (192, 256), ("64K", "1M"), ("scatter_ring", "auto")),
                   ("allgather", "xc40", (192,), ("1K", "16K"), ("auto", "mpich")),
                   ("halo", "slingshot", (4096,), ("8K", "64K"), ("auto",)),
                   ("allgather", "slingshot", (1024,), ("1K",), ("spread",)),
                   ("halo", "ib2304", (2304,), ("64K",), ("auto",)),
                   ("alltoallv", "dane", (448,), ("512K",), ("spread",)))
               for star in ((), ("--star",))]
              + [asks("allgather", "slingshot", (2048,), ("1K",), ("spread",), "--star")],  # its own fabric: squares
    "speed": [*(asks("bcast", "ib2304", (2304,), ("16M",), (algorithm,), "--cost")
                for algorithm in ("chain:chunk_bytes=64K", "auto")),
              asks("alltoallv", "dane", (448,), ("512K",), ("spread",), "--cost")],
    "curves": [asks(collective, "slingshot", ranks, sizes, algorithms, "--cost")
               for collective, ranks, sizes, algorithms in (
                   ("bcast", (1024, 8192, 65536), ("1K", "1M"),
                    ("binomial", "node_leader(intra=binomial,inter=binomial)", "knomial", "circulant", "scatter_recursive_doubling")),
                   ("barrier", (1024, 8192, 65536), (), ("dissemination",)),
                   ("allreduce", (1024, 8192, 65536), ("1K", "1M"), ("recursive_doubling", "rabenseifner")),
                   ("allgather", (1024, 8192, 65536), ("8",), ("bruck", "standard_exchange")),
                   ("halo", (1024, 8192, 65536), ("64K",), ("spread",)))],
    "squares": [asks("allgather", "ib2304", (144, 288, 576, 1152), ("1K",), ("ring", "spread"), "--cost"),
                asks("allgather", "ib2304", (2304, 4608), ("1K",), ("ring",), "--cost"),
                asks("allgather", "slingshot", (1024, 4096, 6400), ("1K",), ("ring",), "--cost"),
                asks("allgather", "slingshot", (1024, 2048, 4096), ("1K",), ("spread",), "--cost"),
                asks("allgather", "slingshot", (16384,), ("1K",), ("ring", "spread"), "--cost"),
                asks("allgather", "slingshot", (32768, 65536), ("1K",), ("spread",), "--cost"),
                asks("alltoallv", "slingshot", (1024, 2048), ("1K",), ("spread", "pairwise"), "--cost"),
                asks("alltoallv", "slingshot", (16384, 65536), ("1K",), ("spread", "pairwise"), "--cost")],
}
# The timeline of the page's picture.
TIMELINE = asks("bcast", "lab-100", (4,), ("1M",), ("chain:chunk_bytes=128K",), "--per-host", "1")


def timeline(program):
    """The steps of one operation; arrows of messages are left out."""
    path = ROOT / "sim/results/timeline.json"
    subprocess.run([program, *TIMELINE, "--trace", str(path)], check=True, capture_output=True)
    events = [event for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"] if event["ph"] in "XM"]
    lines = ",\n".join(json.dumps(event) for event in events)
    path.write_text(f'{{"displayTimeUnit": "ns", "traceEvents": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"timeline: {len(events)} events")


def made():
    """Of every row: the commit it was simulated from, and the day."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {"commit": commit.stdout.strip(), "date": datetime.date.today().isoformat()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", required=True, help="the program thalweg-sim")
    parser.add_argument("tables", nargs="*", default=[*TABLES, "timeline"])
    arguments = parser.parse_args()
    stamp = made()
    for table in arguments.tables:
        if table == "timeline":
            timeline(arguments.sim)
            continue
        if table not in TABLES:
            sys.exit(f"there is no table {table}; known: {', '.join(TABLES)}")
        lines = []
        for command in TABLES[table]:
            begin = time.monotonic()
            done = subprocess.run([arguments.sim, *command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {done.stderr}")
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            if len(rows) == 1 and "cost" in rows[0]:
                rows[0]["cost"]["wall_seconds"] = round(time.monotonic() - begin, 3)
            lines += [json.dumps({**row, **stamp}) for row in rows]
        (ROOT / f"sim/results/{table}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{table}: {len(lines)} lines")


if __name__ == "__main__":
    main()
