"""Draws result rows of `thalweg bench`, one panel per MPI and shape: time over the line-rate limit against size, or
what of a nonblocking collective hides."""
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
                if row["phase"] in ("small", "waiters", "overlap") or not row["seconds"]:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    panels, hidden = read(arguments.files), read_overlap(arguments.files)
    if not panels and not hidden:
        raise SystemExit("thalweg bench: the files hold no rows to draw")
    if panels and hidden:
        raise SystemExit("thalweg bench: draw files of --overlap apart from others")
    if panels:
        draw(panels, arguments.out)
    else:
        draw_overlap(hidden, arguments.out)
    print(f"plot: {arguments.out}")


if __name__ == "__main__":
    main()
