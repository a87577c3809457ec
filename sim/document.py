"""Writes docs/simulation.md and its pictures from what stands in sim/results and sim/machines, and from nothing else.

    sim/document.py [--check]      --check: only say whether they are what the results say (exit status 1: not)
"""
import json
import math
import sys

import beside_tables
import error_tables
import face_tables
import lab_tables
import machine_tables
import onehost_tables
import paper_tables
import pictures
import sparse_tables
from tables import MIB, ROOT, rows, size, span, table, time

PAGE = ROOT / "docs/simulation.md"


def summary():
    """The papers' figures and ours."""
    alone, row_, root = paper_tables.ring_ranges()
    papers = next(row for row in rows("windows") if (row["ranks"], row["bytes"]) == (448, 512 << 10))
    return table(["paper", "its figure", "simulated here", "why they differ"], [
        ["[trimmed ring](#the-trimmed-ring-arxiv-160306809), Cray XC40", "2 to 54 % less time",
         f"{span(alone)} until the last rank is done, {span(row_)} in a row, {span(root)} at the root",
         "where its clock stood; the bytes left out are 1.6 to 21 %"],
        ["[RMA alltoallv](#windows-per-call-and-per-plan-arxiv-260405099), 448 ranks", "38 % less time",
         f"{span(paper_tables.window_saved(papers))}; measured on the lab: Open MPI {span(paper_tables.lab_saved('openmpi'))}, MPICH {span(paper_tables.lab_saved('mpich'))}",
         "how many processes of a host pin memory at once; defects of the library"],
        ["[nonblocking allgather](#nonblocking-allgather-cluster-2012)", "68 % less than blocking",
         f"up to {paper_tables.allgather_best():.0f} %", "an agent on a free core does more than an adapter with task lists"],
        ["[CG on 8 hosts](#eight-hosts-one-rank-each-pdp-2015)", "32 % less time",
         f"{span(paper_tables.eight_saved())} less than MPICH, blocking",
         "how much of the run is communication; the algorithm alone is a part of it"],
        ["[3D stencil](#halo-exchange-cluster-2025), 2304 ranks", "48 %",
         f"{span(face_tables.halo_saved('mpich'))} or {span(face_tables.halo_saved('mvapich'))}, by what the library looks at first",
         "its hosts, links and baseline; 48 % is near the ceiling of 50 %"],
        ["[AMR exchange](#programs), 2304 ranks", "28 %", paper_tables.amr_saved(),
         "one direction at a time leaves little to overlap; who copies is not changed here"]])


def speed():
    """What simulating takes, against what it may take."""
    found = {(row["collective"], row["ranks"], row["column"]): row for name in ("speed", "halo") for row in rows(name)}
    lines = []
    for key, what, most in ((("bcast", 2304, "chain:chunk_bytes=64K"), "a broadcast of 16 MiB down a chain, in pieces of 64 KiB", 10),
                            (("bcast", 2304, "auto"), "the same by what Thalweg chooses", 10),
                            (("alltoallv", 448, "spread"), "an alltoallv of all pairs, 512 KiB each", 30),
                            (("halo", 65536, "auto"), "a halo exchange, faces of 64 KiB", 60)):
        row = found[key]
        cost = row["cost"]
        lines.append([what, row["machine"], row["ranks"], f"{row['messages']:,}",
                      f"{cost['build_seconds'] + cost['replay_seconds']:.1f} s",
                      f"{cost['wall_seconds']:.1f} s" if "wall_seconds" in cost else "-", f"{most} s", f"{cost['peak_bytes'] / MIB:.0f} MiB",
                      f"{row['date']}, {row['commit']}"])
    return """## What simulating takes

Processor seconds of one core, once, what passed on the clock meanwhile, beside whatever else the machine did, and memory at
its highest; the limit of memory is 16 GiB. The core: one of two virtual
ones of an AMD EPYC, whose pace varies. The last line is by [our own solver](decisions/0046-simulated-without-actors.md) for the shares of
links. A test of the long run (`sim.speed`) holds the targets.

""" + table(["what", "machine", "ranks", "messages", "took", "on the clock", "target", "peak", "when, and of what"], lines)


