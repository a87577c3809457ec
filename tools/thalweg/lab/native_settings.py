#!/usr/bin/env python3
"""Sweeps the waiting settings of each MPI on a lab where ranks outnumber cores.

Appends one JSON line per (MPI, setting, size) to bench/results/native-settings.jsonl; the defaults that
`thalweg lab run` sets come from there. Rounds go through all settings in turn, so that a slow minute of the machine
does not fall on one of them.

usage: native_settings.py THALWEG FOLDER [--rounds 3] [--samples 7]
FOLDER holds broadcast_time-MPI for each MPI (built from tests/lab/broadcast_time.c).
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

OFF, ON = ["--yield-help", "off"], ["--yield-help", "on"]
SETTINGS = {
    "mpich": [
        (OFF, {}),
        (OFF, {"MPIR_CVAR_POLLS_BEFORE_YIELD": "0"}),
        (OFF, {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}),
        (OFF, {"MPIR_CVAR_POLLS_BEFORE_YIELD": "100"}),
        (ON, {"THALWEG_LAB_YIELD_POLLS": "1"}),
        (ON, {"THALWEG_LAB_YIELD_POLLS": "20"}),
        (ON, {"THALWEG_LAB_YIELD_POLLS": "200"}),
    ],
    "mpich-debian": [(OFF, {}), (OFF, {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}), (ON, {"THALWEG_LAB_YIELD_POLLS": "20"})],
    "openmpi": [([], {"OMPI_MCA_mpi_yield_when_idle": value}) for value in "01"],
    "openmpi-debian": [([], {"OMPI_MCA_mpi_yield_when_idle": value}) for value in "01"],
    "impi": [([], {})]
    + [([], {"I_MPI_WAIT_MODE": value}) for value in "01"]
    + [([], {"I_MPI_THREAD_YIELD": value}) for value in "0123"]
    + [([], {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"})],
}
SIZES = ["65536", "1048576"]


def run(arguments, mpi, options, environment):
    command = [arguments.thalweg, "lab", "run", "--quiet", "--hosts", "4", "--ppn", "2", "--rate", "100mbit",
               "--mpi", mpi, *options, "--", f"{arguments.folder}/broadcast_time-{mpi}", str(arguments.samples), *SIZES]
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True,
                              timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return None, "did not finish"
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(rows) != len(SIZES):
        return None, (done.stderr.strip().splitlines() or ["failed"])[-1]
    return rows, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thalweg")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--mpi", action="append", choices=SETTINGS)
    parser.add_argument("--output", default="bench/results/native-settings.jsonl")
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    medians = {}
    for _ in range(arguments.rounds):
        for mpi in arguments.mpi or SETTINGS:
            if not pathlib.Path(f"{arguments.folder}/broadcast_time-{mpi}").exists():
                continue
            for index, (options, environment) in enumerate(SETTINGS[mpi]):
                rows, why = run(arguments, mpi, options, environment)
                if rows is None:
                    print(f"{mpi} {options} {environment}: {why}", file=sys.stderr)
                for bytes_, row in zip(SIZES, rows or [None] * len(SIZES)):
                    medians.setdefault((mpi, index, bytes_), []).append(row and row["median_s"])
    with open(arguments.output, "a", encoding="utf-8") as output:
        for (mpi, index, bytes_), values in medians.items():
            options, environment = SETTINGS[mpi][index]
            good = [value for value in values if value is not None]
            row = {"what": "native broadcast, waiting settings", "mpi": mpi, "shape": "4x2", "rate": "100mbit",
                   "bytes": int(bytes_), "options": options, "environment": environment,
                   "median_s": statistics.median(good) if good else None, "rounds_s": values,
                   "cores": os.cpu_count(), "load": os.getloadavg()[1], "commit": commit,
                   "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
            output.write(json.dumps(row) + "\n")
            print(f"{mpi:15} {bytes_:>8} {1e3 * (row['median_s'] or float('nan')):9.2f} ms  {options} {environment}")


if __name__ == "__main__":
    main()
