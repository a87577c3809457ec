"""Draws result rows of `thalweg bench`, one panel per MPI and shape: time over the line-rate limit against size, or
what of a nonblocking collective hides, when planned exchanges pay, or halo exchanges beside their limits."""
import argparse
import collections
import json
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)


def read(paths):
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                # Short calls and waiters are told by tables, overlap has a picture of its own; a column that was
                # left out of a race has no samples.
                if (row["phase"] in ("small", "waiters", "overlap", "exchange") or row["phase"].startswith("halo")
                        or not row["seconds"]):
                    continue
                context = row["context"]
                settings = context.get("settings", {})
                rate = float(settings.get("THALWEG_LAB_RATE_BYTES_PER_S", 0))
                limit = None
                if rate > 0 and context.get("hosts", 1) > 1:
                    burst = float(settings.get("THALWEG_LAB_BURST_BYTES", 0))
                    limit = max(0.0, row["bytes"] - burst) / rate + float(settings.get("THALWEG_LAB_LATENCY_S", 0))
                median = statistics.median(row["seconds"])
                # Pairs of the decision replace the first look at the same point.
                kind = row["phase"] == "decide"
                panel = panels[(context["mpi_name"], context["shape"], context.get("rate", ""))]
                before = panel[row["column"]].get(row["bytes"])
                if before is None or kind >= before[0]:
                    panel[row["column"]][row["bytes"]] = (kind, median, limit)
    return panels


def read_overlap(paths):
    """Percent of the pure time that hides (OSU), by panel, column and bytes."""
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                # Of blocking algorithms only the pure time was taken.
                if row["phase"] != "overlap" or not row["seconds"] or not row["overlap"]["total"]:
                    continue
                seen = {name: statistics.median(row["overlap"][name]) for name in ("pure_mean", "total", "computed")}
                hidden = 100 * (1 - (seen["total"] - seen["computed"]) / seen["pure_mean"])
                context = row["context"]
                panel = panels[(row["collective"], context["mpi_name"], context["shape"], context.get("rate", ""))]
                panel[row["column"]][row["bytes"]] = min(100, max(0, hidden))
    return panels


def newest(paths, phase, place):
    """Measured rows of a phase, of the newest launch: by panel, column and point, as place(row) names the outer two."""
    panels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row["phase"] != phase or not row["seconds"]:
                    continue
                panel, point = place(row)
                before = panels[panel][row["column"]].get(point)
                if before is None or row["launch"] >= before["launch"]:
                    panels[panel][row["column"]][point] = row
    return panels


def read_exchange(paths):
    """Rows of planned exchanges, by panel, column and bytes."""
    def place(row):
        context = row["context"]
        return (context["mpi_name"], context["shape"], context.get("rate", ""), row["exchange"]["pattern"]), row["bytes"]
    return newest(paths, "exchange", place)


def read_halo(paths):
    """Rows of halo exchanges, by panel, column and point (what the grid and its cells are)."""
    def place(row):
        context, halo = row["context"], row["halo"]
        point = ("x".join(map(str, halo["cells"])) + (", corners" if halo["corners"] else "") +
                 (", round" if halo["periodic"] else ""))
        return (context["mpi_name"], context["shape"], context.get("rate", "")), point
    return newest(paths, "halo", place)


def style(column):
    if column == "thalweg":
        return {"color": "tab:blue", "linewidth": 2.5, "marker": "o", "zorder": 5}
    if column == "native":
        return {"color": "tab:red", "linewidth": 2.5, "marker": "s", "zorder": 4}
    if column.startswith("native"):
        return {"color": "tab:red", "alpha": 0.35, "linewidth": 1}
    return {"color": "tab:blue", "alpha": 0.35, "linewidth": 1}


def grid_of(panels):
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    return plt.subplots(rows, columns, figsize=(5.2 * columns, 3.8 * rows), squeeze=False)


def finish_axis(axis, title):
    axis.set_xscale("log", base=2)
    axis.set_xlabel("bytes")
    axis.set_title(title)
    axis.grid(True, which="both", alpha=0.2)
    axis.legend(fontsize=8)


