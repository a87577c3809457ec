"""The sections of docs/simulation.md that say how far to trust it: against the lab, the natives, one host, SMPI."""
import json
import statistics
import textwrap

import core_tables
from tables import MIB, ROOT, rows, size, span, table, time


def error(row):
    return row["simulated_seconds"] / row["measured_seconds"] - 1


def summary(points):
    errors = [abs(error(row)) for row in points]
    near = sum(one <= 0.2 for one in errors) / len(errors)
    return [len(points), f"{100 * statistics.median(errors):.1f} %", f"{100 * near:.0f} %", f"{100 * max(errors):.0f} %",
            f"{100 * statistics.median(map(error, points)):+.1f} %"]


def verdict(reached):
    return "met" if reached else "**missed**"


def met(points):
    """The target from 1 MiB on."""
    errors = [abs(error(row)) for row in points]
    return statistics.median(errors) <= 0.1 and sum(one <= 0.2 for one in errors) >= 0.95 * len(errors)


def targets(points):
    """Points of at least 15 samples: from 1 MiB on, and below."""
    enough = [row for row in points if row["samples"] >= 15]
    return [row for row in enough if row["bytes"] >= MIB], [row for row in enough if row["bytes"] < MIB]


def groups(points, *fields):
    """Points of at least 3 samples that agree in these fields, with these first."""
    found = {}
    for row in points:
        if row["samples"] >= 3:
            found.setdefault(tuple(row[field] for field in fields), []).append(row)
    return sorted(found.items())


def missed(far):
    """Of the points that are too far off: what their samples were, and why."""
    def point(row):
        return tuple(row[field] for field in ("collective", "shape", "rate", "bytes", "mpi"))
    samples = {(*point(row), row["algorithm"]): row for row in rows("samples")}
    defaults = {point(row): row for row in rows("natives")}
    lines, inside, beyond = [], 0, []
    for row in far:
        of_it = samples[(*point(row), row["algorithm"])]
        inside += of_it["least_seconds"] <= row["simulated_seconds"] <= of_it["greatest_seconds"]
        native = defaults.get(point(row))
        over = [row[how] / native[how] for how in ("measured_seconds", "simulated_seconds")] if native else []
        if native and row["algorithm"] != "notify":
            beyond.append(100 * (over[1] / over[0] - 1))
        lines.append([f"{row['algorithm']}, {row['collective']}", size(row["bytes"]), row["shape"], row["rate"], row["mpi"], of_it["samples"],
                      *(time(of_it[f"{which}_seconds"]) for which in ("least", "median", "greatest")),
                      time(row["simulated_seconds"]), " / ".join(f"{one:.2f}" for one in over) or "-"])
    text = "Why they are:\n\n" + table(["what", "bytes", "hosts x ranks", "links", "on", "samples", "least", "median", "greatest",
                                        "simulated", "over the native, measured / simulated"], lines)
    text += f"""
{inside} of {len(far)} simulated times lie among the samples. Messages below 16 KiB leave at once, out of the shaper's bucket: what is
measured there is what they take of cores ([below](#who-has-a-core)), on days on which a core did more or less. A put (`notify`) takes
more than the four messages that it is simulated as ([what is left](decisions/0113-what-a-core-does-for-a-short-message-is-measured-by-itself.md)).
"""
    def of_leaders(shape):
        found = {row["mpi"]: row for row in rows("lab") if (row["algorithm"], row["shape"], row["bytes"]) == ("node_leader", shape, 1 << 15)}
        return ", ".join(f"{time(row['measured_seconds'])} on {mpi}" for mpi, row in sorted(found.items())) + \
            f", where the simulation says {time(next(iter(found.values()))['simulated_seconds'])}" if found else "nothing"
    text += f"""
**Tried, and left**: all costs of cores in proportion to the latency that the lab had when it came up for a row, and in proportion to
the kernel's seconds per byte then (nearer for exchanges, farther off for halos: [107](decisions/0107-shared-cores-are-taken-in-turn.md)); the least of all
rounds of the costs' measurement in the place of the middle launch's, whose differences are noise
([113](decisions/0113-what-a-core-does-for-a-short-message-is-measured-by-itself.md)). **Not understood**: exchanges by leaders
of 32 KiB per pair, which libraries should carry alike, on 3x3 {of_leaders("3x3")}, and on 4x2 {of_leaders("4x2")}.
"""
    if beyond:
        text += f"""
Such days are the natives' as well: against what the library itself took of the same exchange there and takes in the simulation,
the others come out {min(beyond):+.0f} to {max(beyond):+.0f} % off.
"""
    return text


