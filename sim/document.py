"""Writes docs/simulation.md from sim/results/*.jsonl, sim/machines/*.json and the native models' sources.

    sim/document.py [--check]      --check: only say whether the page is what the results say (exit status 1: not)
"""
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/simulation.md"
MIB = 1 << 20


def rows(name):
    path = ROOT / f"sim/results/{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def size(count):
    for unit, step in (("MiB", MIB), ("KiB", 1024)):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def time(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def table(head, body):
    body = [[str(cell) for cell in line] for line in body]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    def drawn(line):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
    return "\n".join([drawn(head), "| " + " | ".join("-" * width for width in widths) + " |", *map(drawn, body)]) + "\n"


def machines():
    lines = []
    for path in sorted((ROOT / "sim/machines").glob("*.json")):
        machine = json.loads(path.read_text(encoding="utf-8"))
        numbers = [value for value in machine.values() if isinstance(value, dict)]
        assumed = sum(value["from"].startswith(("assumed", "remembered")) for value in numbers)
        def number(field, machine=machine):
            return f"{machine[field]['is']:g}"
        lines.append([machine["name"], machine["text"], machine["fabric"].replace("_", " "), number("cores_per_host"),
                      number("link_GBps"), number("inter_latency_us"), number("copy_GBps"), number("host_copy_GBps"),
                      f"{assumed} of {len(numbers)}"])
    return f"""## Machines

`sim/machines/NAME.json` holds every number with its source; `--machine FILE.json` reads another. Sources that begin
with *assumed* are guesses of the right size, those with *remembered* are published figures that were not looked up
again; how many, the last column says. Rates in GB/s: of a link in one
direction, of one core that copies, of all cores of a host together.

""" + table(["name", "what", "fabric", "cores", "link", "latency (us)", "copy", "host copies", "not looked up"], lines)


# --- against the lab -----------------------------------------------------------------------------------------

def error(row):
    return row["simulated_seconds"] / row["measured_seconds"] - 1


def summary(points):
    errors = [abs(error(row)) for row in points]
    near = sum(one <= 0.2 for one in errors) / len(errors)
    return [len(points), f"{100 * statistics.median(errors):.1f} %", f"{100 * near:.0f} %", f"{100 * max(errors):.0f} %",
            f"{100 * statistics.median(map(error, points)):+.1f} %"]


def verdict(points, median, share):
    errors = [abs(error(row)) for row in points]
    met = statistics.median(errors) <= median and sum(one <= 0.2 for one in errors) >= share * len(errors)
    return "met" if met else "**missed**"


def lab():
    points = rows("lab")
    enough = [row for row in points if row["samples"] >= 15]
    large = [row for row in enough if row["bytes"] >= MIB]
    small = [row for row in enough if row["bytes"] < MIB]
    few = [row for row in points if 3 <= row["samples"] < 15]
    head = ["points", "number", "median error", "within 20 %", "worst", "bias"]
    text = f"""## Against the lab

Every column of `bench/results` that is a schedule of ours, on several hosts with one link each, is simulated on the
machine `lab-100` or `lab-50` at the link rate that was measured when that lab came up (`sim/validate.py`). The error
is that of the simulation against the minimum of the samples. Of the machine's numbers one is fitted to such
measurements, the rate at which the kernel passes a message on (`kernel_GBps`, from chains of one 64 KiB message); the
others are the lab's own, or guesses that were made before anything was compared.

Targets, for points of at least 15 samples: from 1 MiB a median error of at most 10 % and 95 % of the points within
20 %: {verdict(large, 0.10, 0.95)}. Below 1 MiB, 20 % for every point: {verdict(small, 0.20, 1.0)} (farther off:
{sum(abs(error(row)) > 0.2 for row in small)} of {len(small)} points).

"""
    text += table(head, [["15 samples or more, from 1 MiB", *summary(large)],
                         ["15 samples or more, below 1 MiB", *summary(small)],
                         ["3 to 14 samples, from 1 MiB", *summary([r for r in few if r["bytes"] >= MIB])],
                         ["3 to 14 samples, below 1 MiB", *summary([r for r in few if r["bytes"] < MIB])]])
    text += """
By operation, shape and size, points of at least 3 samples; the last columns name the point that is farthest off. What
the simulation does not know shows there: TCP's own unfairness between connections, the order in which a socket's
buffers empty, and Open MPI's rendezvous, which asks for every large piece by itself. Hosts of many ranks are *not*
checked: the lab has at most three ranks on a host.

"""
    groups = {}
    for row in points:
        if row["samples"] >= 3:
            groups.setdefault((row["collective"], row["shape"], row["bytes"]), []).append(row)
    lines = []
    for (collective, shape, count), group in sorted(groups.items()):
        worst = max(group, key=lambda row: abs(error(row)))
        lines.append([collective, shape, size(count), *summary(group)[:3], f"{100 * error(worst):+.0f} %",
                      f"{worst['algorithm']} on {worst['mpi']}, {time(worst['measured_seconds'])}"])
    return text + table(["operation", "hosts x ranks", "bytes", "points", "median error", "within 20 %", "worst", "which"],
                        lines)


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


# --- the papers ----------------------------------------------------------------------------------------------

def saved(known, ranks, count, repeat, in_turn, what="seconds"):
    closed, trimmed = (known.get((ranks, count, repeat, in_turn, name)) for name in ("scatter_ring", "scatter_ring_trimmed"))
    return None if closed is None or trimmed is None else 100 * (1 - trimmed[what] / closed[what])


def rings():
    found = rows("rings")
    known = {(row["ranks"], row["bytes"], row["repeat"], row["in_turn"], row["column"]): row for row in found}
    sizes, counts = sorted({row["bytes"] for row in found}), sorted({row["ranks"] for row in found})
    def grid(repeat, in_turn, what="seconds"):
        body = []
        for ranks in counts:
            cells = [saved(known, ranks, count, repeat, in_turn, what) for count in sizes]
            if None not in cells:
                body.append([ranks, *(f"{cell:.1f}" for cell in cells)])
        return table(["ranks", *map(size, sizes)], body), [float(cell) for line in body for cell in line[1:]]
    last, last_range = grid(1, True)
    row, row_range = grid(8, True)
    root, root_range = grid(1, True, "root_seconds")
    free, free_range = grid(1, False)
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


def allgather():
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
    return """## Eight hosts, one rank each (PDP 2015)

The paper: CG on 8 hosts 32 % faster than blocking with a thread on the sibling hyper-thread that sleeps by MWAIT, and
nearly all communication hidden. So a third of its blocking run was communication. The last columns say by how much
such a program would get shorter if all of its communication were the operation of that line: 32 % times what hides.

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
        key = (row["collective"], row["machine"], row["mapping"], row["ranks"], row["hosts"], row["bytes"])
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
    return f"## {title}\n\n{text}\n" + table(["operation", "machine", "mapping", "ranks", "hosts", "bytes", "Thalweg",
                                              "MPICH / it", "Open MPI / it", "it / limit", "choice"], lines)


def halo():
    found = rows("halo")
    points, lines = {}, []
    for row in found:
        points.setdefault((row["machine"], row["ranks"], row["rails"], row["bytes"]), {})[row["column"]] = row
    saved = []
    for (machine, ranks, rails, count), columns in points.items():
        ours, native = columns["auto"], columns.get("mpich")
        cost, gain = ours["cost"], "-"
        if native:
            saved.append(100 * (1 - ours["seconds"] / native["seconds"]))
            gain = f"{saved[-1]:.1f} %"
        lines.append([machine, ranks, ours["hosts"], rails, size(count), time(ours["seconds"]),
                      time(native["seconds"]) if native else "-", gain, f"{ours['seconds'] / ours['limit_seconds']:.2f}",
                      f"{cost['schedule_bytes'] / ranks:.0f} B", f"{cost['build_seconds'] / ranks * 1e6:.1f} us",
                      f"{cost['replay_seconds']:.1f} s", f"{cost['peak_bytes'] / MIB:.0f} MiB"])
    return f"""## Halo exchange (CLUSTER 2025)

The paper: up to 48 % over state-of-the-art libraries in a 3D stencil's communication at 2304 processes, by choosing how
messages inside a host move while others are on the network. Here: all six faces of a 3D grid of ranks at once, block
mapping. Thalweg's schedule (`spread`) and the natives' (`spread:in_flight=0`: post everything, wait) hold the same
messages; Thalweg posts those to other hosts first, and answers what peers wait for before it copies, where a library
copies a message of its own host whole as soon as it is matched.

""" + table(["machine", "ranks", "hosts", "rails", "bytes", "Thalweg", "native", "saved", "it / limit", "memory, a rank",
             "built, a rank", "replayed in", "peak"], lines) + f"""
That order saves {min(saved):.1f} to {max(saved):.1f} %, not 48 %. With one link for 48 ranks the network takes most of the time
and hides the copies in either order; with four rails, copies and network are nearer to each other. What the paper changes
beyond the order is who copies, and in which parts; the simulated copies are all made by the receiver, and a copy here
costs neither a system call nor the lock of the other process's memory, so a blocking copy holds little up. Which
message sizes, hosts and baselines the 48 % belong to is not known here.

Where tens of thousands of messages cross hosts, ends of transfers that are nearly simultaneous are made so
(`sim/network.cpp`), because every end changes the shares of all flows that it touches. The last columns are what one run
took, once: processor seconds of one core.
"""


def windows():
    lines = []
    for row in rows("windows"):
        parts = [row[f"{part}_seconds"] for part in ("messages", "synchronised", "agreed", "registered")]
        lines.append([row["ranks"], row["hosts"], size(row["bytes"]), *map(time, parts), time(row["per_call_seconds"]),
                      time(row["per_plan_seconds"]), f"{100 * (1 - row['per_plan_seconds'] / row['per_call_seconds']):.1f} %",
                      time(row["alltoallv_seconds"])])
    largest = max(rows("windows"), key=lambda row: (row["ranks"], row["bytes"]))
    received = largest["ranks"] * largest["bytes"]
    needed = received / (2.49 - 1.54) / 1e9
    return f"""## Windows per call and per plan (arXiv 2604.05099)

What the paper saves is set-up: in every call its baseline exchanges the displacements, makes a window over the receive
buffer and frees it. On `dane`, 112 ranks per host, `thalweg sim alltoallv --rma`: **agreed** are displacements, sizes,
addresses and keys of all ranks; **registered** is pinning the receive buffer and letting it go, at the machine's rate
for one process, as if ranks of a host did not hinder each other; **fences** are three barriers, which both have.

""" + table(["ranks", "hosts", "bytes", "messages", "fences", "agreed", "registered", "per call", "per plan", "saved",
             "native alltoallv"], lines) + f"""
The paper saves 38 % at 448 processes, 0.95 s per call. Messages of {size(largest["bytes"])} per pair take the time that
it gives for the plan, but pinning {received / MIB:.0f} MiB at the published rates does not take 0.95 s: for that a rank
would have to pin and release no more than {needed:.2f} GB/s. Pages that are touched for the first time, or 112 processes
of one host that wait for the kernel's locks, could; neither is in the machine's numbers, and the paper's message size
is not known. Small messages save more, because the exchange of displacements does not shrink with them.
"""


def apps():
    kinds = ("native, blocking", "native, started", "thalweg, blocking", "thalweg, started", "thalweg, agent")
    points, lines, fewer, saved = {}, [], {}, {}
    for row in rows("apps"):
        points.setdefault((row["app"], row["machine"], row["ranks"], row["bytes"]), {})[row["column"]] = row
    for (app, machine, ranks, count), columns in points.items():
        base, agent = columns[kinds[0]], columns[kinds[-1]]
        waits = [columns[kind]["seconds"] - base["compute_seconds"] for kind in kinds]
        gain = 100 * (1 - agent["seconds"] / base["seconds"])
        if ranks > 1000:
            fewer.setdefault(app, []).append(100 * (1 - waits[-1] / waits[0]))
            saved.setdefault(app, []).append(gain)
        lines.append([app, machine, ranks, size(count), time(base["compute_seconds"]), *map(time, waits), f"{gain:.0f} %"])
    def span(values):
        return f"{abs(min(values)):.0f} to {max(values):.0f} %" if max(values) >= 0.5 else "nothing"
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

The paper of CLUSTER 2025 has up to 48 % for a 3D stencil's communication and 28 % for MiniAMR at 2304 processes. Here at
2304 ranks the agent takes {span(fewer["stencil"])} off the stencil's waiting, {span(saved["stencil"])} off its iterations, by
letting it compute meanwhile: that is not what a benchmark of communication alone shows, which stands above. Of the AMR
exchange it saves {span(saved["amr"])}: each of its three stages is waited for before the next begins, and with block mapping
one of them is on the network alone and another inside hosts alone. The paper's 28 % need protocols that this page's
schedules do not change, or a program that is not as strict as this one.
"""


def curves(name, title, text):
    lines = []
    for row in rows(name):
        cost = row.get("cost")
        if row["simulated"]:
            lines.append([row["collective"], row["ranks"], row["hosts"], size(row["bytes"]), row["algorithm"],
                          time(row["seconds"]), f"{row['steps'] / row['ranks']:.1f}",
                          f"{cost['build_seconds'] / row['ranks'] * 1e6:.1f} us",
                          f"{cost['schedule_bytes'] / row['ranks']:.0f} B", f"{cost['replay_seconds']:.1f} s",
                          f"{cost['peak_bytes'] / MIB:.0f} MiB"])
        else:
            lines.append([row["collective"], row["ranks"], row["hosts"], size(row["bytes"]), row["algorithm"],
                          f"{time(row['seconds'])} (cost model: {row['reason']})", *["-"] * 5])
    return f"## {title}\n\n{text}\n" + table(["operation", "ranks", "hosts", "bytes", "algorithm", "time", "steps a rank",
                                              "built, a rank", "memory, a rank", "replayed in", "peak"], lines)


def page():
    parts = ["""# Simulation

Made by `sim/document.py` from `sim/results`; do not edit. `sim/validate.py` and `sim/reproduce.py` simulate anew.

`thalweg sim` replays production's own schedules, the ones that the validator proves and the engine runs, on a machine
that is described. SimGrid shares links and memory among what moves; a rank's core posts, completes, copies and
combines one thing at a time. What is modelled, and what is not, stands in `sim/replay.h`: no noise, no caches, no
window or credits, no full buffers, no adaptive routing. Natives are models too: the algorithm that the library would choose, as a schedule of
ours (`sim/natives.cpp` names the sources), without its own waiting. Times are simulated unless a table says measured.

```sh
thalweg sim bcast --machine dane --ranks 448 --bytes 64K,1M,16M
thalweg sim allgather --machine ib2304 --ranks 96 --bytes 64K --overlap
thalweg sim bcast --machine lab-100 --ranks 4 --per-host 1 --bytes 1M --algorithm chain --trace timeline.json
thalweg sim app stencil --machine ib2304 --ranks 2304 --bytes 64K --repeat 3
thalweg sim alltoallv --machine dane --ranks 448 --bytes 32K --rma
thalweg sim --list-machines
```
""", lab(), smpi(), machines(), rings(), allgather(), eight(),
             gains("defaults", "Thalweg's choice and the natives' defaults", """Simulated time of what Thalweg would choose by its tables and its cost model, and how much longer the natives'
defaults take. **limit** is the line-rate limit plus one latency. Below 1.00 the choice loses; below it by more than a
few percent only sizes that are left to MPICH, whose blocking calls Thalweg does not take (small messages).
"""),
             gains("alltoallv", "Alltoallv (arXiv 2604.05099)", """The paper: persistent fence epochs take 1.54 s instead of 2.49 s (38 %) at 448 processes of LLNL's Dane, and pay at
once from 32 KiB. What it saves, window creation and registration in every call, is set-up that a schedule does not
have and a simulation of messages does not show; here is what the messages themselves take, all pairs alike, 112 ranks
per host. 512 KiB per pair among 448 ranks need 1.6 s at the line rate, which is where the paper's 1.54 s stand.
"""),
             windows(),
             halo(), apps(),
             curves("curves", "To 65,536 ranks", """`slingshot`, 64 ranks per host. Schedules of log-step algorithms stay small: what a rank needs is in the table. The
last columns are what building and replaying all ranks took, once: processor seconds of one core.
"""),
             curves("squares", "Where every rank talks to every rank", """`ib2304`, 48 ranks per host, blocks of 1 KiB. Steps grow with the square of the ranks; a point that takes more than
16 GiB or ten minutes is left to the cost model, and marked.
"""),
             """## Not here

Protocols that change with the load, and adaptive meshes whose blocks move; what 112 ranks that pin memory at once do to
each other; first touches of pages; what a program's own skew does; hosts with many ranks against a measurement.
"""]
    return "\n".join(part for part in parts if part)


def main():
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
        sys.exit("docs/simulation.md is not what sim/results and sim/machines say: run python3 sim/document.py")


if __name__ == "__main__":
    main()