def losses(least=0.05):
    """Where a native's default takes less than what Thalweg would choose, of the table `defaults`."""
    points, left, ours = {}, [], []
    for row in rows("defaults"):
        points.setdefault(tuple(row[field] for field in ("collective", "machine", "mapping", "bytes")), {})[row["column"]] = row
    for (collective, machine, mapping, count), columns in points.items():
        chosen = columns["auto"]
        for column, name in (("mpich", "MPICH"), ("openmpi", "Open MPI")):
            ratio = columns[column]["seconds"] / chosen["seconds"]
            if not 0 < ratio < 1 - least:
                continue
            if chosen["reason"].startswith("left to"):
                left.append(ratio)
            else:
                ours.append(f"{collective} of {size(count)} on `{machine}`, {mapping} mapping: {name}'s default takes {ratio:.2f} of its time")
    text = f"By more than {100 * least:.0f} % it does at {len(left) + len(ours)} of {2 * len(points)} comparisons."
    if left:
        text += f""" At {len(left)} of them small messages are left to
MPICH, and Open MPI takes down to {min(left):.2f} of its time."""
    if ours:
        text += " By what is chosen for these:\n\n" + "\n".join(f"- {one}" for one in ours)
    return text


CURVES = (("bcast", "binomial", 1 << 10, "bcast 1 KiB"), ("bcast", "binomial", MIB, "bcast 1 MiB, binomial"),
          ("barrier", "dissemination", 0, "barrier"), ("allreduce", "recursive_doubling", 1 << 10, "allreduce 1 KiB, doubling"),
          ("allgather", "bruck", 8, "allgather 8 B, Bruck"), ("halo", "spread", 64 << 10, "halo, faces of 64 KiB"), ("allgather", "ring", 1 << 10, "allgather 1 KiB, ring"),
          ("allgather", "spread", 1 << 10, "allgather 1 KiB, spread"), ("alltoallv", "spread", 1 << 10, "alltoallv 1 KiB, spread"))


def curve_picture():
    found = [row for name in ("curves", "squares") for row in rows(name) if row["machine"] == "slingshot"]
    series = []
    for collective, algorithm, count, name in CURVES:
        line = [(row["ranks"], row["seconds"], row["simulated"]) for row in found
                if (row["collective"], row["algorithm"], row["bytes"]) == (collective, algorithm, count)]
        if len(line) > 1:
            series.append((name, line))
    return pictures.curves(series, "ranks, 64 per host; hollow: the cost model's")


def timeline_picture():
    return pictures.timeline(json.loads((ROOT / "sim/results/timeline.json").read_text(encoding="utf-8"))["traceEvents"])


def curves(name, title, text, after=""):
    lines = []
    for row in rows(name):
        cost, model = row.get("cost"), row["predicted_seconds"]
        head = [row["collective"], row["machine"], row["ranks"], row["hosts"], size(row["bytes"]), row["algorithm"]]
        if row["simulated"]:
            lines.append([*head, time(row["seconds"]), f"{model / row['seconds']:.2f}" if model else "-", f"{row['steps'] / row['ranks']:.1f}",
                          f"{cost['build_seconds'] / row['ranks'] * 1e6:.1f} us",
                          f"{cost['schedule_bytes'] / row['ranks']:.0f} B", f"{cost['replay_seconds']:.1f} s",
                          f"{cost['peak_bytes'] / MIB:.0f} MiB"])
        else:
            lines.append([*head, f"*{time(row['seconds'])}*", "*cost model*", *["-"] * 5])
    return f"## {title}\n\n{text}\n" + table(["operation", "machine", "ranks", "hosts", "bytes", "algorithm", "time",
                                              "model / it", "steps a rank", "built, a rank", "memory, a rank",
                                              "replayed in", "peak"], lines) + after


