"""Simulates what has been measured, and writes the measured minimum beside the simulated time, a line per point.

    lab.jsonl      every column of bench/results that is a schedule of ours, on several hosts of the lab, at the link
                   rate that was measured when that lab came up
    faces.jsonl    halo exchanges there, of cells of a grid
    natives.jsonl  what MPICH and Open MPI do by default there, by their models
    rails.jsonl    both of these between hosts of two links each
    sparse.jsonl   alltoallvs whose pairs differ, ours and the libraries' (sim/sparse.py)
    plain.jsonl    plain programs there whose ranks sleep until they begin (sim/results/exchange.jsonl, sim/wire.py)
    onehost.jsonl  schedules of ours among ranks of one host
    published.jsonl  hosts of many ranks as others have measured and published them (sim/published.json), with the
                   machine's fabric and with one switch that never blocks instead
    overlap.jsonl  nonblocking operations there beside computation, ours and the libraries' (sim/beside.py)
    programs.jsonl a program there that computes and communicates, blocking and not
    samples.jsonl  nothing simulated: how far the samples of the small points of lab.jsonl are apart
    kept.jsonl     nothing simulated: an alltoallv through a window made per call, through one that is kept, and native

    sim/validate.py --sim build/bin/thalweg-sim [TABLE...]     into sim/results

Rows that are measured later change nothing until this is run again.
"""
import argparse
import collections
import json
import pathlib
import statistics
import tempfile

import beside
import sparse
from questions import COLLECTIVES, MACHINES, NATIVES, ROOT, SAMPLES, dense, in_lab, middle, question, rows, simulated

SAME_TRAFFIC = 0.03  # apart at most
RAILS = 2  # links per host of rails.jsonl
PUBLISHED = ROOT / "sim/published.json"
EXCHANGE = ROOT / "sim/results/exchange.jsonl"
PLAIN_RATE = 11.96e6  # bytes per second, as the lab measured it there
# What a model's choice is called where the lab forces the native library to take it.
FORCED = {"mpich": {"binomial": "binomial", "node_leader(intra=binomial,inter=binomial)": "smp",
                    "scatter_ring": "flat_scatter_ring", "scatter_recursive_doubling": "scatter_recursive_doubling",
                    "ring": "ring", "standard_exchange": "recursive_doubling", "bruck": "brucks",
                    "recursive_doubling": "recursive_doubling", "rabenseifner": "reduce_scatter_allgather"},
          "openmpi": {"linear": "basic_linear", "standard_exchange": "recursive_doubling", "bruck": "bruck",
                      "rabenseifner": "rabenseifner", "recursive_doubling": "recursive_doubling"}}


# Ways to exchange halos that post every message and wait for all: of the library, and of ours where a schedule ran.
FACES = ("native", "native (A/A)", "native nonblocking", "native init", "isend", "persistent", "thalweg", "thalweg spread",
         "thalweg nonblocking", "thalweg nonblocking spread", "thalweg init", "thalweg init spread")


FROM_INSTANT, OWN = "seconds", "own_seconds"  # of a simulated row


def by_itself(row):
    """The samples of a call by itself, and what a simulated row has for them: from the instant until which the ranks
    slept, or, of nonblocking calls in older rows, what the slowest rank took from where it began itself. One that
    begins late makes that shorter."""
    if COLLECTIVES[row["collective"]] == row["collective"]:
        return row["seconds"], FROM_INSTANT
    since = row.get("overlap", {}).get("pure_from_instant")
    return (since, FROM_INSTANT) if since else (row["seconds"], OWN)


def measured(results, rails=1):
    """(collective, shape, nominal rate, bytes, algorithm, mpi) -> the samples' number, minimum and link rates, and what
    is compared with them. Where some samples are from the instant, the others do not count."""
    points = {}
    for row in rows(results):
        rate, context = in_lab(row, rails), row["context"]
        if not row.get("algorithm") or rate is None or not dense(row):
            continue
        key = (row["collective"], context["shape"], context["rate"], row["bytes"], row["algorithm"],
               context["mpi_name"])
        seconds, figure = by_itself(row)
        count, least, rates, of = points.get(key, (0, float("inf"), [], figure))
        if of != figure:
            if figure == OWN:
                continue
            count, least, rates = 0, float("inf"), []
        points[key] = (count + len(seconds), min([least, *seconds]), [*rates, rate], figure)
    return points


