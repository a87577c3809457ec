"""What goes on beside computation, measured and simulated: nonblocking operations, and a program (sim/validate.py).

Where computing takes no core (the ranks sleep): ranks of the lab share two, and a simulated one computes on its own.
"""
import statistics

from questions import MACHINES, NATIVES, answers, in_lab, middle, question, rows, simulated

NONBLOCKING = ("ibcast", "iallgather", "iallreduce")
SIZES = (1 << 16, 1 << 18, 1 << 20)
OURS = "thalweg"
PROGRAM = "conjugate_gradient"
# What a column of the program's bench is in `thalweg sim app`: our agent advances what nonblocking calls have started.
KINDS = {"native/blocking": "native, blocking", "native/nonblocking": "native, started",
         "thalweg/blocking": "thalweg, blocking", "thalweg/nonblocking": "thalweg, agent"}
SWEEP = 1e8  # bytes per second, to ask how many a program sweeps


def osu(pure, computed, total):
    """Percent of a call that hides, by OSU's definition."""
    return min(100.0, max(0.0, 100 * (1 - (total - computed) / pure)))


def measured_overlap(results):
    """(collective, shape, nominal rate, bytes, way, mpi) -> samples of calls by themselves, of what was computed,
    and of both together, means over the ranks, and the labs' link rates. The way of a native: its library's; of ours:
    the schedule that ran."""
    points = {}
    for row in rows(results, NONBLOCKING):
        rate, context, seen = in_lab(row), row["context"], row.get("overlap") or {}
        if rate is None or row["phase"] != "overlap" or row["bytes"] not in SIZES or context.get("environment"):
            continue
        if not seen.get("total") or seen["compute"] != "sleep":
            continue
        ours = row["column"] == OURS and row["algorithm"]
        if not ours and (row["column"] != "native" or context["mpi_name"] not in NATIVES):
            continue
        mpi = context["mpi_name"]
        key = (row["collective"], context["shape"], context["rate"], row["bytes"], row["algorithm"] or mpi, mpi)
        point = points.setdefault(key, {"pure": [], "computed": [], "total": [], "rates": []})
        for what, name in (("pure", "pure_mean"), ("computed", "computed"), ("total", "total")):
            point[what] += seen[name]
        point["rates"].append(rate)
    return points


def question_overlap(key, rate):
    return [*question(key, rate), "--overlap"]


def overlapped(row, way):
    """Of a simulated row: seconds of operation and computation together, and what hides. Ours has an agent."""
    by = "caller" if way in NATIVES else "agent"
    return row["overlap"][f"{by}_seconds"], row["overlap"][f"{by}_percent"]


def overlap_rows(program, results):
    memory = {}
    for key, point in sorted(measured_overlap(results).items()):
        collective, shape, nominal, size, way, mpi = key
        rate = middle(point["rates"])
        row = simulated(program, question_overlap(key, rate), memory)
        seconds, percent = overlapped(row, way)
        middles = {what: statistics.median(point[what]) for what in ("pure", "computed", "total")}
        yield {"collective": collective, "shape": shape, "rate": nominal, "bytes": size, "way": way, "mpi": mpi,
               "samples": len(point["total"]), "measured_seconds": min(point["total"]),
               "median_seconds": middles["total"], "pure_seconds": min(point["pure"]),
               "computed_seconds": middles["computed"], "hidden_percent": osu(**middles), "link_rate": rate,
               "algorithm": row["algorithm"], "simulated_pure_seconds": row["mean_seconds"],
               "simulated_percent": percent, "simulated_seconds": seconds}


def measured_programs(results):
    """(shape, nominal rate, bytes, mpi) -> the rates of links and, by column, the samples of an iteration and of
    what of it was computed: a run has a product for every step, and one more."""
    points = {}
    for row in rows(results, (PROGRAM,)):
        rate, context = in_lab(row), row["context"]
        if rate is None or row["phase"] != "apps" or context["mpi_name"] not in NATIVES or row["column"] not in KINDS:
            continue
        parameters = row["app"]["parameters"]
        iterations = parameters["outer"] * (parameters["steps"] + 1)
        key = (context["shape"], context["rate"], row["bytes"], context["mpi_name"])
        point = points.setdefault(key, {"rates": [], "columns": {}})
        point["rates"].append(rate)
        column = point["columns"].setdefault(row["column"], {"seconds": [], "computed": []})
        column["seconds"] += [seconds / iterations for seconds in row["seconds"]]
        column["computed"] += [sample["compute"] / iterations for sample in row["app"]["samples"]]
    return points


def question_programs(key, rate, sweep):
    shape, nominal, size, mpi = key
    hosts, per_host = (int(part) for part in shape.split("x"))
    return ["app", "cg", "--machine", MACHINES[nominal], "--rate", f"{rate:.1f}B/s", "--ranks", str(hosts * per_host),
            "--per-host", str(per_host), "--bytes", str(size), "--sweep", f"{sweep:.1f}B/s", "--repeat", "3",
            "--mpi", mpi, "--json", "--quiet"]


def programs_rows(program, results):
    for key, point in sorted(measured_programs(results).items()):
        shape, nominal, size, mpi = key
        rate = middle(point["rates"])
        computed = statistics.median(seconds for column in point["columns"].values() for seconds in column["computed"])
        # As much computation as was measured.
        sweep = SWEEP * answers(program, question_programs(key, rate, SWEEP))[0]["compute_seconds"] / computed
        kinds = {row["column"]: row for row in answers(program, question_programs(key, rate, sweep))}
        for name, column in sorted(point["columns"].items()):
            row = kinds[KINDS[name]]
            assert row["simulated"], row
            yield {"app": "cg", "shape": shape, "rate": nominal, "bytes": size, "mpi": mpi, "column": name,
                   "samples": len(column["seconds"]), "measured_seconds": min(column["seconds"]),
                   "median_seconds": statistics.median(column["seconds"]), "computed_seconds": computed,
                   "link_rate": rate, "sweep": sweep, "algorithm": row["algorithms"],
                   "simulated_seconds": row["seconds"]}