def squares():
    """Where steps grow with the square of the ranks, and how far that was taken."""
    lines = {}
    for row in rows("squares"):
        if row["simulated"]:
            lines.setdefault((row["collective"], row["algorithm"], row["machine"]), []).append(row)
    def work(row):
        return row["cost"]["build_seconds"] + row["cost"]["replay_seconds"]
    sentences = []
    for collective, algorithm in dict.fromkeys(key[:2] for key in lines):
        line = max((sorted(line, key=lambda row: row["ranks"]) for key, line in lines.items() if key[:2] == (collective, algorithm)),
                   key=lambda line: line[-1]["ranks"])
        if len(line) < 2:
            continue
        before, row = line[-2:]
        ranks, memory = row["ranks"], row["cost"]["peak_bytes"] / MIB / 1024
        # The exponent with which the work grew over the last step on one machine.
        grown = math.log(work(row) / work(before)) / math.log(ranks / before["ranks"])
        by_memory, by_time = ranks * (16 / memory) ** 0.5, ranks * (600 / work(row)) ** (1 / grown)
        what = "memory" if by_memory < by_time else "time"
        sentences.append(f"- `{collective}`, `{algorithm}`: {ranks} ranks, the largest, took {work(row):.0f} s of a processor and {memory:.1f} GiB (`thalweg sim {collective} "
                         f"--machine {row['machine']} --ranks {ranks} --bytes 1K --algorithm {algorithm} --cost`). Memory, which grows "
                         f"as the square, would end it at {round(by_memory, -2):.0f} ranks; time, which grew with a power of "
                         f"{grown:.1f} over the last step, at {round(by_time, -2):.0f}: {what} does, at about "
                         f"{round(min(by_memory, by_time), -2):.0f}.")
    return curves("squares", "Where every rank talks to every rank", """Blocks of 1 KiB. Steps grow with the square of the ranks. A point that takes more than ten minutes of a processor or
16 GiB is left to the cost model: *slanted*, and hollow in the picture. **model / it** says at the simulated points how far
off the model is: it pays a latency for every step of a ring, which the replay's neighbours inside a host do not, and knows
nothing of what thousands of flows do to one another. On `slingshot` 16 hosts are one router: what 32 hosts exchange in pairs
goes through the few links between two routers, where a real one would route around them (no adaptive routing). A ring of more than 16,384 ranks is refused, in production too: two
ranks may exchange so many messages in one operation.
""", "\nThe largest points that were replayed, and what ten minutes and 16 GiB would allow by how their cost grew:\n\n"
                  + "\n".join(sentences) + "\n")


