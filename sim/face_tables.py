"""The sections of docs/simulation.md about exchanges of faces: against the lab, and beside the paper."""
import json
import math
import statistics

import lab_tables
from tables import MIB, ROOT, rows, size, span, table, time


def ours(row):
    return row["way"] not in ("mpich", "openmpi")


def lab_points():
    """Against the lab: one rank per host, and several."""
    points = [row for row in rows("faces") if row["samples"] >= 3]
    alone = [row for row in points if row["shape"].endswith("x1")]
    return alone, [row for row in points if row not in alone]


def text_of(extents):
    return "x".join(map(str, extents))


def small(row):
    """Whose messages leave out of the shaper's bucket: processors decide how long that takes."""
    return row["bytes"] < 8 << 10


def one_host_by_libucp(row):
    """Inside hosts, too, through libucp: production takes the memory of the host there."""
    return not row["shape"].endswith("x1") and "transport=ucx" in row["column"] and ours(row)


def of_single_cells(row):
    """Whose largest message is cells of 8 bytes, each in a cache line of its own: those of the last dimension's faces."""
    cells = row["cells"]
    return row["grid"][-1] > 1 and row["bytes"] == 8 * math.prod(cells[:-1]) and cells[-1] < min(cells[:-1])


def claimed(row):
    """What the simulation is meant to say something about."""
    return not one_host_by_libucp(row)


def by_wire(row):
    """Most of whose time the busiest link needs."""
    return not small(row) and row["limit_seconds"] >= 0.7 * row["measured_seconds"]


def lab_notes(alone, several):
    """Why what is far off is."""
    def of(some, cells, wanted):
        return [row for row in some if text_of(row["cells"]) == cells and wanted(row)]
    few = of(alone, "22x22x22", lambda row: row["mpi"] == "mpich" and ours(row))
    slow = statistics.median(row["lab_latency"] for row in alone if small(row))
    quick = statistics.median(row["lab_latency"] for row in several if small(row))
    dense = [row for row in rows("samples") if (row["collective"], row["shape"], row["bytes"], row["algorithm"], row["mpi"]) ==
             ("alltoallv", "4x1", 4096, "spread", "mpich")]
    inside = of(several, "1024x2x1024", ours)
    def by(some, libucp):
        found = [row["measured_seconds"] for row in some if one_host_by_libucp(row) == libucp]
        return f"{time(min(found))} to {time(max(found))}"
    ties = [row["median_seconds"] / row["simulated_seconds"] for row in alone if text_of(row["grid"]) == "2x2x1" and not small(row) and not ours(row)]
    pairs = [abs(lab_tables.error(row)) for row in alone if text_of(row["grid"]) == "2x2x1" and not small(row) and ours(row)]
    strided = [row for row in several if of_single_cells(row) and ours(row) and claimed(row)]
    late = sum(row["late"] for row in several) / sum(row["samples"] for row in several)
    least = f", an alltoallv of 4 KiB of {time(dense[0]['median_seconds'])} though it sends twice as many" if dense else ""
    return f"""
What stands in the way:

- **Faces of 4 KiB** leave at once, out of the shaper's bucket, and take as long as four programs need that share two cores.
  On hosts of one rank they were measured while the machine was slow: the lab's own one-way latency was {time(slow)}, where
  `lab-100` was described by 2.5 us and the lab of two ranks per host had {time(quick)}. Under MPICH faces of 22x22x22 cells have a
  median of {time(statistics.median(row["median_seconds"] for row in few))}{least}. What a message takes of a core is
  [measured](#who-has-a-core) and one number for all days: rows of two ranks per host are of a day on which cores did more, and are simulated
  too slow, those of one rank too fast.
- **Two ranks per host** are eight that share the two cores: in {100 * late:.0f} % of the samples one of them began late. Where the link
  decides, that does not matter. Where copies inside hosts do, the simulation is **not to be trusted for the lab**: its hosts
  have a memory each, and the lab's have one together, and the copies' rates are an older machine's.
- **Not simulated**, and compared apart: libucp inside hosts, where production takes their memory (with faces of 1024x2x1024 cells
  {by(inside, True)} in the place of {by(inside, False)}).
- **Faces of single cells** of 8 bytes (720x720x12) lie in a cache line each: a copy moves those, eight times the bytes, at the rate of
  any copy; no number is fitted to them. Ours take {time(strided[0]["simulated_seconds"])} in the simulation and {time(min(row["measured_seconds"] for row in strided))} to {time(max(row["measured_seconds"] for row in strided))} in the lab. The libraries
  gather them once more or straight into shared memory, each in its own way, which is not simulated.
- **A library's grid of 2x2x1** has ties: which of two neighbours' messages goes first is decided in microseconds, and a lucky order saves
  up to a quarter. The simulation has one order; medians are {min(ties):.2f} to {max(ties):.2f} of it, the least of 30 samples often luckier. Ours meet in
  pairs and have none: {100 * statistics.median(pairs):.1f} % there.
"""


