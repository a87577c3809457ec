"""The sections of docs/simulation.md beside the papers: for each the paper's figure, ours, and why they differ."""
import json

from tables import MIB, ROOT, rows, size, span, table, time


def saved(known, ranks, count, repeat, in_turn, what="seconds"):
    closed, trimmed = (known.get((ranks, count, repeat, in_turn, name)) for name in ("scatter_ring", "scatter_ring_trimmed"))
    return None if closed is None or trimmed is None else 100 * (1 - trimmed[what] / closed[what])


def ring_grid(repeat, in_turn, what="seconds"):
    """What the trimmed ring saves, as a table and as numbers."""
    found = rows("rings")
    known = {(row["ranks"], row["bytes"], row["repeat"], row["in_turn"], row["column"]): row for row in found}
    sizes, counts = sorted({row["bytes"] for row in found}), sorted({row["ranks"] for row in found})
    body = []
    for ranks in counts:
        cells = [saved(known, ranks, count, repeat, in_turn, what) for count in sizes]
        if None not in cells:
            body.append([ranks, *(f"{cell:.1f}" for cell in cells)])
    return table(["ranks", *map(size, sizes)], body), [float(cell) for line in body for cell in line[1:]]


def ring_ranges():
    """Until the last rank is done, eight in a row, and until the root is done."""
    return ring_grid(1, True)[1], ring_grid(8, True)[1], ring_grid(1, True, "root_seconds")[1]


def rings():
    found = rows("rings")
    known = {(row["ranks"], row["bytes"], row["repeat"], row["in_turn"], row["column"]): row for row in found}
    sizes, counts = sorted({row["bytes"] for row in found}), sorted({row["ranks"] for row in found})
    last, last_range = ring_grid(1, True)
    row, row_range = ring_grid(8, True)
    root, root_range = ring_grid(1, True, "root_seconds")
    free, free_range = ring_grid(1, False)
    best = []
    for ranks in counts:
        line = [ranks]
        for count in sizes:
            closed, ours = known[(ranks, count, 1, True, "scatter_ring")], known[(ranks, count, 1, False, "auto")]
            line.append(f"{closed['seconds'] / ours['seconds']:.2f}")
        best.append(line)
    return f"""## The trimmed ring (arXiv 1603.06809)

The paper: 2 % to 54 % less time than MPICH's broadcast on a Cray XC40. Here: `xc40`, 24 ranks per host, block
mapping; percent of the closed ring's time that the trimmed ring saves. Both libraries' rings are blocking exchanges,
one after another, so these are too (`--in-turn`).

Until the last rank is done, {min(last_range):.1f} to {max(last_range):.1f} %:

{last}
Eight broadcasts in a row without a barrier, per broadcast, {min(row_range):.1f} to {max(row_range):.1f} %:

{row}
Until the root is done, {min(root_range):.1f} to {max(root_range):.1f} %:

{root}
Where the paper's clock stood is not known here. Bytes alone cannot explain 54 %: the trimmed ring leaves out 21 % of
the messages among 8 ranks and 1.6 % among 256. What is large is the root's own part: it no longer waits for the ring
to close. A clock at the root, or small broadcasts in a row without a barrier, in which the trimmed ring's root runs
ahead, show the paper's range.

The engine does not wait in turn: it sends a block as soon as it has it. That is what the lab measures, and there the
trimmed ring has a price: a rank that kept many blocks from the scatter hands all of them to its neighbour at once,
before the blocks that its neighbour's neighbours wait for. Saved (negative: lost) until the last rank is done,
{min(free_range):.0f} to {max(free_range):.0f} %:

{free}
The closed ring in turn, as MPICH runs it, over what Thalweg chooses there (times faster; 1.00 or so where the choice
is left to MPICH):

""" + table(["ranks", *map(size, sizes)], best)