def page():
    parts = [f"""# Simulation

Made by `sim/document.py` from `sim/results`; do not edit. `sim/validate.py` and `sim/reproduce.py` simulate anew.

**What would Thalweg do, and gain, on a machine that I do not have here?** `thalweg sim` answers that for a machine that
is described in a page of JSON, up to tens of thousands of ranks, on a laptop:

```sh
thalweg sim bcast --machine dane --ranks 448 --bytes 64K,1M,16M
thalweg sim halo --machine ib2304 --ranks 2304 --bytes 64K --algorithm auto --algorithm mvapich
thalweg sim app stencil --machine ib2304 --ranks 2304 --bytes 64K --repeat 3
thalweg sim allgather --machine ib2304 --ranks 96 --bytes 64K --overlap
thalweg sim alltoallv --machine dane --ranks 448 --bytes 32K --rma
thalweg sim alltoallv --machine dane --ranks 448 --bytes 32K --pattern powerlaw
thalweg sim bcast --machine lab-100 --ranks 4 --per-host 1 --bytes 1M --algorithm chain --trace timeline.json
thalweg sim halo --machine lab-100 --per-host 2 --grid 4x2x1 --cells 640x8x1024
thalweg sim bcast --machine dane --ranks 112,448,1792 --bytes 1M --json >curve.jsonl
thalweg sim alltoallv --machine lab-100 --ranks 8 --per-host 2 --bytes 1K --algorithm notify --libucp
thalweg sim plot --out curve.png curve.jsonl
thalweg sim --list-machines
```

It replays production's own schedules, the ones that the validator proves and the engine runs, over SimGrid's links. The
same command and seed give the same digits, on any machine.

**How far to trust it.** Ratios between two columns of one table: as far as the lines below say. Seconds on a machine
whose numbers are guesses ([machines](#machines)): no further than the guesses. Hosts with many ranks: against a few
measurements that others have published.

{error_tables.trust()}
The targets are held to some of these points: [all of them, and those of the claim](#all-points-and-those-of-the-claim).

Modelled: posting, completing and copying on a rank's core; eager and rendezvous messages; links, rails and a host's memory,
shared; progress by the caller or an agent; where kernels send (`lab-100`, `lab-50`, `gbe8`): turns of connections, full
sockets, answers that wait behind other bytes of their connection, and the engine's credits; where hosts share cores (`lab-100`,
`lab-50`): whose turn it is, what a sleep takes, and (`--libucp`) what the engine and its puts take over libucp. Not modelled (`sim/replay.h`):
noise, caches, the engine's window, TCP's congestion control, adaptive routing, messages that UCX splits over
[two links](#two-links-per-host), and a native library's own waiting: natives are the algorithms that their sources
would choose, as schedules of ours. Times are simulated unless a table says measured.

![Simulated time against ranks, to 65,536](pictures/simulation-curves.svg)

What `--trace` writes opens in [Perfetto](https://ui.perfetto.dev) and in `chrome://tracing`: a process per rank; in it, as threads,
lanes of its sends, receives, copies and reductions, as many as there are at once; an arrow from each send to its receive. A slice
lasts from when the step was ready, whatever it waits for, until it was complete. Times are whole nanoseconds; what takes less than
two is drawn as two.

A timeline, drawn from such a file: a broadcast of 1 MiB down a chain of four hosts of the lab, in pieces of
128 KiB. The root's socket takes what its credit allows at once. Behind every second piece stands a message of no bytes, which asks in
its place where the credits want it ([receipts](decisions/0088-receipts-ask-in-the-place-of-large-messages.md)).

![Timeline of a broadcast among four ranks](pictures/simulation-timeline.svg)

## The papers' figures and ours

{summary()}
Each has a section below with the arithmetic.
""", error_tables.claim(), lab_tables.lab(), error_tables.two_links(), lab_tables.natives(), error_tables.natives_by_size(), face_tables.lab(),
             sparse_tables.lab(), beside_tables.lab(),
             onehost_tables.onehost(), onehost_tables.by_size(), lab_tables.published(), lab_tables.smpi(), machine_tables.machines(),
             machine_tables.routes(),
             paper_tables.rings(), paper_tables.allgather(), paper_tables.eight(),
             paper_tables.gains("defaults", "Thalweg's choice and the natives' defaults", f"""Simulated time of what Thalweg would choose by its tables and its cost model, and how much longer the natives'
defaults take. Below 1.00 the choice loses. {losses()}

**limit** (`/ limit` and `limit_seconds` of `thalweg sim`): the bytes that must cross the busiest host's links, whatever the
algorithm, at the rate of a link (`link_GBps`), on all rails, whatever one message alone reaches of it; and one latency, with posting
and completing one message. On one host a core's copies (`copy_GBps`) stand for the link. Of a halo exchange the latency is the wire's
alone, and on one host it has no limit.
"""),
             paper_tables.gains("alltoallv", "Alltoallv (arXiv 2604.05099)", """What the messages of the paper's exchange take, all pairs alike, 112 ranks per host, without any window. 512 KiB per pair
among 448 ranks need 1.6 s at the line rate, which is where the paper's 1.54 s stand.
"""),
             paper_tables.gains("patterns", "Alltoallvs that are sparse or uneven", """The same ranks, as plans, by the patterns of `thalweg bench alltoallv`: *uniform* is 10 % more or less at random, of *powerlaw* a
rank's k-th largest message is 1/k of its largest, *banded* goes to the ranks at most an eighth of all away, *block* stays in one of
four groups that are dealt out like cards, *one_to_many* is one rank's. Where most pairs have no message, a plan is chosen as one
between neighbours is; the limit is that of the busiest host's links.
"""),
             paper_tables.windows(), face_tables.halo(), paper_tables.apps(),
             curves("curves", "To 65,536 ranks", """`slingshot`, 64 ranks per host. Schedules of log-step algorithms and of halo exchanges (six faces of a 3D grid of ranks) stay
small: what a rank needs is in the table. The last columns are what building and replaying all ranks took, once: processor
seconds of one core, beside other work. A point that takes more than ten minutes or 16 GiB is
the cost model's, *slanted*. The cost model knows nothing of halo exchanges. Their time grows where a host's neighbours are no longer on
its own router, an upper bound there ([routing](#what-routing-can-matter)).
"""), squares(), speed(),
             """## Not here

Protocols that change with the load, and adaptive meshes whose blocks move; both ends copying one message; what 112 ranks that
pin memory at once do to each other; first touches of pages; what a program's own skew does; hosts of many ranks against
measurements of our own.
"""]
    return "\n".join(part for part in parts if part)


def main():
    made = {PAGE: page(), ROOT / "docs/pictures/simulation-curves.svg": curve_picture(),
            ROOT / "docs/pictures/simulation-timeline.svg": timeline_picture()}
    for path, text in made.items():
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what sim/results and sim/machines say: run python3 sim/document.py")


if __name__ == "__main__":
    main()