def verdicts(points):
    """The lab's targets, of ours: points of at least 15 samples that the simulation is meant for."""
    large, little = lab_tables.targets([row for row in points if ours(row) and claimed(row)])
    far = [row for row in little if abs(lab_tables.error(row)) > 0.2]
    named = sorted({(row["bytes"], row["shape"], "x".join(map(str, row["cells"]))) for row in far})
    text = f"""
The targets [above](#against-the-lab), of ours without libucp inside hosts
([all](#all-points-and-those-of-the-claim)): messages from 1 MiB on, {lab_tables.summary(large)[1]} in the median of {len(large)} points and
{lab_tables.summary(large)[2]} within 20 %: {lab_tables.verdict(lab_tables.met(large))}; below, {len(little) - len(far)} of {len(little)} within 20 %: {lab_tables.verdict(not far)}"""
    if not far:
        return text + ".\n"
    return text + f""",
by {", ".join(f"{sum((row['bytes'], row['shape']) == (count, shape) for row in far)} of {cells} cells ({size(count)}) on {shape}" for count, shape, cells in named)}.
"""


def lab():
    alone, several = lab_points()
    if not alone:
        return ""
    def part(wanted, some):
        return lab_tables.summary([row for row in some if wanted(row)])
    head = ["points", "number", "median error", "within 20 %", "worst", "bias"]
    overview = [
        ["ours, one rank per host, faces from 16 KiB", *part(lambda row: ours(row) and not small(row), alone)],
        ["the natives', the same", *part(lambda row: not ours(row) and not small(row), alone)],
        ["one rank per host, faces of 4 KiB", *part(small, alone)],
        ["several ranks per host, where the link needs 70 % of the time or more", *part(lambda row: claimed(row) and by_wire(row), several)],
        ["several ranks per host, the others", *part(lambda row: claimed(row) and not by_wire(row), several)],
        ["several ranks per host, libucp inside hosts, too", *part(one_host_by_libucp, several)],
        ["several ranks per host, faces of single cells, ours", *part(lambda row: of_single_cells(row) and claimed(row) and ours(row), several)],
        ["several ranks per host, faces of single cells, the natives'", *part(lambda row: of_single_cells(row) and not ours(row), several)]]
    found, lines = {}, []
    for row in alone + several:
        kind = row["way"] if ours(row) else "native"
        found.setdefault((row["shape"], text_of(row["grid"]), text_of(row["cells"]), kind, row["mpi"]), []).append(row)
    for (shape, grid, cells, kind, mpi), group in sorted(found.items(), key=lambda item: (item[0][0], item[0][1], item[1][0]["bytes"], item[0])):
        errors = [lab_tables.error(row) for row in group]
        lines.append([shape, grid, cells, size(group[0]["bytes"]), kind, mpi, len(group),
                      f"{sum(row['late'] for row in group)} of {sum(row['samples'] for row in group)}",
                      time(min(row["measured_seconds"] for row in group)), time(max(row["measured_seconds"] for row in group)),
                      time(statistics.median(row["median_seconds"] for row in group)),
                      time(statistics.median(row["simulated_seconds"] for row in group)),
                      f"{100 * statistics.median(map(abs, errors)):.1f} %", f"{100 * max(errors, key=abs):+.0f} %"])
    return f"""## Halo exchanges against the lab

`thalweg bench halo` on grids of 4x1x1, 2x2x1, 4x2x1 and 2x2x2 ranks (`bench/results/halo-*.jsonl`), each cell 8 bytes, simulated as
`thalweg sim halo --grid 4x2x1 --cells 640x8x1024` does: messages of the same bytes between the same ranks. Compared are the ways
that post every message and wait for all: ours wherever a schedule ran (in one call, nonblocking or persistent, through libucp or
the memory of the host), and of MPICH and Open MPI `MPI_Neighbor_alltoallw` in its three forms and plain sends and receives. Ours
[meet in pairs](decisions/0095-neighbours-meet-in-pairs.md), by production's own function. Not compared are ways that pack by hand or do one part
after the other.

""" + table(head, overview) + verdicts(alone + several) + lab_notes(alone, several) + """
By grid and cells; **bytes** are those of the largest message, **late** the samples in which a rank began more than half a
millisecond after the others because no core was free; **least** and **most** are the smallest and the greatest of the ways'
minima, to which the simulation is held, **median** is that of their medians.

""" + table(["hosts x ranks", "grid", "cells", "bytes", "whose", "on", "ways", "late", "least", "most", "median", "simulated", "median error", "worst"],
            lines)


def halo_points():
    """(machine, ranks, rails, bytes) -> the columns there."""
    points = {}
    for row in rows("halo"):
        points.setdefault((row["machine"], row["ranks"], row["rails"], row["bytes"]), {})[row["column"]] = row
    return points