def kernels():
    """What hosts whose kernels send do to messages, and how it was seen."""
    wire = [row for row in rows("wire") if row["bytes"] >= 1 << 17]
    return f"""**Where kernels send**, what happens between two hosts is more than a rate:

- A connection hands a segment of up to 64 KiB to its host's link, and stands behind the other connections with the next.
  Messages up to that size go in the order in which they were sent, and do not share the link.
- Frames have headers: a short message takes more of a link than its bytes, the shaper's bucket holds whole frames, and what comes
  is acknowledged, one frame without bytes for two full ones or for a short message, which takes its time on the link
  in the other direction ([decision](decisions/0122-frames-and-acknowledgements-take-the-link-too.md)).
- A socket takes a MiB at once. A send is over then, and whoever waits for it goes on.
- A large message that asks first waits for an answer, and the answer goes over the connection on which its sender may itself
  be sending: behind what the kernel holds already. Rank 0 sends A and B to rank 1, which sends A back as soon as it has it
  (`sim/wire.py`, plain programs in the lab, the least of eight): three transfers one after another where the library asks,
  two where it hands everything to the kernel at once. MPICH and Intel MPI do not ask, Open MPI does from 64 KiB on.
- Under those some of Thalweg's own messages ask, by its credits, and under MPICH what follows to the same peer overtakes a
  large one that asks: in a ring of two hosts, messages of 128 to 384 KiB, that made two transfers three. Therefore messages of
  no bytes ask, behind those ([receipts](decisions/0088-receipts-ask-in-the-place-of-large-messages.md)). Under Intel MPI a
  message that asks goes at once as well, so nothing overtakes it, and no receipts are sent.
  How credits stand depends on what had been sent before, so each of 15 simulated operations (`--samples`) begins with
  another past, and the least counts, as of the measured ones.

""" + table(["on", "bytes", "A is there", "B is there", "rank 0 may go on", "rank 0 has its answer", "in transfers of one"],
            [[row["mpi"], size(row["bytes"]), *(time(row[f"{what}_seconds"]) for what in ("first", "second", "sent", "answered")),
              f"{2 * row['answered_seconds'] / row['second_seconds']:.1f}"] for row in wire]) + "\n"


