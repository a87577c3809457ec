"""Draws result rows of `thalweg bench`, one panel per MPI and shape: time over the line-rate limit against size, or
what of a nonblocking collective hides, when planned exchanges pay, or halo exchanges beside their limits."""
import argparse
import collections
import json
import math
import pathlib
import statistics
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("thalweg bench: plots need Python's matplotlib (Debian: python3-matplotlib)")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)
from matplotlib import ticker  # noqa: E402

MPIS = {"mpich": "MPICH", "openmpi": "Open MPI", "impi": "Intel MPI", "mpich-debian": "MPICH (Debian)",
        "openmpi-debian": "Open MPI (Debian)"}
# Apart in hue and in brightness, so that they stay so in grey and for most who do not see all colours.
RED, BLUE, ORANGE, GREEN, PURPLE, BROWN, BLACK = (
    "#c1121f", "#0353a4", "#f48c06", "#2a9d8f", "#7b2cbf", "#7f5539", "#000000")
# With the marks, so that no two of as many columns look alike.
COLUMNS = [(color, mark) for mark in "osv^" for color in (BLUE, ORANGE, GREEN, PURPLE, BROWN, RED)]


def rows_of(paths):
    """Rows that have samples: a column that was left out of a race has none."""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in filter(str.strip, file):
                try:
                    row = json.loads(line)
                except ValueError:
                    if line.endswith("\n"):
                        raise
                    continue  # the bench, which said so, was killed in the middle of it
                if row["seconds"]:
                    yield row


def panel_of(row):
    context = row["context"]
    rate, rails = context.get("rate", ""), context.get("rails", 1)
    return row["collective"], context["mpi_name"], context["shape"], f"{rails} x {rate}" if rate and rails > 1 else rate


def is_beside_another(row):
    """Whether what runs by itself, or the reference, took turns with a column that has a launch and settings of its
    own: it is what that column is compared with, and nothing to draw."""
    return row["column"] in ("thalweg", "sockets") and row["context"].get("environment", "") != ""


def title_of(mpi, shape, rate):
    """"MPICH, 4 hosts x 2 ranks, 100 Mbit/s"."""
    hosts, ranks = shape.split("x")
    where = f"{hosts} hosts x {ranks} rank{'' if ranks == '1' else 's'}" if hosts != "1" else f"one host, {ranks} ranks"
    for unit in ("kbit", "mbit", "gbit"):
        if rate.endswith(unit):
            rate = f"{rate[:-4]} {unit.capitalize()}/s" if unit != "kbit" else f"{rate[:-4]} kbit/s"
    return ", ".join(filter(None, (MPIS.get(mpi, mpi), where, rate)))


def setting(row, name):
    return float(row["context"].get("settings", {}).get(name, 0))


def wire_limit(row, crossing, hops=1):
    """Seconds that the busiest link needs for so many bytes, as docs/guide/measuring.md says; None without a lab."""
    rate = setting(row, "THALWEG_LAB_RATE_BYTES_PER_S")
    if rate <= 0 or row["context"].get("hosts", 1) < 2:
        return None
    rails = row["context"].get("rails", 1)  # each of that rate, with a bucket of its own
    beyond = max(0.0, crossing / rails - setting(row, "THALWEG_LAB_BURST_BYTES"))
    return beyond / rate + hops * setting(row, "THALWEG_LAB_LATENCY_S")


def blocking_limit(row):
    """wire_limit() of a blocking collective."""
    hosts, ranks = row["context"].get("hosts", 1), row["context"].get("ranks", 1)
    crossing = {"allgather": ranks - ranks / hosts, "allreduce": 2 * (hosts - 1) / hosts}.get(row["collective"], 1)
    return wire_limit(row, crossing * row["bytes"], 2 if row["collective"] == "allreduce" else 1)


def read(paths):
    """Median seconds and the limit, by panel, column and bytes."""
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows_of(paths):
        # Short calls, waiters and applications are told by tables, the others have pictures of their own.
        if row["phase"] not in ("screen", "decide", "rings") or is_beside_another(row):
            continue
        # Pairs of the decision replace the first look at the same point.
        decided = row["phase"] == "decide"
        points = panels[panel_of(row)][row["column"]]
        before = points.get(row["bytes"])
        if before is None or decided >= before[0]:
            points[row["bytes"]] = (decided, statistics.median(row["seconds"]), blocking_limit(row))
    return panels