def measured_natives(results, rails=1):
    """(collective, shape, nominal rate, bytes, mpi) -> the same of the blocking default, and the minima of the
    algorithms that were forced, by their native names."""
    points = {}
    for row in rows(results):
        rate, context = in_lab(row, rails), row["context"]
        blocking = "native" if COLLECTIVES[row["collective"]] == row["collective"] else "native blocking"
        name = row["column"].removeprefix(blocking).strip()
        if rate is None or not dense(row) or context["mpi_name"] not in NATIVES or not row["column"].startswith(blocking):
            continue
        key = (COLLECTIVES[row["collective"]], context["shape"], context["rate"], row["bytes"], context["mpi_name"])
        point = points.setdefault(key, {"samples": 0, "seconds": float("inf"), "rates": [], "forced": {}, "traffic": {}})
        point["traffic"].setdefault(name, []).append((row.get("tx_bytes", 0), row.get("all_tx_bytes", 0)))
        if name:
            point["forced"][name] = min(row["seconds"] + [point["forced"].get(name, float("inf"))])
            continue
        point["samples"] += len(row["seconds"])
        point["seconds"] = min([point["seconds"], *row["seconds"]])
        point["rates"].append(rate)
    return {key: point for key, point in points.items() if point["samples"]}


def measured_rails(results):
    """Two links per host: (collective, shape, nominal rate, bytes, way, mpi) -> the samples' number, minimum and rates of a link.
    The way of a native: its library's; of ours: the schedule that ran."""
    points = measured(results, RAILS)
    for key, point in measured_natives(results, RAILS).items():
        points[(*key, key[-1])] = (point["samples"], point["seconds"], point["rates"], FROM_INSTANT)
    return points


def measured_onehost(results):
    """(collective, ranks, bytes, algorithm, mpi) -> the samples' number and minimum."""
    points = {}
    for row in rows(results):
        context = row["context"]
        if not row.get("algorithm") or context.get("hosts") != 1 or context.get("rate") or not dense(row):
            continue
        key = (row["collective"], context["ranks"], row["bytes"], row["algorithm"], context["mpi_name"])
        count, least = points.get(key, (0, float("inf")))
        points[key] = (count + len(row["seconds"]), min([least, *row["seconds"]]))
    return points


def alike(point):
    """The forced algorithms, with their minima, whose bytes on the busiest link and on all links are the default's."""
    def middles(name):
        return [statistics.median(values) for values in zip(*point["traffic"][name])]
    default = middles("")
    if min(default) <= 0:
        return {}
    return {name: point["forced"][name] for name in sorted(point["forced"]) if name != "(A/A)" and
            all(abs(forced / own - 1) <= SAME_TRAFFIC for forced, own in zip(middles(name), default))}


def measured_faces(results):
    """(shape, nominal rate, grid, cells, points, mpi, way, column) -> the samples, how many of them a rank began late, the
    largest message, the labs' link rates and latencies. The way of a native: its library's; of ours: the schedule that ran."""
    points = {}
    for row in rows(results, ("halo",)):
        rate, context, halo, column = in_lab(row), row["context"], row["halo"], row["column"].split(" [")[0]
        ours = column.startswith("thalweg")
        if rate is None or row["phase"] != "halo" or halo["periodic"] or column not in FACES:
            continue
        if ours and not row["algorithm"] or not ours and context["mpi_name"] not in NATIVES:
            continue
        dims = len(halo["grid"])
        key = (context["shape"], context["rate"], tuple(halo["grid"]), tuple(halo["cells"]),
               3**dims if halo["corners"] else 2 * dims + 1, context["mpi_name"], row["algorithm"] or context["mpi_name"], row["column"])
        point = points.setdefault(key, {"seconds": [], "late": 0, "bytes": row["bytes"], "rates": [], "latencies": []})
        point["seconds"] += row["seconds"]
        point["late"] += row["late_samples"]
        point["rates"].append(rate)
        point["latencies"].append(float(context["settings"].get("THALWEG_LAB_LATENCY_S", 0)))
    return points


def native_spreads(results):
    """(collective, shape, bytes, mpi) -> how far the medians of the native operation against itself were apart."""
    found, spreads = {}, {}
    for row in rows(results):
        if row["column"] in ("native", "native (A/A)"):
            key = (row["collective"], row["context"]["shape"], row["bytes"], row["context"]["mpi_name"])
            found.setdefault(key, {}).setdefault(row["column"], []).extend(row["seconds"])
    for key, columns in found.items():
        if len(columns) == 2:
            low, high = sorted(statistics.median(seconds) for seconds in columns.values())
            spreads[key] = high / low - 1
    return spreads