def halo_saved(native, least=64 << 10):
    """Percent of that native's time that Thalweg saves at 2304 ranks, faces of `least` bytes on: those of 64 KiB are asked for before they
    are sent; of less, of that size alone."""
    return [100 * (1 - columns["auto"]["seconds"] / columns[native]["seconds"])
            for (_, ranks, _, count), columns in halo_points().items()
            if ranks == 2304 and native in columns and (count == least if least < 64 << 10 else count >= least)]


def copied_seconds(row):
    """What the copies inside a host take with nothing else: the host's part of what does not cross hosts."""
    machine = json.loads((ROOT / f"sim/machines/{row['machine']}.json").read_text(encoding="utf-8"))
    return (row["sent_bytes"] - row["inter_bytes"]) / row["hosts"] / (machine["host_copy_GBps"]["is"] * 1e9)


def halo():
    lines, ceilings = [], []
    for (machine, ranks, rails, count), columns in halo_points().items():
        ours, cost = columns["auto"], columns["auto"]["cost"]
        line = [machine, ranks, ours["hosts"], rails, size(count), time(ours["seconds"])]
        for native in ("mpich", "mvapich"):
            other = columns.get(native)
            line.append(f"{100 * (1 - ours['seconds'] / other['seconds']):.1f} %" if other else "-")
        copied = copied_seconds(ours)
        ceilings.append(100 * copied / (ours["seconds"] + copied) if "mvapich" in columns else 0)
        lines.append([*line, f"{ceilings[-1]:.0f} %" if ceilings[-1] else "-", f"{ours['seconds'] / ours['limit_seconds']:.2f}",
                      f"{cost['schedule_bytes'] / ranks:.0f} B", f"{cost['build_seconds'] / ranks * 1e6:.1f} us",
                      f"{cost['replay_seconds']:.1f} s", f"{cost['peak_bytes'] / MIB:.0f} MiB"])
    return f"""## Halo exchange (CLUSTER 2025)

The paper: up to 48 % over state-of-the-art libraries in a 3D stencil's communication at 2304 processes, by choosing how
messages inside a host move while others are on the network. Here: all six faces of a 3D grid of ranks at once, block
mapping. Thalweg's schedule (`spread`) and the natives' (`spread:in_flight=0`: post everything, wait) hold the same
messages; Thalweg posts those to other hosts first, and answers what peers wait for before it copies. A library copies a
message of its own host whole when it is matched, in one system call. Two kinds:

- **as they come** (columns `mpich` and `openmpi`): in the order in which messages arrive, whichever way they came. So do MPICH
  until 4.1 and Open MPI; it is all that the column `mpich` claims inside a host, whatever release its algorithms are of;
- **host first** (column `mvapich`): progress looks at the host's messages, copies them, and looks at the network only
  when the host has nothing. That is what MVAPICH2 2.3 does (`ch3_progress.c` returns as soon as shared memory completed
  something), and what `ch4_progress.h` of newer releases of MPICH does: for those this column is the one to read. A neighbour
  on another host that asks for its face then waits for all copies.

""" + table(["machine", "ranks", "hosts", "rails", "bytes", "Thalweg", "saved, as they come", "saved, host first",
             "ceiling", "it / limit", "memory, a rank", "built, a rank", "replayed in", "peak"], lines) + f"""
**Ours** at 2304 ranks from 64 KiB on: {span(halo_saved("mpich"))} of a library that takes messages as they come,
{span(halo_saved("mvapich"))} of one that looks at its host first; at 8 KiB, which is sent without asking, {span(halo_saved("mpich", 8 << 10))} of either.
Neighbours that [meet in pairs](decisions/0100-pairs-by-how-far-they-are-apart.md) save where the link is the longest part,
whatever the library does with its host: both directions of every link are busy all the time.

**The arithmetic** of the rest: if every copy were made before the network moves, the library would take both times and we the
longer one, so that the copies' share is the ceiling: `copies / (copies + ours)`, in the table, and 50 % where both are equally
long. One link of 100 Gbit/s for 48 ranks makes the network so long that copies are a small part of it. Eight of them, or two of
400 Gbit/s, make both equally long: there the ceiling is 50 %, and the baseline's order alone is worth {max(halo_saved("mvapich")):.0f} %. **What
cannot be told:** the paper's hosts, links, face sizes and baseline are not known here, nor whether its 48 % are of time. If they
are, they stand at that ceiling: an exchange whose copies and network take equally long, against a library that does one
after the other; the last {48 - max(halo_saved("mvapich")):.0f} points would be copies that are quicker than one by the receiver.

Where tens of thousands of messages cross hosts, ends of transfers that are nearly simultaneous are made so
(`sim/network.cpp`), because every end changes the shares of all flows that it touches. The last columns are what one run
took, once: processor seconds of one core.
"""
