"""Runs tests/sim/programs/smpi.c under SimGrid's own MPI and asks thalweg-sim for the same on the same star of hosts.

    sim/smpi.py --sim build/bin/thalweg-sim [--out sim/results/smpi.jsonl]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE, LATENCY, EAGER = 1e9, 10e-6, 65536
# What to run, SMPI's name of the algorithm, and ours.
RUNS = [("ping", 2, size, "", "bcast", "linear") for size in (8, 8192, 65536, 1 << 20, 64 << 20)]
RUNS += [("bcast", ranks, size, "bcast:binomial_tree", "bcast", "binomial")
         for ranks in (8, 13, 32) for size in (8192, 1 << 20, 16 << 20)]
RUNS += [("allgather", ranks, size, "allgather:ring", "allgather", "ring") for ranks in (8, 13, 32)
         for size in (8192, 1 << 20)]
RUNS += [("barrier", ranks, 0, "barrier:ompi_bruck", "barrier", "dissemination") for ranks in (8, 13, 32)]


def machine():
    """The star as thalweg-sim reads it: no cost but the wire's, so that only the wire is compared."""
    source = "as the platform that SMPI is given"
    zero = ("flow_GBps", "message_gap_us", "flows_per_link", "burst_bytes", "kernel_bytes", "kernel_GBps", "post_us",
            "complete_us", "register_us", "register_GBps", "agent_wake_us")
    numbers = {"hosts": 64, "cores_per_host": 1, "rails": 1, "link_GBps": RATE / 1e9, "inter_latency_us": LATENCY * 1e6,
               "inter_eager_bytes": EAGER, "network_moves_bytes": 1, "intra_latency_us": 1, "intra_eager_bytes": 0,
               "copy_GBps": 1e6, "host_copy_GBps": 1e6, "reduce_GBps": 1e6, **dict.fromkeys(zero, 0)}
    return {"name": "star", "text": "hosts on one switch", "fabric": "star", "fabric_from": source,
            **{field: {"is": value, "from": source} for field, value in numbers.items()}}


def platform(hosts):
    return f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="star" prefix="h" suffix="" radical="0-{hosts - 1}" speed="1Gf" bw="{RATE}Bps" lat="{LATENCY / 2}s"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def rows(program, folder):
    run("smpicc", "-O2", ROOT / "tests/sim/programs/smpi.c", "-o", folder / "program")
    (folder / "star.json").write_text(json.dumps(machine()))
    for what, ranks, size, algorithm, collective, choice in RUNS:
        (folder / "platform.xml").write_text(platform(ranks))
        (folder / "hosts").write_text("".join(f"h{i}\n" for i in range(ranks)))
        settings = ["network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "smpi/simulate-computation:no",
                    "smpi/async-small-thresh:0", f"smpi/send-is-detached-thresh:{EAGER + 1}"]
        settings += [f"smpi/{algorithm}"] if algorithm else []
        theirs = run("smpirun", "-np", ranks, "-platform", folder / "platform.xml", "-hostfile", folder / "hosts",
                     *(f"--cfg={setting}" for setting in settings), "--log=root.thresh:error", folder / "program", what,
                     size)
        ours = run(program, collective, "--machine", folder / "star.json", "--ranks", ranks,
                   *(("--bytes", size) if collective != "barrier" else ()), "--algorithm", choice, "--in-turn", "--json", "--quiet")
        yield {"what": f"{what}, {choice}" if algorithm else what, "ranks": ranks, "bytes": size,
               "smpi_seconds": float(theirs.split()[-1]), "ours_seconds": json.loads(ours)["seconds"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sim", required=True, help="the program thalweg-sim")
    parser.add_argument("--out", default=ROOT / "sim/results/smpi.jsonl", type=pathlib.Path)
    arguments = parser.parse_args()
    if shutil.which("smpicc") is None:
        sys.exit("no smpicc: install SimGrid (Debian: libsimgrid-dev)")
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(row) for row in rows(arguments.sim, pathlib.Path(folder))]
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
