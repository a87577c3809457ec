"""How far simulated times are from measured ones: the parts of docs/simulation.md that say so of all points together, and of
each operation, shape and size by itself."""
import statistics

import beside_tables
import face_tables
import lab_tables
import sparse_tables
from tables import rows, size, table, time

PLACE = ["operation", "hosts x ranks", "bytes"]
POINT = ["on", "algorithm", "samples", "measured", "simulated", "error"]


def trust():
    """What was compared with what, and how it came out."""
    large, small = lab_tables.targets(rows("lab"))
    natives = [row for row in rows("natives") if row["samples"] >= 3]
    onehost = [row for row in rows("onehost") if row["samples"] >= 3]
    published = rows("published")
    smpi = [abs(row["ours_seconds"] / row["smpi_seconds"] - 1) for row in rows("smpi")]
    alone, several = face_tables.lab_points()
    links = lab_tables.two_links(True) + lab_tables.two_links(False)
    faces = "[halos](#halo-exchanges-against-the-lab)"
    there = "[others](#hosts-of-many-ranks-as-others-measured-them)"
    def line(what, points, where):
        return [what, *lab_tables.summary(points)[:4], where]
    return table(["what", "points", "median error", "within 20 %", "worst", "details"], [
        line("our schedules on the lab, 2 to 16 hosts of 1 to 3 ranks, from 1 MiB", large, "[lab](#against-the-lab)"),
        line("the same below 1 MiB", small, "[lab](#against-the-lab)"),
        line("the defaults of MPICH and Open MPI on the lab", natives, "[natives](#the-natives-against-the-lab)"),
        *([line("both, two links per host", links, "[two links](#two-links-per-host)")] if links else []),
        line("halo exchanges on the lab, one rank per host, faces from 16 KiB", [row for row in alone if not face_tables.small(row)], faces),
        line("faces of 4 KiB there", [row for row in alone if face_tables.small(row)], faces),
        line("several ranks per host there, where the link decides",
             [row for row in several if face_tables.claimed(row) and face_tables.by_wire(row)], faces),
        line("several ranks per host there, elsewhere",
             [row for row in several if not face_tables.claimed(row) or not face_tables.by_wire(row)], faces),
        *(line(f"{whose} sparse and uneven alltoallvs on the lab, where the link decides", found,
               "[sparse](#sparse-and-uneven-exchanges-against-the-lab)")
          for whose, native in (("our plans of", False), ("the libraries'", True))
          if (found := [row for row in sparse_tables.points(native) if sparse_tables.by_wire(row)])),
        *(line(f"{whose} nonblocking operations and computation together, on the lab", found,
               "[beside computation](#beside-computation-against-the-lab)")
          for whose, native in (("our", False), ("the libraries'", True)) if (found := beside_tables.points(native))),
        line("two ranks of one host", onehost, "[one host](#on-one-host)"),
        ["the same algorithms in SimGrid's own MPI", len(smpi), f"{100 * statistics.median(smpi):.1f} %",
         f"{100 * sum(one <= 0.2 for one in smpi) / len(smpi):.0f} %", f"{100 * max(smpi):.0f} %", "[SMPI](#against-smpi)"],
        line("hosts of 12 to 64 ranks, measured by others, from 1 KiB", [row for row in published if row["bytes"] >= 1024], there),
        line("the same below 1 KiB", [row for row in published if row["bytes"] < 1024], there)])


