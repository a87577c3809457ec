"""The section of docs/simulation.md about what goes on beside computation: nonblocking operations, and a program."""
import statistics

import lab_tables
from tables import rows, size, span, table, time

NATIVES = ("mpich", "openmpi")


def points(native):
    """Nonblocking operations beside computation: ours, or the libraries'."""
    return [row for row in rows("overlap") if (row["way"] in NATIVES) == native]


def pure(row):
    """The same of the operation by itself."""
    return {**row, "measured_seconds": row["pure_seconds"], "simulated_seconds": row["simulated_pure_seconds"]}


def operations():
    """By whose it is, operation, shape and size: lines of a table."""
    lines = []
    for whose, native in (("ours", False), ("the library's", True)):
        for (collective, shape, count), group in lab_tables.groups(points(native), "collective", "shape", "bytes"):
            many = [row for row in group if row["samples"] >= 15]
            worst = max(group, key=lambda row: abs(lab_tables.error(row)))
            lines.append([whose, collective, shape, size(count), len(group), len(many),
                          lab_tables.summary([pure(row) for row in group])[1], *lab_tables.summary(group)[1:3],
                          f"{100 * lab_tables.error(worst):+.0f} %", worst["mpi"],
                          *(span([row[f"{which}_percent"] for row in group]) for which in ("hidden", "simulated"))])
    return table(["whose", "operation", "hosts x ranks", "bytes", "points", "of 15 samples", "alone, error",
                  "both, error", "within 20 %", "worst", "on", "hides, measured", "simulated"], lines)


def programs():
    found = sorted(rows("programs"), key=lambda row: (row["shape"], row["mpi"], row["column"]))
    lines = [[row["shape"], row["mpi"], row["column"], row["samples"], time(row["computed_seconds"]),
              time(row["measured_seconds"]), time(row["median_seconds"]), time(row["simulated_seconds"]),
              f"{100 * lab_tables.error(row):+.0f} %"] for row in found]
    ours = [row for row in found if row["column"].startswith("thalweg")]
    bytes_, of_ours, of_all = size(found[0]["bytes"]), lab_tables.summary(ours)[1], lab_tables.summary(found)[1]
    return f"""### A program

The conjugate gradient of `apps/` beside `thalweg sim app cg`, an iteration of each: an allgather of {bytes_} from
every rank, two sums of eight bytes, and as much computation as was measured (`--sweep`; it sleeps). Nonblocking, the
measured one gathers in two halves, with parts of the product beside either, and the simulated one at once, with half of
the product beside it. Simulated messages of ours go over the MPI library here, not over libucp. Ours is {of_ours} off
in the median of {len(ours)} columns, and all {len(found)} are {of_all}; few have 15 samples, and none counts for the
targets.

""" + table(["hosts x ranks", "on", "calls", "samples", "computes", "least", "median", "simulated", "error"], lines)


def lab():
    ours, natives = points(False), points(True)
    if not ours or not natives:
        return ""
    many = [row for row in ours + natives if row["samples"] >= 15]
    def said(found):
        hidden, simulated = (f"{statistics.median(row[f'{which}_percent'] for row in found):.0f} %"
                             for which in ("hidden", "simulated"))
        off, near = lab_tables.summary(found)[1:3]
        return (f"{off} off in the median of {len(found)} points, {near} within 20 %;\n  measured {hidden} hide in the "
                f"median, simulated {simulated}")
    return f"""## Beside computation, against the lab

A nonblocking operation is started, the ranks compute, and then they wait for it (`bench/results/overlap-*.jsonl`;
`thalweg sim COLLECTIVE --overlap`). **alone** is the operation by itself, **both** the operation and the computation
together, from the start to the end of the wait: means over the ranks, the least of the samples. Each rank computes for
as long as its own part takes. **hides** is OSU's measure, by the middles of the samples. Only computation that takes no core is compared (the ranks sleep), because the
lab's ranks share two. {len(many)} of {len(ours + natives)} points have at least 15 samples.

- **Ours**, which an agent advances: {said(ours)}.
- **The libraries'**, which are advanced inside their calls alone, while kernels pass on what sockets hold:
  {said(natives)}.
  What a nonblocking call of a library runs is not always its blocking default, which the model takes.

""" + operations() + "\n" + (programs() if rows("programs") else "")