def cores():
    """What ranks that share cores do to short exchanges, seen by a plain program."""
    points = rows("plain")
    if not points:
        return ""
    lines = [[row["shape"], size(row["bytes"]), row["mpi"], time(row["last_begins_seconds"]), time(row["measured_seconds"]),
              time(row["median_seconds"]), time(row["simulated_seconds"]), f"{100 * error(row):+.0f} %"] for row in points]
    wide = [row for row in points if row["bytes"] >= 1 << 14]
    near = [row for row in points if row["bytes"] < 1 << 14 and row["median_seconds"] < 2 * row["measured_seconds"]]
    return f"""### Who has a core

The lab's ranks share two cores, and those of the bench [sleep until they begin](decisions/0075-ranks-of-the-bench-meet-asleep.md).
A plain program does the same (`sim/wire.py exchange`: all receives, then all sends, in the order of ranks). Three things that
it shows are simulated, for all points alike ([decision](decisions/0107-shared-cores-are-taken-in-turn.md)):

- The first rank begins 70 us after the instant, of which 50 are Linux's timer slack. The last one begins when those before it have
  posted what they have: a rank keeps its core until there is nothing to do. So the messages of two ranks of a host leave one
  rank after the other, and not mixed. Who begins first is drawn, and the least of 15 counts.
- An operation and its messages take of a core what the table below says. A rank that waits looks for 5 us before another one has
  its core. One of ours that naps then, over an MPI library, takes every look of the cores, too.
- Who is told to send first fills its socket, and its own answer to the other one stands behind that: then the second half of an
  exchange waits for the first. On the lab that is so in most of Open MPI's allgathers of 64 KiB to 1 MiB among four hosts of one rank, which
  take 1.6 times as long then; the least, to which the simulation is held, are without (`bench/results/blocking-openmpi-4x1.jsonl`). The
  simulation has it where ranks are farther apart than a question and its answer need, and there they are not.

""" + table(["hosts x ranks", "bytes", "on", "last begins", "least", "median", "simulated", "error"], lines) + f"""
From 16 KiB on the order in which ranks post explains it: {summary(wide)[1]} in the median, {summary(wide)[2]} of {len(wide)} points within 20 %. Below, medians
are up to a slice of the scheduler (2.8 ms) later than minima where anything else wanted a core; where they are less than twice as long,
the error is {summary(near)[1] if near else "-"} in the median of {len(near)} points.

""" + core_tables.costs()


def two_links(native):
    """Of hosts of two links each: what the libraries do by default, or schedules of ours."""
    return [{**row, "shape": f"{row['shape']}, {row['rails']} links", "forced_seconds": None} for row in rows("rails")
            if (row["way"] == row["mpi"]) == native]


def enough(group):
    """Of a group's points those that the targets count: how many, and their median error."""
    many = [row for row in group if row["samples"] >= 15]
    return [len(many), summary(many)[1] if many else "-"]


def by_operation(points):
    """The targets' points, operation by operation."""
    lines = []
    for collective in sorted({row["collective"] for row in points}):
        large, small = targets([row for row in points if row["collective"] == collective])
        lines.append([collective, *(summary(large)[:4] if large else ["-"] * 4), verdict(met(large)) if large else "-",
                      *(summary(small)[:4] if small else ["-"] * 4)])
    return table(["operation", "from 1 MiB", "median error", "within 20 %", "worst", "target", "below", "median error",
                  "within 20 %", "worst"], lines)


NOT_COMPARED = """**Not compared**, and why:

- *Halos in runs whose mix changes*: such a run measures what trials decide over hundreds of exchanges, and when again;
  a simulation replays one exchange by one choice.
- *radix_sort*: its counts are of digits of 16 bits, 256 KiB of every rank; those of `thalweg sim app sort` are of 8
  bits, 1 KiB.
- *amr*: its blocks, and with them its messages, move among the ranks as the mesh is refined; `thalweg sim app amr` has
  one face per neighbour in a grid of ranks, and a quarter of the ranks refined.
- *Programs that test between pieces of their work*: a simulated one only computes between a start and its wait.
"""


