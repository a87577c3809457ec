"""Exchanges whose pairs differ, measured and simulated (sim/validate.py): plans of ours, and the libraries' own calls."""
import pathlib

from questions import MACHINES, NATIVES, SAMPLES, in_lab, middle, rows, simulated

MATRICES = pathlib.Path("bench/matrices")  # from the project's root
PLAN, CALLS = "thalweg init", ("native", "native (A/A)")


def measured_sparse(results):
    """(pattern, shape, nominal rate, bytes, way, mpi) -> the samples' number and minimum, and the labs' link rates. The way of a
    native: its library's; of ours: the schedule that ran."""
    points = {}
    for row in rows(results, ("alltoallv",)):
        rate, context, pattern = in_lab(row), row["context"], row["exchange"]["pattern"]
        mpi = context["mpi_name"]
        ours = row["column"] == PLAN and row["algorithm"]
        if rate is None or pattern == "dense" or context.get("environment"):
            continue
        if not ours and (row["column"] not in CALLS or mpi not in NATIVES):
            continue
        key = (pattern, context["shape"], context["rate"], row["bytes"], row["algorithm"] if ours else mpi, mpi)
        point = points.setdefault(key, {"samples": 0, "seconds": float("inf"), "rates": []})
        point["samples"] += len(row["seconds"])
        point["seconds"] = min([point["seconds"], *row["seconds"]])
        point["rates"].append(rate)
    return points


def question_sparse(key, rate, root):
    pattern, shape, nominal, size, way, mpi = key
    hosts, per_host = (int(part) for part in shape.split("x"))
    name = str(root / MATRICES / pattern) if pattern.endswith(".mtx") else pattern
    return ["alltoallv", "--pattern", name, "--machine", MACHINES[nominal], "--rate", f"{rate:.1f}B/s",
            "--ranks", str(hosts * per_host), "--per-host", str(per_host), "--bytes", str(size), "--algorithm", way, "--mpi", mpi,
            *([] if way in NATIVES else ["--libucp"]), "--samples", str(SAMPLES), "--json", "--quiet"]


def sparse_rows(program, results, root):
    memory = {}
    for key, point in sorted(measured_sparse(results).items()):
        pattern, shape, nominal, size, way, mpi = key
        rate = middle(point["rates"])
        row = simulated(program, question_sparse(key, rate, root), memory)
        yield {"pattern": pattern, "shape": shape, "rate": nominal, "bytes": size, "way": way, "mpi": mpi,
               "samples": point["samples"], "measured_seconds": point["seconds"], "link_rate": rate,
               "limit_seconds": row["limit_seconds"], "algorithm": row["algorithm"], "simulated_seconds": row["seconds"]}
