"""Draws what `thalweg sim` says: time against ranks (or against bytes where there is one number of ranks), a panel per
operation, machine and size; or one operation's timeline, a row per rank.

    thalweg sim bcast --ranks 112,448,1792 --bytes 1M --json > curve.jsonl;  thalweg sim plot --out curve.png curve.jsonl
    thalweg sim bcast ... --trace timeline.json;                             thalweg sim plot --out line.png timeline.json
"""
import argparse
import collections
import json
import pathlib
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("sim/plot.py: there is no matplotlib: install it (python3 -m pip install matplotlib), or open the trace in "
             "https://ui.perfetto.dev")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)

ROW, STEP = {"column", "seconds", "simulated", "ranks", "bytes", "machine"}, {"ts", "dur", "pid", "name"}
COLOURS = {"send": "tab:blue", "recv": "tab:orange", "copy": "tab:green", "reduce": "tab:red"}


def save(figure, out):
    try:
        figure.savefig(out, dpi=110)
    except OSError as error:
        sys.exit(f"sim/plot.py: {out} cannot be written: {error.strerror}")


def has(each, members):
    return isinstance(each, dict) and members <= each.keys()


def curves(rows, out):
    # Barriers have no bytes.
    by_ranks = len({row["ranks"] for row in rows}) > 1 or not any(row["bytes"] for row in rows)
    axis_name, other = ("ranks", "bytes") if by_ranks else ("bytes", "ranks")
    panels = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if row["seconds"] > 0:
            panels[(row.get("collective") or row["app"], row["machine"], row[other])][row["column"]].append(row)
    if not panels:
        raise SystemExit("sim/plot.py: the file holds no point that took any time")
    columns = min(3, len(panels))
    figure, axes = plt.subplots(-(-len(panels) // columns), columns, squeeze=False,
                                figsize=(5.2 * columns, 3.8 * -(-len(panels) // columns)))
    for axis, (key, panel) in zip(axes.flat, sorted(panels.items())):
        for column, points in panel.items():
            points.sort(key=lambda row: row[axis_name])
            (line,) = axis.plot([row[axis_name] for row in points], [row["seconds"] for row in points], marker="o",
                                label=column, linewidth=2.5 if column == "auto" else 1.2)
            model = [row for row in points if not row["simulated"]]  # hollow: the cost model's
            axis.plot([row[axis_name] for row in model], [row["seconds"] for row in model], "o", mfc="white",
                      color=line.get_color())
        limits = sorted({(row[axis_name], row["limit_seconds"]) for points in panel.values() for row in points
                         if "limit_seconds" in row})
        if limits:  # programs have none
            axis.plot(*zip(*limits), color="black", linestyle="--", linewidth=1, label="limit")
        asked = sorted({row[axis_name] for points in panel.values() for row in points})
        if asked[0] > 0:
            axis.set_xscale("log", base=2)
        else:  # no bytes: one step left of one byte
            axis.set_xscale("symlog", base=2, linthresh=1)
        if len(asked) <= 12:
            axis.set_xticks(asked, [f"{value:,}" for value in asked], rotation=30 if by_ranks else 60)
            axis.minorticks_off()
        axis.set_yscale("log")
        axis.set_xlabel(axis_name)
        axis.set_ylabel("seconds, simulated")
        axis.set_title(f"{key[0]} on {key[1]}, {key[2]} {other}", fontsize=10)
        axis.grid(True, which="both", alpha=0.2)
        axis.legend(fontsize=7)
    for axis in list(axes.flat)[len(panels):]:
        axis.set_visible(False)
    figure.tight_layout()
    save(figure, out)


def timeline(events, out):
    spans = [(event["pid"], event["ts"], event["ts"] + event["dur"], event["name"].split()[0]) for event in events
             if event["ph"] == "X"]
    ranks = sorted({rank for rank, *_ in spans})
    # Steps of a kind overlap, because they wait for one another: a bar begins where the one before it ended.
    drawn, before = [], collections.defaultdict(float)
    for rank, begin, end, kind in sorted(spans, key=lambda span: span[2]):
        begin = max(begin, before[rank, kind])
        before[rank, kind] = end
        drawn.append((rank, begin / 1e3, end / 1e3, kind))
    figure, axis = plt.subplots(figsize=(11, min(2 + 0.25 * len(ranks), 40)))
    for kind, colour in COLOURS.items():
        chosen = [span for span in drawn if span[3] == kind]
        shift = {"send": 0.2, "recv": -0.2}.get(kind, 0)
        axis.barh([rank + shift for rank, *_ in chosen], [end - begin for _, begin, end, _ in chosen], height=0.35,
                  left=[begin for _, begin, _, _ in chosen], facecolor=colour, edgecolor=colour, alpha=0.5,
                  label=kind if chosen else None)
    axis.set_xlabel("milliseconds; a step until it is complete, from when it was ready and the one before it was complete")
    axis.set_ylabel("rank")
    if len(ranks) <= 64:
        axis.set_yticks(ranks)
    axis.invert_yaxis()
    axis.legend(fontsize=8)
    figure.tight_layout()
    save(figure, out)


def draw(found, steps, out, neither):
    """Whatever of both it is; `neither`: the sentence where it is none of them."""
    if steps and all(has(each, {"ph"}) for each in found) and all(has(each, STEP) for each in steps):
        timeline(found, out)
    elif all(has(each, ROW) and ("collective" in each or "app" in each) for each in found):
        curves(found, out)
    elif all(has(each, {"ranks"}) and "column" not in each for each in found):
        sys.exit("sim/plot.py: these lines have no column and no seconds; --rma is a table without a picture")
    else:
        sys.exit(neither)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("file")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    if out.suffix not in (".png", ".svg", ".pdf"):
        sys.exit(f"sim/plot.py: --out {out} is no picture: its name ends in .png, .svg or .pdf")
    if not out.parent.is_dir():
        sys.exit(f"sim/plot.py: there is no folder {out.parent} to draw into; make it first")
    neither = f"sim/plot.py: {arguments.file} is neither what `thalweg sim --json` prints nor a file of `--trace`"
    try:
        text = pathlib.Path(arguments.file).read_text(encoding="utf-8")
        found = json.loads(text)["traceEvents"] if text.startswith('{"displayTimeUnit"') else [
            json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{neither}: {error}")
    if not found:
        sys.exit("sim/plot.py: the file holds nothing to draw")
    steps = [each for each in found if has(each, {"ph"}) and each["ph"] == "X"]
    try:
        draw(found, steps, out, neither)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        sys.exit(f"sim/plot.py: cannot draw {arguments.file}: {type(error).__name__}: {why}; look for a damaged line in it, and if "
                 "there is none, report it as a fault of Thalweg")
    print(f"plot: {arguments.out}")


if __name__ == "__main__":
    main()