def lab():
    points = rows("lab")
    large, small = targets(points)
    few = [row for row in points if 3 <= row["samples"] < 15]
    fewest = [row for row in points if row["samples"] < 3]
    def allowed(row):
        return max(0.2, row["native_spread"] or 0)
    far = [row for row in small if abs(error(row)) > allowed(row)]
    wide = [row for row in small if 0.2 < abs(error(row)) <= allowed(row)]
    head = ["points", "number", "median error", "within 20 %", "worst", "bias"]
    text = f"""## Against the lab

Every column of `bench/results` that is a schedule of ours, on several hosts with one link each, is simulated on the
machine `lab-100` or `lab-50` at the link rate that was measured when that lab came up (`sim/validate.py`): broadcasts,
allgathers, allreduces, and alltoallvs between all pairs alike; of nonblocking ones, what they take when they are waited for at once.
Halo exchanges follow [below](#halo-exchanges-against-the-lab), [sparse and uneven
alltoallvs](#sparse-and-uneven-exchanges-against-the-lab) too, and what goes on
[beside computation](#beside-computation-against-the-lab) behind them. Hosts of two
links have lines of their own ([below](#two-links-per-host)) and are not among the points that the targets count. The error
is that of the simulation against the minimum of the samples, from the instant until which the ranks slept; older rows of
nonblocking operations know only what each rank took from where it began itself, and so does the simulation there. None of the
machine's numbers is fitted to such measurements: what a message takes of a core, a core's change of hands and what passes before a
rank that slept begins were measured by plain programs ([below](#who-has-a-core)); the others are the lab's own, or guesses that
were made before anything was compared. Over an MPI library a rank of ours that waits naps and looks, and so it does here; over
libucp it is woken. Waits of ours in rows that are older than 29 November 2026 could end up to a millisecond late where
a hop takes more than three ([naps](decisions/0077-shared-cores-are-left-by-naps.md)), which is not modelled.

Targets, for points of at least 15 samples: from 1 MiB a median error of at most 10 % and 95 % of the points within
20 %: {verdict(met(large))}. Below 1 MiB every point within 20 %, or within what the native operation differs from itself there (medians
of two columns): {verdict(not far)}: {len(far)} of {len(small)} points are farther off, {len(wide)} more are within that spread. Farther off are
{"; ".join(f"{row['algorithm']}, {size(row['bytes'])}, {row['shape']} on {row['mpi']} ({100 * error(row):+.0f} %)" for row in far)}.

{missed(far) if far else ""}
{NOT_COMPARED}
{kernels()}{cores()}"""
    text += table(head, [["15 samples or more, from 1 MiB", *summary(large)],
                         ["15 samples or more, below 1 MiB", *summary(small)],
                         ["3 to 14 samples, from 1 MiB", *summary([r for r in few if r["bytes"] >= MIB])],
                         ["3 to 14 samples, below 1 MiB", *summary([r for r in few if r["bytes"] < MIB])],
                         *([["1 or 2 samples, in no target and no table below", *summary(fewest)]] if fewest else []),
                         *([["two links per host, 3 samples or more", *summary(two_links(False))]] if two_links(False) else [])])
    text += f"""
By operation, points of at least 15 samples:

{by_operation(points)}
By operation, shape and size, points of at least 3 samples, and how many of them have at least 15, which the targets count,
with their median error; the last columns name the point that is farthest off. What
the simulation does not know shows there: TCP's congestion control, by which connections' shares of a link differ from one
time to the next, and Open MPI's rendezvous, which asks for every large piece by itself.

The lab's hosts have one to three ranks. What 24, 48 or 112 ranks of a host do to one another stands on two numbers per
machine, the copies of one core and of a whole host; it is checked by [what others have
measured](#hosts-of-many-ranks-as-others-measured-them) only.

"""
    lines = []
    for (collective, shape, count), group in groups(points + two_links(False), "collective", "shape", "bytes"):
        worst = max(group, key=lambda row: abs(error(row)))
        lines.append([collective, shape, size(count), *summary(group)[:3], *enough(group), f"{100 * error(worst):+.0f} %",
                      f"{worst['algorithm']} on {worst['mpi']}, {time(worst['measured_seconds'])}"])
    return text + table(["operation", "hosts x ranks", "bytes", "points", "median error", "within 20 %", "of 15 samples",
                         "their median error", "worst", "which"], lines)