def allgather_lines():
    """Rows of the table, and the best gain."""
    found = rows("allgather")
    def family(row):
        return "by hosts" if row["algorithm"].startswith(("hierarchical", "node_leader")) else "flat"
    def ports(row):
        return "several" if "ports=" in row["algorithm"] else "one"
    lines, best_gain = [], 0
    for ranks, rails, count in sorted({(row["ranks"], row["rails"], row["bytes"]) for row in found}):
        here = [row for row in found if (row["ranks"], row["rails"], row["bytes"]) == (ranks, rails, count)
                and row["simulated"]]
        blocking = min((row for row in here if family(row) == "flat" and ports(row) == "one"),
                       key=lambda row: row["seconds"])
        for kind in ("flat", "by hosts"):
            for width in ("one", "several"):
                group = [row for row in here if family(row) == kind and ports(row) == width]
                if not group:
                    continue
                # What is left to see of it beside a computation as long as the operation alone.
                def visible(row):
                    return row["overlap"]["agent_seconds"] - row["mean_seconds"]
                row = min(group, key=lambda row: row["seconds"])
                gain = 100 * (1 - visible(row) / blocking["seconds"])
                best_gain = max(best_gain, gain)
                lines.append([ranks, rails, size(count), kind, width, row["algorithm"], time(row["seconds"]),
                              f"{row['overlap']['caller_percent']:.0f} %", f"{row['overlap']['agent_percent']:.0f} %",
                              f"{gain:.0f} %"])
    return lines, best_gain


def allgather_best():
    return allgather_lines()[1]


def allgather():
    lines, best_gain = allgather_lines()
    return f"""## Nonblocking allgather (CLUSTER 2012)

The paper: offloaded allgathers, flat and by hosts, one port and several; up to 68 % better than blocking ones for
medium messages by hosts. Here: `ib2304`, 8 ranks per host, blocks per rank as given, the quickest algorithm of each
kind. **hidden** is OSU's measure, by the caller alone and with an agent on a core of its own; **gain** is what the
agent takes off the time that one sees, against the quickest blocking flat allgather of one port.

""" + table(["ranks", "rails", "block", "kind", "ports", "quickest", "time", "hidden", "with agent", "gain"], lines) + f"""
Up to {best_gain:.0f} %, where the paper has 68 %: an adapter that runs task lists by itself does less than an agent on a
free core, because the intra-host phases stay with the processor there; and its blocking baseline is not known. Several
ports save rounds where blocks are small; for large blocks they need several rails.
"""


def eight_program():
    """(machine, bytes) -> the columns of the program itself, on eight hosts."""
    points = {}
    for row in rows("eight_cg"):
        points.setdefault((row["machine"], row["bytes"]), {})[row["column"]] = row
    return points


def eight_saved(column="thalweg, agent"):
    """Percent of a native blocking iteration that a column saves."""
    return [100 * (1 - columns[column]["seconds"] / columns["native, blocking"]["seconds"]) for columns in eight_program().values()]


def eight_words():
    """What the program shows on either machine."""
    def of(machine):
        found = [columns for (name, _), columns in eight_program().items() if name == machine]
        shares = [100 * (1 - columns["native, blocking"]["compute_seconds"] / columns["native, blocking"]["seconds"]) for columns in found]
        saved_ = [100 * (1 - columns["thalweg, agent"]["seconds"] / columns["native, blocking"]["seconds"]) for columns in found]
        return span(shares), span(saved_)
    (gbe, gbe_saved), (ib, ib_saved) = of("gbe8"), of("ib2304")
    return f"""On `ib2304` {ib} of a blocking iteration is communication, as the paper's third, and the agent saves {ib_saved}. On
`gbe8` {gbe} is: there is next to no computation to hide it behind, and {gbe_saved} are saved, for the ring that Thalweg
chooses there takes longer than MPICH's exchange: where no table speaks it goes by the model only if something else is cheaper
by a quarter, because a ring stands late ranks better, and no rank is late here. A program's blocking allgathers take turns with
the library's there, and are left to it where that is faster ([123](decisions/0123-the-calls-tell-where-no-table-does.md)). The paper's 32 % need a
program of which a third is communication.

"""