def question_faces(key, rate):
    shape, nominal, grid, cells, points, mpi, way = key[:7]
    return ["halo", "--machine", MACHINES[nominal], "--rate", f"{rate:.1f}B/s", "--per-host", shape.split("x")[1],
            "--grid", "x".join(map(str, grid)), "--cells", "x".join(map(str, cells)), "--points", str(points),
            "--algorithm", way, "--mpi", mpi, *([] if way in NATIVES else ["--libucp"]), "--samples", str(SAMPLES), "--json", "--quiet"]


def question_onehost(key):
    collective, ranks, size, algorithm, _ = key
    return [COLLECTIVES[collective], "--machine", "one-host", "--ranks", str(ranks), "--bytes", str(size),
            "--algorithm", algorithm, "--json", "--quiet"]


def lab_rows(program, results):
    memory, spreads = collections.OrderedDict(), native_spreads(results)
    for key, (count, least, rates, figure) in sorted(measured(results).items()):
        collective, shape, nominal, size, algorithm, mpi = key
        rate = middle(rates)
        yield {"collective": collective, "shape": shape, "rate": nominal, "bytes": size, "algorithm": algorithm,
               "mpi": mpi, "samples": count, "measured_seconds": least, "link_rate": rate,
               "native_spread": spreads.get((collective, shape, size, mpi)),
               "simulated_seconds": simulated(program, question(key, rate), memory)[figure], "figure": figure}


def faces_rows(program, results):
    memory = collections.OrderedDict()
    for key, point in sorted(measured_faces(results).items()):
        shape, nominal, grid, cells, points, mpi, way, column = key
        rate = middle(point["rates"])
        row = simulated(program, question_faces(key, rate), memory)
        yield {"shape": shape, "rate": nominal, "grid": grid, "cells": cells, "points": points, "bytes": point["bytes"],
               "mpi": mpi, "way": way, "column": column, "samples": len(point["seconds"]), "late": point["late"],
               "measured_seconds": min(point["seconds"]), "median_seconds": statistics.median(point["seconds"]),
               "link_rate": rate, "lab_latency": middle(point["latencies"]), "limit_seconds": row["limit_seconds"],
               "simulated_seconds": row["seconds"]}


def native_rows(program, results):
    memory = collections.OrderedDict()
    for key, point in sorted(measured_natives(results).items()):
        collective, shape, nominal, size, mpi = key
        rate = middle(point["rates"])
        row = simulated(program, question(key, rate), memory)
        # The same messages, none of them waiting for the send before it.
        waits = mpi == "mpich" and collective != "alltoallv"
        at_once = simulated(program, question((*key[:4], row["algorithm"], mpi), rate), memory) if waits else row
        yield {"collective": collective, "shape": shape, "rate": nominal, "bytes": size, "mpi": mpi,
               "samples": point["samples"], "measured_seconds": point["seconds"], "link_rate": rate,
               "algorithm": row["algorithm"],
               "forced_seconds": point["forced"].get(FORCED[mpi].get(row["algorithm"])),
               "alike_seconds": alike(point), "simulated_seconds": row["seconds"],
               "at_once_seconds": at_once["seconds"]}


def rails_rows(program, results):
    memory = {}
    for key, (count, least, rates, figure) in sorted(measured_rails(results).items()):
        collective, shape, nominal, size, way, mpi = key
        rate = middle(rates)
        row = simulated(program, question(key, rate, RAILS), memory)
        yield {"collective": collective, "shape": shape, "rate": nominal, "rails": RAILS, "bytes": size, "way": way, "mpi": mpi,
               "samples": count, "measured_seconds": least, "link_rate": rate, "algorithm": row["algorithm"],
               "simulated_seconds": row[figure], "figure": figure}


def sparse_rows(program, results):
    return sparse.sparse_rows(program, results, ROOT)


def onehost_rows(program, results):
    memory = collections.OrderedDict()
    for key, (count, least) in sorted(measured_onehost(results).items()):
        collective, ranks, size, algorithm, mpi = key
        yield {"collective": collective, "ranks": ranks, "bytes": size, "algorithm": algorithm, "mpi": mpi,
               "samples": count, "measured_seconds": least,
               "simulated_seconds": simulated(program, question_onehost(key), memory)["seconds"]}


def plain_rows(program, _):
    """Posted in the order of ranks, as Open MPI's alltoallv is. From 64 KiB on Open MPI asks first, and no other does."""
    memory = {}
    for line in EXCHANGE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["bytes"] >= 1 << 16 and row["mpi"] != "openmpi":
            continue
        key = ("alltoallv", row["shape"], "100mbit", row["bytes"], "openmpi", "openmpi")
        yield {"shape": row["shape"], "bytes": row["bytes"], "mpi": row["mpi"], "measured_seconds": row["whole_seconds"][0],
               "median_seconds": row["whole_seconds"][1], "last_begins_seconds": row["last_begins_seconds"][0],
               "simulated_seconds": simulated(program, question(key, PLAIN_RATE), memory)["seconds"]}