def rings_at_once(points):
    """MPICH's ring: its sends one after another, as the model has them, and all at once."""
    lines, errors = [], []
    for row in points:
        if row["mpi"] != "mpich" or row["algorithm"] != "scatter_ring" or "at_once_seconds" not in row:
            continue
        at_once = row["at_once_seconds"] / row["measured_seconds"] - 1
        lines.append([row["shape"], size(row["bytes"]), time(row["measured_seconds"]),
                      f"{100 * error(row):+.0f} %", f"{100 * at_once:+.0f} %"])
        if row["bytes"] <= 4 * MIB:
            errors.append((abs(error(row)), abs(at_once)))
    if not lines:
        return ""
    turn, once = (100 * statistics.median(column) for column in zip(*errors))
    trees = span([100 * error(row) for row in points if (row["mpi"], row["algorithm"]) == ("mpich", "binomial")
                  and MIB <= row["bytes"] <= 4 * MIB and row["shape"] != "2x1"])
    return f"""
**MPICH's ring.** Its sends are blocking: each waits until the kernel has its bytes (**in turn**); with none waiting for another
it would be **at once**. Up to 4 MiB a socket takes most of them, and both are off by {turn:.0f} and {once:.0f} % in the median of {len(errors)} points; at
16 MiB only the first is right. Trees of 1 and 4 MiB among more than two hosts are simulated {trees} too slow: what the first of two
children is sent has a lead there that the model's turns do not give it.

""" + table(["hosts x ranks", "bytes", "measured", "in turn", "at once"], lines) + "\n"


def flattered(points):
    """What the models' errors do to our gains, on both sides; and which forced algorithm a default is."""
    slow = [row for row in points if error(row) > 0.1]
    bcasts = [row for row in points if (row["mpi"], row["collective"]) == ("mpich", "bcast") and row.get("alike_seconds")]
    if not slow or not bcasts:
        return ""
    named = sorted({f"{row['mpi']}'s {row['collective']}" for row in slow})
    count = {name: sum(name in row["alike_seconds"] for row in bcasts) for row in bcasts for name in row["alike_seconds"]}
    column = max(sorted(count), key=count.get)
    of_it = [row["measured_seconds"] / row["alike_seconds"][column] for row in bcasts if column in row["alike_seconds"]]
    return f"""
**What that does to our gains.** Where a native takes longer than its model, the model flatters it, and a gain over it is
shown too small. Where it takes less, a gain is shown too large by as much: at {len(slow)} of {len(points)} points by more than 10 %
({", ".join(named)}), at most by {100 * max(map(error, slow)):.0f} %. **Of MPICH's broadcast** it is not another algorithm: at {count[column]} of {len(bcasts)} points the default
has the traffic of the column `native {column}`, on the busiest link and on all of them, and takes {100 * min(of_it):.0f} to {100 * max(of_it):.0f} % of its time. Two
runs of the same messages differ by that much: by which of two children's connections gets more of the root's link.
"""


def reductions(points):
    found = [row["measured_seconds"] / row["simulated_seconds"] for row in points
             if (row["mpi"], row["collective"]) == ("openmpi", "allreduce") and not row["shape"].endswith("x1")]
    return span(found, " times", 1) if found else "not"