def eight():
    lines = []
    for row in rows("eight"):
        percent = row["overlap"]
        def shorter(hidden):
            return f"{0.32 * hidden:.0f} %"
        lines.append([row["machine"], row["collective"], size(row["bytes"]),
                      row["algorithm"] + (" (auto)" if row["column"] == "auto" else ""), time(row["seconds"]),
                      f"{percent['caller_percent']:.0f} %", f"{percent['agent_percent']:.0f} %",
                      shorter(percent["caller_percent"]), shorter(percent["agent_percent"])])
    program = []
    for (machine, count), columns in eight_program().items():
        base = columns["native, blocking"]
        waits = [columns[kind]["seconds"] - base["compute_seconds"] for kind in
                 ("native, blocking", "native, started", "thalweg, blocking", "thalweg, started", "thalweg, agent")]
        program.append([machine, size(count), time(base["compute_seconds"]), *map(time, waits),
                        f"{100 * waits[0] / base['seconds']:.0f} %", f"{100 * (1 - columns['thalweg, agent']['seconds'] / base['seconds']):.0f} %"])
    return """## Eight hosts, one rank each (PDP 2015)

The paper: CG on 8 hosts 32 % faster than blocking with a thread on the sibling hyper-thread that sleeps by MWAIT, and
nearly all communication hidden. So a third of its blocking run was communication. Here the program itself (`thalweg sim
app cg --ranks 8 --per-host 1`): a rank's part of the vector has the given bytes; what an iteration takes beside its
computation; **waits** is the communication's share of a native blocking iteration, and **saved** what the agent takes off
that iteration.

""" + table(["machine", "bytes", "computes", "native, blocking", "started", "Thalweg, blocking", "started", "agent", "waits", "saved"],
            program) + """
""" + eight_words() + """The operations alone, beside computation that takes as long as they do. The last columns say by how much a program would get
shorter a third of which were that operation and nothing else: 32 % times what hides.

""" + table(["machine", "operation", "bytes", "algorithm", "time", "hidden", "with agent", "program", "with agent"],
            lines) + """
The agent's core is its own here. What a sibling hyper-thread takes from the computation is not simulated.
"""


def gains(name, title, text):
    found = rows(name)
    if not found:
        return ""
    points = {}
    for row in found:
        key = (row.get("pattern") or row["collective"], row["machine"], row["mapping"], row["ranks"], row["hosts"], row["bytes"])
        points.setdefault(key, {})[row["column"]] = row
    lines = []
    for (collective, machine, mapping, ranks, hosts, count), columns in points.items():
        ours = columns["auto"]
        cells = [collective, machine, mapping, ranks, hosts, size(count), time(ours["seconds"])]
        for native in ("mpich", "openmpi"):
            row = columns.get(native)
            cells.append(f"{row['seconds'] / ours['seconds']:.2f}" if row and row["seconds"] > 0 else "-")
        cells += [f"{ours['seconds'] / ours['limit_seconds']:.2f}",
                  ours["algorithm"] + (" (MPICH's)" if ours["reason"].startswith("left to") else "")]
        lines.append(cells)
    what = "pattern" if any("pattern" in row for row in found) else "operation"
    return f"## {title}\n\n{text}\n" + table([what, "machine", "mapping", "ranks", "hosts", "bytes", "Thalweg",
                                              "MPICH / it", "Open MPI / it", "it / limit", "choice"], lines)