def samples_rows(_, results):
    points = {}
    for row in rows(results):
        if row.get("algorithm") and in_lab(row) is not None and dense(row) and row["bytes"] < 1 << 20:
            key = tuple(row[field] for field in ("collective", "bytes", "algorithm"))
            key += tuple(row["context"][field] for field in ("shape", "rate", "mpi_name"))
            points.setdefault(key, []).extend(row["seconds"])
    for (collective, size, algorithm, shape, rate, mpi), seconds in sorted(points.items()):
        if len(seconds) >= 15:
            yield {"collective": collective, "shape": shape, "rate": rate, "bytes": size, "algorithm": algorithm, "mpi": mpi,
                   "samples": len(seconds), "least_seconds": min(seconds), "median_seconds": statistics.median(seconds),
                   "greatest_seconds": max(seconds)}


def kept_rows(_, results):
    names = {"window per call": "per_call_seconds", "window kept": "kept_seconds", "native": "native_seconds"}
    points = {}
    for row in rows(results):
        if row["collective"] == "alltoallv" and dense(row) and row["column"] in names:
            point = points.setdefault((row["context"]["mpi_name"], row["context"]["shape"], row["bytes"]), {})
            name = names[row["column"]]
            point[name] = min([*row["seconds"], point.get(name, float("inf"))])
    for (mpi, shape, size), point in sorted(points.items()):
        if len(point) == len(names):
            yield {"mpi": mpi, "shape": shape, "bytes": size, **point}


def machine_of(table, folder):
    """A built-in machine by name, or a file with what the table says is different there."""
    if "changes" not in table:
        return table["machine"]
    machine = json.loads((ROOT / f"sim/machines/{table['machine']}.json").read_text(encoding="utf-8"))
    for field, value in table["changes"].items():
        machine[field]["is"] = value
    path = pathlib.Path(folder, f"{table['machine']}.json")
    path.write_text(json.dumps(machine), encoding="utf-8")
    return str(path)


def algorithm_of(table, count):
    """One for all sizes, or the one of the largest size that is not above `count`."""
    chosen = table["algorithm"]
    return chosen if isinstance(chosen, str) else chosen[max((least for least in chosen if int(least) <= count), key=int)]


def published_rows(program, _):
    for table in json.loads(PUBLISHED.read_text(encoding="utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            for count, microseconds in table["microseconds"].items():
                command = [table["operation"], "--machine", machine_of(table, folder), "--ranks", str(table["ranks"]),
                           "--per-host", str(table["per_host"]), "--mapping", table["mapping"], "--bytes", count,
                           "--algorithm", algorithm_of(table, int(count)), "--json", "--quiet"]
                command += ["--rails", str(table["rails"])] if "rails" in table else []
                row, star = (simulated(program, [*command, *more], {}) for more in ((), ("--star",)))
                yield {"name": table["name"], "bytes": int(count), "algorithm": row["algorithm"],
                       "measured_seconds": microseconds * 1e-6, "simulated_seconds": row["seconds"],
                       "star_seconds": star["seconds"]}


TABLES = {"lab": lab_rows, "faces": faces_rows, "natives": native_rows, "rails": rails_rows, "sparse": sparse_rows, "plain": plain_rows,
          "onehost": onehost_rows, "published": published_rows,
          "overlap": beside.overlap_rows, "programs": beside.programs_rows, "samples": samples_rows, "kept": kept_rows}


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", required=True, help="the program thalweg-sim")
    parser.add_argument("--out", default=ROOT / "sim/results", type=pathlib.Path, help="a folder")
    parser.add_argument("--results", default=ROOT / "bench/results", type=pathlib.Path, help="a folder of measured rows")
    parser.add_argument("tables", nargs="*", metavar="TABLE",
                        help=f"of {', '.join(TABLES)}; all where none is named")
    arguments = parser.parse_args(words)
    for name in arguments.tables:
        if name not in TABLES:
            parser.error(f"there is no table {name}; there are {', '.join(TABLES)}")
    for name in arguments.tables or TABLES:
        lines = [json.dumps(row) for row in TABLES[name](arguments.sim, arguments.results)]
        (arguments.out / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        print(f"{name}: {len(lines)} points")


if __name__ == "__main__":
    main()
