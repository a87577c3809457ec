"""The sections of docs/simulation.md about ranks of one host."""
import statistics

import error_tables
import lab_tables
from tables import MIB, rows, size, table, time

FITTED = ("knomial", "openmpi")  # what sim/machines/one-host.json names
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "impi": "Intel MPI"}


def since(fitted):
    """How far off the column is today that numbers were fitted to once."""
    return f", which has been measured anew since and is {lab_tables.summary(fitted)[1]} off in the median" if fitted else ""


def rates(points):
    """Of one message, by library and size."""
    lines = []
    for mpi, name in NAMES.items():
        found = sorted((row["bytes"], row["bytes"] / row["measured_seconds"] / 1e9) for row in points
                       if (row["algorithm"], row["mpi"]) == ("linear", mpi) and row["bytes"] >= MIB)
        if found:
            lines.append(f"- under {name}: " + ", ".join(f"{rate:.0f} GB/s ({size(count)})" for count, rate in found))
    return "\n".join(lines) or "- rates that were not measured"


def onehost():
    points = [row for row in rows("onehost") if row["samples"] >= 3]
    if not points:
        return ""
    lines = []
    for (algorithm, mpi), group in lab_tables.groups(points, "algorithm", "mpi"):
        worst = max(group, key=lambda row: abs(lab_tables.error(row)))
        lines.append([algorithm, mpi, *lab_tables.summary(group)[:3], f"{100 * statistics.median(map(lab_tables.error, group)):+.0f} %",
                      f"{100 * lab_tables.error(worst):+.0f} %", f"{size(worst['bytes'])}, {time(worst['measured_seconds'])}"])
    count, median, near = lab_tables.summary(points)[:3]
    fitted = [row for row in points if (row["algorithm"], row["mpi"]) == FITTED]
    return f"""## On one host

Two ranks of one host, machine `one-host`: its latency, its costs per message and the rate of a copy were fitted to one
column, one message among two ranks on Open MPI (`knomial`), 64 against 256 KiB{since(fitted)};
the other columns and sizes, 16 KiB to 64 MiB, were not. {count} points, median error {median}, {near} within 20 %. What is missing
is named: caches, and each library's own way with a copy. One message (`linear`) passes at

{rates(points)}

""" + table(["algorithm", "on", "points", "median error", "within 20 %", "bias", "worst", "which"], lines)


def by_size():
    lines = [[collective, f"1x{ranks}", size(count), *lab_tables.summary(group)[:3], *error_tables.worst_of(group)]
             for (collective, ranks, count), group in lab_tables.groups(rows("onehost"), "collective", "ranks", "bytes")]
    return """### One host by operation, shape and size

""" + table([*error_tables.PLACE, "points", "median error", "within 20 %", "worst", "which"], lines) if lines else ""