def save(figure, axes, panels, title, out):
    for axis in list(axes.flat)[len(panels):]:
        axis.set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def draw(panels, out):
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        limited = any(limit for points in panel.values() for _, _, limit in points.values())
        for column, points in sorted(panel.items()):
            sizes = sorted(points)
            values = [points[s][1] / points[s][2] if limited else points[s][1] for s in sizes]
            label = column if column in ("native", "thalweg") else None
            axis.plot(sizes, values, label=label, **style(column))
        if limited:
            axis.axhline(1.0, color="black", linewidth=1, linestyle="--", label="line-rate limit")
            axis.set_ylabel("time / limit")
            axis.set_ylim(0.9, 8)
        else:
            axis.set_ylabel("seconds")
        axis.set_yscale("log")
        finish_axis(axis, f"{key[0]}, {key[1]} hosts x ranks {key[2]}")
    save(figure, axes, panels, "Broadcast: thick lines are the defaults, thin ones every other algorithm", out)


def draw_overlap(panels, out):
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        for column, points in sorted(panel.items()):
            sizes = sorted(points)
            line = {"color": "tab:green", "linestyle": ":"} if column == "sockets" else style(column)
            named = column in ("native", "thalweg", "sockets", "native MPI_Test", "native asynchronous")
            if column in ("native MPI_Test", "native asynchronous"):
                line = {"color": "tab:orange", "linestyle": "--" if column.endswith("Test") else "-"}
            axis.plot(sizes, [points[s] for s in sizes], label=column if named else None, **line)
        axis.set_ylim(-3, 103)
        axis.set_ylabel("hidden (OSU), %")
        finish_axis(axis, f"{key[0]}, {key[1]}, {key[2]} hosts x ranks {key[3]}")
    save(figure, axes, panels, "What of a nonblocking collective hides behind computation", out)


def calls_to_pay(plan, once):
    """N*, or None where the plan never pays."""
    exchange = plan["exchange"]
    cost = statistics.median(a + b for a, b in zip(exchange["init_seconds"], exchange["free_seconds"]))
    gain = statistics.median(once["seconds"]) - statistics.median(plan["seconds"])
    return cost / gain if gain > 0 else None


def draw_exchange(panels, out):
    """Above: after how many calls plans have paid against a window made in every call. Below: what of its time a plan
    over fences saves, beside the most that planning can save."""
    figure, axes = plt.subplots(2, len(panels), figsize=(5.2 * len(panels), 7.6), squeeze=False)
    for (above, below), (key, panel) in zip(axes.T, sorted(panels.items())):
        once = panel.get("window per call", {})
        for column in sorted(panel):
            sizes = [size for size in sorted(panel[column])
                     if size in once and panel[column][size]["exchange"]["init_seconds"]]
            if not sizes:
                continue
            paid = [calls_to_pay(panel[column][size], once[size]) for size in sizes]
            above.plot(sizes, [value if value is not None else float("nan") for value in paid], label=column,
                       marker="o" if column.startswith("thalweg") else ".",
                       linewidth=2 if column in ("rma_fence", "thalweg init") else 1)
        above.axhline(1.1, color="black", linewidth=1, linestyle="--", label="pays at once (1.1)")
        above.set_yscale("log")
        above.set_ylabel("N*, calls (gaps: never)")
        for plan, line in (("rma_fence", "-"), ("rma_fence_barrier", ":")):
            sizes = [size for size in sorted(panel.get(plan, {})) if size in once]
            saved = [100 - 100 * statistics.median(panel[plan][size]["seconds"]) /
                     statistics.median(once[size]["seconds"]) for size in sizes]
            below.plot(sizes, saved, label=f"saved by {plan}", color="tab:blue", linestyle=line, marker="o")
        sizes = sorted(once)
        below.plot(sizes, [100 * statistics.median(once[size]["exchange"]["set_up_seconds"]) /
                           statistics.median(once[size]["seconds"]) for size in sizes],
                   label="ceiling: set-up timed in a call", color="black", linestyle="--")
        kept = [size for size in sorted(panel.get("window kept", {})) if size in once]
        below.plot(kept, [100 - 100 * statistics.median(panel["window kept"][size]["seconds"]) /
                          statistics.median(once[size]["seconds"]) for size in kept],
                   label="ceiling: what a kept window saves", color="gray", linestyle="--")
        below.axhline(44, color="tab:red", linewidth=1, label="the paper's largest (another machine)")
        below.set_ylim(-5, 105)
        below.set_ylabel("% of a call with its own window")
        title = f"{key[0]}, {key[1]} hosts x ranks {key[2]}, {key[3]}"
        finish_axis(above, title)
        finish_axis(below, title)
    save(figure, axes, list(axes.flat), "Planned alltoallv against a window made in every call", out)