def natives():
    points = [row for row in rows("natives") if row["samples"] >= 3]
    ruled = [row for row in points if row["forced_seconds"]]
    same = [row for row in ruled if abs(row["measured_seconds"] / row["forced_seconds"] - 1) <= 0.1]
    lines = []
    for (mpi, collective, shape), group in groups(points + two_links(True), "mpi", "collective", "shape"):
        worst = max(group, key=lambda row: abs(error(row)))
        rule = [row["measured_seconds"] / row["forced_seconds"] for row in group if row["forced_seconds"]]
        lines.append([mpi, collective, shape, *summary(group)[:3], f"{100 * statistics.median(map(error, group)):+.0f} %",
                      f"{100 * error(worst):+.0f} %", f"{size(worst['bytes'])}, {worst['algorithm']}",
                      f"{statistics.median(rule):.2f}" if rule else "-"])
    far = sorted((row for row in points if abs(error(row)) > 0.2), key=lambda row: (row["collective"], row["mpi"], row["shape"], row["bytes"]))
    return f"""## The natives against the lab

What MPICH and Open MPI do by default is a model too: rules that are read in their sources (`sim/natives.cpp` names the
files), as schedules of ours. The lab has measured the real ones, MPICH 5.0 and Open MPI 5.0. Two questions:

- **Is it the algorithm?** Where the lab also forced the library to take the one that the rule names, the default took
  the same time within 10 % at {len(same)} of {len(ruled)} points (**rule**: default / forced, median).
- **Is it the time?** The error is that of the simulated default against the measured one: {summary(points)[1]} in the
  median, {summary(points)[2]} of {len(points)} points within 20 %.

""" + table(["MPI", "operation", "hosts x ranks", "points", "median error", "within 20 %", "bias", "worst", "which", "rule"],
            lines) + """

**Farther off than 20 %:** """ + "; ".join(f"{row['mpi']}'s {row['collective']}, {size(row['bytes'])}, {row['shape']} ({100 * error(row):+.0f} %)" for row in far) + """.

- **Alltoallvs up to 4 KiB**: [who has a core](#who-has-a-core), on slower days.
- **Open MPI's allgathers**: both ends ask each other, and who is told first keeps the other waiting ([above](#who-has-a-core)).
  Microseconds decide, and are simulated so that nobody waits; among eight hosts, and on hosts of two ranks, even the least of the samples
  take longer than that from 64 KiB on.
- **MPICH's trees**: what the first of two children is sent has a lead (below).

""" + flattered(points) + rings_at_once(points) + f"""Open MPI's `han` is modelled of broadcasts and of allgathers (`hierarchical`), not of reductions, which among hosts of several
ranks take {reductions(points)} what is simulated. Exchanges between neighbours are [held against the lab below](#halo-exchanges-against-the-lab).
"""


def published():
    points = rows("published")
    if not points:
        return ""
    lines, parts = [], []
    for source in json.loads((ROOT / "sim/published.json").read_text(encoding="utf-8")):
        of_it = [row for row in points if row["name"] == source["name"]]
        parts.append(textwrap.fill(f"- **{source['name']}** ({source['from']}), on `{source['machine']}`. Compares {source['compares']}.",
                                   118, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
        for row in of_it:
            lines.append([source["name"], source["operation"], size(row["bytes"]), row["algorithm"], time(row["measured_seconds"]),
                          time(row["simulated_seconds"]), f"{100 * error(row):+.0f} %", time(row["star_seconds"])])
    large, small = ([row for row in points if (row["bytes"] >= 1024) == wanted] for wanted in (True, False))
    return f"""## Hosts of many ranks, as others measured them

No host with many cores was at hand. These are averages over ranks that others have published, of allgathers and of
exchanges of all pairs, in which every rank is done at nearly the same time, beside `sim/published.json`'s question to
the simulator. Their machines are like ours, not ours: a wrong rate and a wrong idea look alike here. **one switch** is
the same without the machine's fabric.

{chr(10).join(parts)}

From 1 KiB on the error is {summary(large)[1]} in the median of {len(large)} points, {summary(large)[2]} within 20 %; below, where the
cost per message decides, {summary(small)[1]} of {len(small)}, and all but {sum(error(row) > 0 for row in small)} too fast: with dozens of ranks on a host a short
message takes these libraries {statistics.median(row["measured_seconds"] / row["simulated_seconds"] for row in small):.1f} times what the machines say, in the median; the machines' costs per message are guesses.
Seconds of small messages on full hosts are to be read as lower bounds. The mapping of the first table is inferred from its
largest size; the other sizes from 1 KiB on then follow.

""" + table(["where", "operation", "bytes", "algorithm", "measured", "simulated", "error", "one switch"], lines)


def smpi():
    points = rows("smpi")
    if not points:
        return ""
    lines = [[row["what"], row["ranks"], size(row["bytes"]), time(row["smpi_seconds"]), time(row["ours_seconds"]),
              f"{row['ours_seconds'] / row['smpi_seconds']:.3f}"] for row in points]
    return """## Against SMPI

SimGrid's own MPI runs a C program on the same platform (`sim/smpi.py`): point to point, and collectives with its
implementation of the same algorithm. Both stand on SimGrid's links; what is compared is everything above them.

""" + table(["program", "ranks", "bytes", "SMPI", "ours", "ours / SMPI"], lines)