def read_overlap(paths):
    """Percent of the pure time that hides (OSU), by panel, column and bytes."""
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows_of(paths):
        # Of blocking algorithms only the pure time was taken.
        if row["phase"] != "overlap" or not row["overlap"]["total"] or is_beside_another(row):
            continue
        seen = {name: statistics.median(row["overlap"][name]) for name in ("pure_mean", "total", "computed")}
        hidden = 100 * (1 - (seen["total"] - seen["computed"]) / seen["pure_mean"])
        panels[panel_of(row)][row["column"]][row["bytes"]] = min(100, max(0, hidden))
    return panels


def newest(paths, phase, place):
    """Rows of a phase, of the newest launch: by panel, column and point, as place(row) names the outer two."""
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows_of(paths):
        if row["phase"] != phase:
            continue
        panel, point = place(row)
        before = panels[panel][row["column"]].get(point)
        if before is None or row["launch"] >= before["launch"]:
            panels[panel][row["column"]][point] = row
    return panels


def read_exchange(paths):
    """Rows of planned exchanges, by panel, column and bytes."""
    return newest(paths, "exchange", lambda row: ((*panel_of(row)[1:], row["exchange"]["pattern"]), row["bytes"]))


def read_halo(paths):
    """Rows of halo exchanges, by panel, column and point (what the grid and its cells are)."""
    def place(row):
        halo = row["halo"]
        # The same cells lie on several grids of ranks.
        point = ("x".join(map(str, halo["grid"])) + ": " + "x".join(map(str, halo["cells"])) + (", corners" if halo["corners"] else "") +
                 (", round" if halo["periodic"] else "") + (", upwind" if halo.get("upwind") else ""))
        return panel_of(row)[1:], point
    return newest(paths, "halo", place)


def bytes_text(size, _position=None):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def seconds_text(seconds, _position=None):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit * 0.999:
            return f"{seconds / unit:g} {name}"
    return f"{seconds * 1e9:g} ns"


def size_axis(axis, sizes):
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(sizes))
    axis.xaxis.set_major_formatter(ticker.FuncFormatter(bytes_text))
    axis.xaxis.set_minor_locator(ticker.NullLocator())
    axis.tick_params(axis="x", labelrotation=30 if len(sizes) > 4 else 0, labelsize=8)