def window_parts(row):
    """Per plan; and what a call pays on top: agreements, pinning of all processes at once, and one after another."""
    parallel = row["registered_seconds"]
    return row["per_plan_seconds"], row["agreed_seconds"], parallel, parallel * -(-row["ranks"] // row["hosts"])


def window_saved(row):
    plan, agreed, parallel, in_turn = window_parts(row)
    return [100 * (1 - plan / (plan + agreed + pinned)) for pinned in (parallel, in_turn)]


def windows_measured():
    """(mpi, shape, bytes) -> minimum seconds with a window per call, with one that is kept, and the native operation, from
    the lab."""
    return {(row["mpi"], row["shape"], row["bytes"]): row for row in rows("kept")}


def measured_saved():
    return {key: 100 * (1 - point["kept_seconds"] / point["per_call_seconds"]) for key, point in windows_measured().items()}


def lab_saved(mpi):
    """Percent that a kept window saved there, large messages."""
    return [saved_ for (name, _, count), saved_ in measured_saved().items() if name == mpi and count >= 64 << 10]


def ours_by_puts():
    """(ranks, bytes) -> seconds of our plan over puts, where it was replayed."""
    return {(row["ranks"], row["bytes"]): row["seconds"] for row in rows("puts") if row["simulated"]}


def about_puts():
    """What the column of our plan says, or nothing where nobody has simulated it."""
    plans = {(row["ranks"], row["bytes"]): row["per_plan_seconds"] for row in rows("windows")}
    both = [100 * (1 - seconds / plans[key]) for key, seconds in ours_by_puts().items() if key in plans]
    if not both:
        return ""
    return f"""
**Our plan** (`notify`, `--libucp`) is replayed as a whole, not summed: a receiver says that its memory is ready, the sender's
adapter puts into it (inside a host its core does), hears when it is there, and tells the receiver. There are no fences, and
no two ranks wait for each other that exchange nothing; but every pair has two messages of no bytes. Against the sum per plan it
takes {span(both)} less.
"""


def about_largest():
    """What the largest runs of windows cost, and which sizes they therefore have."""
    sizes = {}
    for row in rows("windows"):
        sizes.setdefault(row["ranks"], []).append(row["bytes"])
    ranks, most = max(sizes), max(map(len, sizes.values()))
    messages = 2 * ranks * (ranks - 1) / 1e6
    only = "" if len(sizes[ranks]) == most else f""". It was asked for {" and ".join(map(size, sizes[ranks]))} only"""
    return f"""
**Beyond the paper's 448:** a row replays two exchanges of all pairs, the messages and the native alltoallv. At {ranks:,} ranks
these are {messages:.1f} million messages{only}. What one among 448 ranks takes stands [below](#what-simulating-takes).
"""


def windows():
    lines, puts = [], ours_by_puts()
    for row in sorted(rows("windows"), key=lambda row: (row["ranks"], row["bytes"])):
        plan, agreed, parallel, in_turn = window_parts(row)
        lines.append([row["ranks"], row["hosts"], size(row["bytes"]), time(row["messages_seconds"]),
                      time(row["synchronised_seconds"]), time(agreed), time(parallel), time(in_turn), time(plan),
                      f"{time(plan + agreed + parallel)} to {time(plan + agreed + in_turn)}",
                      span(window_saved(row), digits=1), time(row["alltoallv_seconds"]),
                      *([time(puts[row["ranks"], row["bytes"]]) if (row["ranks"], row["bytes"]) in puts else "-"] if puts else [])])
    papers = next(row for row in rows("windows") if (row["ranks"], row["bytes"]) == (448, 512 << 10))
    plan, agreed, parallel, in_turn = window_parts(papers)
    received, extra = papers["ranks"] * papers["bytes"], 2.49 - 1.54
    kept = [100 * (1 - point["kept_seconds"] / point["native_seconds"]) for point in windows_measured().values()]
    lab = [[mpi, shape, size(count), time(point["per_call_seconds"]), time(point["kept_seconds"]), time(point["native_seconds"]),
            f"{measured_saved()[mpi, shape, count]:.0f} %"] for (mpi, shape, count), point in windows_measured().items()]
    return f"""## Windows per call and per plan (arXiv 2604.05099)

What the paper saves is set-up: in every call its baseline exchanges the displacements, makes a window over the receive
buffer and frees it. On `dane`, 112 ranks per host, `thalweg sim alltoallv --rma`: **agreed** are displacements, sizes,
addresses and keys of all ranks; **fences** are three barriers, which both have; **pinned** is making the receive buffer
known to the adapter and letting it go, at a published rate of one process: with all processes of a host at once, as if
they did not hinder each other, and one after another, as if the kernel served one at a time. **Per plan and per call are sums**:
messages, fences and agreements are each simulated by themselves and pinning is bytes times a rate, one part after the other
as if none could overlap, so that a real call is no longer than its sum, all else equal. **saved** is from the one kind of
pinning to the other.

""" + table(["ranks", "hosts", "bytes", "messages", "fences", "agreed", "pinned, at once", "in turn", "sum per plan", "sum per call",
             "saved", "native alltoallv", *(["our plan"] if puts else [])], lines) + about_largest() + about_puts() + f"""
**The paper:** 2.49 s with a window per call, 1.54 s with one per plan, 38 % at 448 processes. **Ours** at {size(papers["bytes"])}
per pair, where the messages alone take the paper's time ({time(plan)} per plan): {span(window_saved(papers), digits=1)}.
**The arithmetic:** {extra:.2f} s per call have to go into set-up. Agreements are {time(agreed)}. Pinning and releasing {received / MIB:.0f}
MiB takes {time(parallel)} for a process alone and {time(in_turn)} for the {-(-papers["ranks"] // papers["hosts"])} of a host in turn; {extra - agreed:.2f} s is what it would
take if the kernel served {in_turn / (extra - agreed):.1f} processes of a host at a time. Page by page that is {1e9 * (extra - agreed) / 2 / (received / 4096) / (-(-papers["ranks"] // papers["hosts"])):.0f} ns of a common lock for each of the
host's {received / 4096 * -(-papers["ranks"] // papers["hosts"]) / 1e6:.1f} million pages, pinned and released. So the paper's figure lies inside what one unknown of their
machine allows, how many processes can pin at once, and that unknown cannot be taken from public sources; its message
size is not known either.

**Pays at once:** a plan's set-up is what a call of the baseline pays every time, so that the break-even count is 1.0 at
every size here; the paper has it from 32 KiB on. **Small messages** save more, because the exchange of displacements
does not shrink with them.

**Measured**, which the model cannot know: the same baseline on the lab, window per call against window kept, and the
library's own alltoallv (`bench/results`; minimum of the samples):

""" + table(["MPI", "hosts x ranks", "bytes", "per call", "kept", "native", "saved"], lab) + f"""
Under Open MPI a window that is made in every call costs a time that grows with the bytes, though nothing is pinned
over TCP: {span(lab_saved("openmpi"))} from 64 KiB on, the size of the paper's figure; under MPICH it is {span(lab_saved("mpich"))}, under Intel MPI
{span(lab_saved("impi"))}. A defect of the library that made the windows explains such a figure as well as pinning does. Against the
library's own alltoallv a kept window is slower at {sum(one < 0 for one in kept)} of {len(kept)} points, and at best {max(kept):.1f} % quicker.
"""


def apps():
    kinds = ("native, blocking", "native, started", "thalweg, blocking", "thalweg, started", "thalweg, agent")
    points, lines, fewer, saved = {}, [], {}, {}
    for row in rows("apps"):
        points.setdefault((row["app"], row["machine"], row["ranks"], row["bytes"], row["family"]), {})[row["column"]] = row
    for (app, machine, ranks, count, family), columns in points.items():
        if family != "mpich":
            continue
        base, agent = columns[kinds[0]], columns[kinds[-1]]
        waits = [columns[kind]["seconds"] - base["compute_seconds"] for kind in kinds]
        gain = 100 * (1 - agent["seconds"] / base["seconds"])
        if ranks > 1000:
            fewer.setdefault(app, []).append(100 * (1 - waits[-1] / waits[0]))
            saved.setdefault(app, []).append(gain)
        lines.append([app, machine, ranks, size(count), time(base["compute_seconds"]), *map(time, waits), f"{gain:.0f} %"])
    def percent(values):
        return span([abs(value) for value in values]) if max(values) >= 0.5 else "nothing"
    return f"""## Programs

`thalweg sim app`: what the papers' applications compute and communicate per iteration (`sim/apps.h`), without their
arithmetic. Computation takes the bytes that it sweeps at the rank's share of its host's memory (`--sweep` gives another
rate). The columns are what an iteration takes beside its computation. **native** are MPICH's defaults, **blocking**
waited for where they start; **started**: the program computes meanwhile, and the operation goes on only inside calls;
**agent**: a thread on a core of its own advances it. **saved**: of a native blocking iteration, by the agent.

""" + table(["program", "machine", "ranks", "bytes", "computes", "native, blocking", "started", "Thalweg, blocking",
             "started", "agent", "saved"], lines) + f"""
What is large asks before it is sent, and the answer is the receiver's: a caller that computes gives none, so that
starting early hides little without an agent.

The paper of CLUSTER 2025 has up to 48 % for a 3D stencil's communication and 28 % for MiniAMR at 2304 processes. Against
MPICH the agent takes {percent(fewer["stencil"])} off the stencil's waiting, {percent(saved["stencil"])} off its iterations, by letting it
compute meanwhile: that is not what a benchmark of communication alone shows, which stands above. Of the AMR exchange it
saves {percent(saved["amr"])}. Against a library that looks at its host first (`--mpi mvapich`), communication of blocking
iterations, 2304 ranks:

""" + table(["program", "rails", "bytes", "computes", "native waits", "Thalweg waits", "saved of waiting", "saved of an iteration"],
            host_first()) + f"""
**Why not 28 %:** each of the AMR exchange's three stages is waited for before the next begins, and with block mapping one
of them is on the network alone and another inside hosts alone, so that only the third has both to overlap. What refined
blocks change, one rank with four times its neighbour's bytes, makes that rank the last, whoever copies first. The paper
may save by letting both ends copy, which this page's schedules do not, and its 28 % may be of a run whose computation,
imbalance and message sizes are not known here.
"""


def amr_saved():
    """Of the AMR exchange's blocking waiting, against both kinds of library."""
    found = {}
    for row in rows("apps"):
        if row["app"] == "amr" and row["ranks"] == 2304:
            found.setdefault((row["family"], row.get("rails", 1), row["bytes"]), {})[row["column"]] = row
    def waits(columns, column):
        return columns[column]["seconds"] - columns[column]["compute_seconds"]
    return " or ".join(span([100 * (1 - waits(columns, "thalweg, blocking") / waits(columns, "native, blocking"))
                             for (family, *_), columns in found.items() if family == wanted]) for wanted in ("mpich", "mvapich"))


def host_first():
    """Programs at 2304 ranks against natives that look at their hosts first, rows of a table."""
    points, lines = {}, []
    for row in rows("apps"):
        if row["family"] == "mvapich" and row["ranks"] == 2304:
            points.setdefault((row["app"], row.get("rails", 1), row["bytes"]), {})[row["column"]] = row
    for (app, rails, count), columns in points.items():
        base, ours = columns["native, blocking"], columns["thalweg, blocking"]
        waits = [row["seconds"] - row["compute_seconds"] for row in (base, ours)]
        lines.append([app, rails, size(count), time(base["compute_seconds"]), *map(time, waits),
                      f"{100 * (1 - waits[1] / waits[0]):.0f} %", f"{100 * (1 - ours['seconds'] / base['seconds']):.0f} %"])
    return lines