def halo_limits(row):
    """Seconds that the wire, the copies and the cores need at least (src/model/halo.h)."""
    halo, settings = row["halo"], row["context"].get("settings", {})
    wire = wire_cores = 0.0
    if row["context"].get("hosts", 1) > 1:
        rate = float(settings.get("THALWEG_LAB_RATE_BYTES_PER_S", 0))
        beyond = max(0.0, halo["link_bytes"] - float(settings.get("THALWEG_LAB_BURST_BYTES", 0)))
        wire = beyond / rate + float(settings.get("THALWEG_LAB_LATENCY_S", 0)) if rate > 0 and halo["link_bytes"] else 0
        wire_cores = halo["wire_bytes"] * float(settings.get("THALWEG_LAB_CPU_S_PER_BYTE", 0))
    copies = (halo["inside_bytes"] + halo["packed_bytes"]) / halo["copied_bytes_per_s"]
    return wire, copies, (copies * min(halo["copiers"], halo["cores"]) + wire_cores) / halo["cores"]


def draw_halo(panels, out):
    """Time over the largest limit, point by point, wire-bound ones first."""
    shown = {"native": ("tab:red", "-"), "isend": ("tab:orange", "-"), "persistent": ("tab:orange", ":"),
             "isend packed waitany": ("tab:brown", "-"), "thalweg init": ("tab:blue", "-"),
             "thalweg init [transport=shm]": ("tab:green", "-"), "thalweg init parted": ("tab:blue", ":")}
    figure, axes = grid_of(panels)
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        limits = {point: halo_limits(row) for rows in panel.values() for point, row in rows.items()}
        points = sorted(limits, key=lambda point: (max(limits[point][1:]) / max(limits[point][0], 1e-9), point))
        for column, (color, line) in shown.items():
            here = [point for point in points if point in panel.get(column, {})]
            axis.plot([points.index(point) for point in here],
                      [statistics.median(panel[column][point]["seconds"]) / max(halo_limits(panel[column][point]))
                       for point in here], label=column, color=color, linestyle=line, marker="o")
        axis.axhline(1.0, color="black", linewidth=1, linestyle="--")
        axis.set_yscale("log")
        axis.set_ylabel("time / limit")
        axis.set_xticks(range(len(points)), points, rotation=30, ha="right", fontsize=8)
        axis.set_title(f"{key[0]}, {key[1]} hosts x ranks {key[2]}")
        axis.grid(True, which="both", alpha=0.2)
        axis.legend(fontsize=7)
    save(figure, axes, panels, "Halo exchange: cells of a rank, from wire-bound to copy-bound", out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    panels, hidden = read(arguments.files), read_overlap(arguments.files)
    exchanges, halos = read_exchange(arguments.files), read_halo(arguments.files)
    if not panels and not hidden and not exchanges and not halos:
        raise SystemExit("thalweg bench: the files hold no rows to draw")
    if sum(map(bool, (panels, hidden, exchanges, halos))) > 1:
        raise SystemExit("thalweg bench: draw files of --overlap, of alltoallv, of halo and others apart")
    if halos:
        draw_halo(halos, arguments.out)
    elif exchanges:
        draw_exchange(exchanges, arguments.out)
    elif panels:
        draw(panels, arguments.out)
    else:
        draw_overlap(hidden, arguments.out)
    print(f"plot: {arguments.out}")


if __name__ == "__main__":
    main()