def all_points():
    """By what was compared: all points, and those that the claim is about."""
    faces = rows("faces")
    ours = [row for row in faces if face_tables.ours(row)]
    lab, natives = rows("lab"), rows("natives")
    return [("our schedules between hosts of one link", lab, lab),
            ("our halo exchanges", ours, [row for row in ours if face_tables.claimed(row)]),
            ("our schedules between hosts of two links", lab_tables.two_links(False), []),
            ("the libraries' defaults, one link or two", natives + lab_tables.two_links(True), []),
            ("the libraries' halo exchanges", [row for row in faces if not face_tables.ours(row)], []),
            ("our plans of sparse and uneven alltoallvs", sparse_tables.points(False), sparse_tables.points(False)),
            ("the libraries' sparse and uneven alltoallvs", sparse_tables.points(True), []),
            ("ours beside computation", beside_tables.points(False), beside_tables.points(False)),
            ("the libraries' beside computation", beside_tables.points(True), []),
            ("two ranks of one host", rows("onehost"), [])]


def claim():
    """Points of at least 15 samples: all, and those that the targets are held to."""
    kinds = all_points()
    kinds.append(("**together**", *(sum((kind[part] for kind in kinds), []) for part in (1, 2))))
    def cells(points):
        return lab_tables.summary(points)[:4] if points else ["-"] * 4
    lines, held = [], {}
    for number, which in enumerate(("from 1 MiB", "below")):
        for name, every, claimed in kinds:
            of_all, of_claim = (lab_tables.targets(points)[number] for points in (every, claimed))
            lines.append([which, name, *cells(of_all), *cells(of_claim)])
            held[which] = of_all, of_claim
    every, claimed = held["from 1 MiB"]
    def near(points):
        return sum(abs(lab_tables.error(row)) <= 0.2 for row in points)
    little, little_claimed = held["below"]
    names = ["bytes", "what", "all", "median error", "within 20 %", "worst", "claimed", "median error", "within 20 %", "worst"]
    return """## All points, and those of the claim

Every simulated point of the lab and of one host that was measured with at least 15 samples, and beside them those that the
[targets](#against-the-lab) are held to. **The claim leaves out**: halo exchanges of ours whose messages inside hosts go through
libucp (production takes the host's memory there); what the libraries do by themselves, because that is rules read in their
sources, not schedules of ours; hosts of two links, which a few points speak for; and hosts by themselves, whose caches are not modelled.

""" + table(names, lines) + f"""
From 1 MiB on the target (10 % in the median, 95 % within 20 %) is {lab_tables.verdict(lab_tables.met(claimed))} by the points of the claim and
{lab_tables.verdict(lab_tables.met(every))} by all. Below, {near(little_claimed)} of {len(little_claimed)} points of the claim are within 20 %, and {near(little)} of all {len(little)}.
"""


def worst_of(group):
    worst = max(group, key=lambda row: abs(lab_tables.error(row)))
    return [f"{100 * lab_tables.error(worst):+.0f} %", f"{worst['algorithm']} on {worst['mpi']}, {time(worst['measured_seconds'])}"]


def point(row):
    """The cells of POINT."""
    return [row["mpi"], row["algorithm"], row["samples"], time(row["measured_seconds"]), time(row["simulated_seconds"]),
            f"{100 * lab_tables.error(row):+.0f} %"]


def natives_by_size():
    lines = [[collective, shape, size(count), *point(row)]
             for (collective, shape, count), group in lab_tables.groups(rows("natives"), "collective", "shape", "bytes")
             for row in sorted(group, key=lambda row: row["mpi"])]
    return """### The natives by operation, shape and size

Points of at least 3 samples; the algorithm is the one that the model takes.

""" + table([*PLACE, *POINT], lines)


def two_links():
    lines = [[row["collective"], row["shape"].split(",")[0], size(row["bytes"]), whose, *point(row)]
             for whose, native in (("ours", False), ("the library's default", True)) for row in lab_tables.two_links(native)]
    if not lines:
        return ""
    return """### Two links per host

Allgathers between hosts of two links of 50 Mbit/s each (`bench/results/rails-*.jsonl`), simulated with `--rails 2` at the measured rate
of one link: a message goes over the link with less to do, and never over both at once. UCX splits large ones over both, which
is **not modelled**: where it does, simulated times are up to twice the measured ones.

""" + table([*PLACE, "whose", *POINT], lines)