def log_axis(axis, text):
    """Plain numbers in place of powers of ten, and no more of them than can be read."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    decades = math.log10(high / low)
    subs = (1, 1.2, 1.5, 2, 3, 5, 7) if decades < 1 else (1, 2, 5) if decades < 2.5 else (1,)
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=20))
    axis.yaxis.set_minor_locator(ticker.NullLocator())
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(text))


def plain(value, _position=None):
    return f"{value:.3g}"


def grid_of(panels):
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    return plt.subplots(rows, columns, figsize=(max(7.5, 5.2 * columns), 3.7 * rows + 0.9), squeeze=False)


def save(figure, axes, used, title, out):
    """One legend for all panels, below them, where it hides nothing."""
    axes = list(axes.flat) if hasattr(axes, "flat") else list(axes)
    for axis in axes[used:]:
        axis.set_visible(False)
    entries = {}
    for axis in axes[:used]:
        axis.grid(True, alpha=0.25)
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    wide, high = figure.get_size_inches()
    in_a_row = max(1, min(len(entries), int(wide / 2.4)))
    rows = -(-len(entries) // in_a_row)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncol=in_a_row, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, (0.18 * rows + 0.1) / high, 1, 1 - 0.35 / high))
    figure.suptitle(title, fontsize=12, y=1 - 0.1 / high, va="top")
    try:
        figure.savefig(out, dpi=110)
    except OSError as error:
        sys.exit(f"thalweg bench: {out} cannot be written: {error.strerror}")


NAMES = {"bcast": "Broadcast", "allgather": "Allgather", "allreduce": "Allreduce"}


def style(column):
    """How a column is drawn: two by their names, all others as one of many."""
    known = {"thalweg": {"label": "thalweg", "color": BLUE, "linewidth": 2.5, "marker": "o", "zorder": 5},
             "native": {"label": "native default", "color": RED, "linewidth": 2.5, "marker": "s", "zorder": 4}}
    if column in known:
        return known[column]
    native = column.startswith("native")
    return {"color": RED if native else BLUE, "alpha": 0.45, "linewidth": 1, "linestyle": "-" if native else "--",
            "label": "native, an algorithm asked for" if native else "thalweg, an algorithm asked for"}


def draw(panels, out):
    kinds = sorted({NAMES.get(key[0], key[0]) for key in panels})
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        limited = any(limit for points in panel.values() for _, _, limit in points.values())
        for column, points in sorted(panel.items()):
            sizes = [size for size in sorted(points) if points[size][2] or not limited]
            axis.plot(sizes, [points[size][1] / (points[size][2] if limited else 1) for size in sizes],
                      **style(column))
        if limited:
            axis.axhline(1.0, color=BLACK, linewidth=1.2, linestyle=":", label="line-rate limit")
            axis.set_ylim(bottom=0.9)
        axis.set_ylabel("time / limit" if limited else "time of a call")
        log_axis(axis, plain if limited else seconds_text)
        size_axis(axis, {size for points in panel.values() for size in points})
        axis.set_xlabel("size")
        axis.set_title(("" if len(kinds) == 1 else f"{NAMES.get(key[0], key[0])}, ") + title_of(*key[1:]), fontsize=10)
    save(figure, axes, len(panels), f"{', '.join(kinds)}: thick lines are what runs when nothing is asked for", out)


def draw_overlap(panels, out):
    named = {"sockets": {"color": GREEN, "linestyle": ":", "linewidth": 2},
             "native MPI_Test": {"color": ORANGE, "linestyle": "--", "marker": "^"},
             "native asynchronous": {"color": PURPLE, "linestyle": "-.", "marker": "v"}}
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        for column, points in sorted(panel.items()):
            line = {"label": column, **named[column]} if column in named else style(column)
            axis.plot(sorted(points), [points[size] for size in sorted(points)], **line)
        axis.set_ylim(-3, 103)
        axis.set_ylabel("hidden (OSU), %")
        size_axis(axis, {size for points in panel.values() for size in points})
        axis.set_xlabel("size")
        axis.set_title(f"MPI_{key[0].capitalize()}, {title_of(*key[1:])}", fontsize=10)
    save(figure, axes, len(panels), "What of a nonblocking collective hides behind computation", out)


def calls_to_pay(plan, once):
    """N*, or None where the plan never pays."""
    exchange = plan["exchange"]
    cost = statistics.median(a + b for a, b in zip(exchange["init_seconds"], exchange["free_seconds"]))
    gain = statistics.median(once["seconds"]) - statistics.median(plan["seconds"])
    return cost / gain if gain > 0 else None


def draw_payback(axis, panel):
    """After how many calls plans have paid against a window made in every call."""
    once = panel.get("window per call", {})
    for column, (color, mark) in zip(sorted(panel), COLUMNS):
        sizes = [size for size in sorted(panel[column])
                 if size in once and panel[column][size]["exchange"]["init_seconds"]]
        if not sizes:
            continue
        paid = [calls_to_pay(panel[column][size], once[size]) for size in sizes]
        bold = column in ("rma_fence", "thalweg init")
        axis.plot(sizes, [value if value is not None else math.nan for value in paid], label=column, color=color,
                  marker=mark, markersize=6 if bold else 4, linewidth=2.2 if bold else 1,
                  linestyle="-" if column.startswith("thalweg") else "--")
    axis.axhline(1.1, color=BLACK, linewidth=1.2, linestyle=":", label="pays at once (1.1)")
    log_axis(axis, plain)
    axis.set_ylabel("N*, calls (gaps: never)")


def draw_savings(axis, panel):
    """What of its time a plan over fences saves, beside the most that planning can save."""
    once = panel.get("window per call", {})
    median = {name: {size: statistics.median(row["seconds"]) for size, row in panel.get(name, {}).items()}
              for name in ("window per call", "window kept", "rma_fence", "rma_fence_barrier")}

    def saved(name):
        sizes = [size for size in sorted(median[name]) if size in once]
        return sizes, [100 - 100 * median[name][size] / median["window per call"][size] for size in sizes]

    for plan, color in (("rma_fence", BLUE), ("rma_fence_barrier", ORANGE)):
        axis.plot(*saved(plan), label=f"saved by {plan}", color=color, marker="o")
    axis.plot(sorted(once), [100 * statistics.median(once[size]["exchange"]["set_up_seconds"]) /
                             median["window per call"][size] for size in sorted(once)],
              label="ceiling: set-up timed in a call", color=BLACK, linestyle="--")
    axis.plot(*saved("window kept"), label="ceiling: what a kept window saves", color=GREEN, linestyle="--")
    axis.axhline(44, color=RED, linewidth=1.2, linestyle=":", label="the paper's largest (another machine)")
    axis.set_ylim(-5, 105)
    axis.set_ylabel("% of a call with its own window")


def draw_exchange(panels, out):
    """Above when plans pay, below what they save."""
    figure, axes = plt.subplots(2, len(panels), figsize=(max(7.5, 5.2 * len(panels)), 9), squeeze=False)
    for (above, below), (key, panel) in zip(axes.T, sorted(panels.items())):
        draw_payback(above, panel)
        draw_savings(below, panel)
        for axis in (above, below):
            size_axis(axis, {size for points in panel.values() for size in points})
            axis.set_xlabel("bytes of a pair")
            axis.set_title(f"{title_of(*key[:3])}, {key[3]}", fontsize=10)
    save(figure, axes, 2 * len(panels), "Planned alltoallv against a window made in every call", out)


def halo_limits(row):
    """Seconds that the wire, the copies and the cores need at least (src/model/halo.h)."""
    halo = row["halo"]
    wire = wire_limit(row, halo["link_bytes"])
    wire_cores = 0 if wire is None else halo["wire_bytes"] * setting(row, "THALWEG_LAB_CPU_S_PER_BYTE")
    copies = (halo["inside_bytes"] + halo["packed_bytes"]) / halo["copied_bytes_per_s"]
    cores = (copies * min(halo["copiers"], halo["cores"]) + wire_cores) / halo["cores"]
    return wire if wire and halo["link_bytes"] else 0.0, copies, cores


def draw_halo(panels, out):
    """Time over the largest limit, point by point, wire-bound ones first."""
    shown = {"native": (RED, "-", "s"), "isend": (ORANGE, "-", "v"), "persistent": (ORANGE, "--", "^"),
             "isend packed waitany": (BROWN, "-", "D"), "thalweg init": (BLUE, "-", "o"),
             "thalweg init [transport=shm]": (GREEN, "-", "P"), "thalweg init parted": (BLUE, "--", "X")}
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        limits = {point: halo_limits(row) for rows in panel.values() for point, row in rows.items()}
        points = sorted(limits, key=lambda point: (max(limits[point][1:]) / max(limits[point][0], 1e-9), point))
        for column, (color, line, mark) in shown.items():
            here = [point for point in points if point in panel.get(column, {})]
            if not here:
                continue
            axis.plot([points.index(point) for point in here],
                      [statistics.median(panel[column][point]["seconds"]) / max(halo_limits(panel[column][point]))
                       for point in here], label=column, color=color, linestyle=line, marker=mark, markersize=5)
        axis.axhline(1.0, color=BLACK, linewidth=1.2, linestyle=":", label="the largest limit")
        axis.set_ylabel("time / limit")
        log_axis(axis, plain)
        axis.set_xticks(range(len(points)), points, rotation=30, ha="right", fontsize=8)
        axis.set_xlabel("cells of a rank")
        axis.set_title(title_of(*key), fontsize=10)
    save(figure, axes, len(panels), "Halo exchange, from wire-bound to copy-bound", out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if pathlib.Path(arguments.out).suffix not in (".png", ".svg", ".pdf"):
        sys.exit(f"thalweg bench: --out {arguments.out} is no picture: its name ends in .png, .svg or .pdf")
    try:
        pictures = [(reader(arguments.files), drawer) for reader, drawer in (
            (read_halo, draw_halo), (read_exchange, draw_exchange), (read, draw), (read_overlap, draw_overlap))]
        pictures = [(panels, drawer) for panels, drawer in pictures if panels]
        if not pictures:
            sys.exit("thalweg bench: the files hold no rows to draw")
        if len(pictures) > 1:
            sys.exit("thalweg bench: draw files of --overlap, of alltoallv, of halo and others apart")
        panels, drawer = pictures[0]
        drawer(panels, arguments.out)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        sys.exit(f"thalweg bench: cannot draw this: {type(error).__name__}: {why}; look for a damaged row in the files, and if there "
                 "is none, report it as a fault of Thalweg")
    print(f"plot: {arguments.out}")


if __name__ == "__main__":
    main()
