"""sim/plot.py draws what `thalweg sim` prints, curves and a timeline, also as `thalweg sim plot`, and says in one sentence why it draws nothing.

    plot.py THALWEG_SIM SOURCE_ROOT
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sim, root = sys.argv[1], pathlib.Path(sys.argv[2])
thalweg = pathlib.Path(sim).parent / "thalweg"
python = root / ".venv/bin/python"
if not python.exists():
    print("skipped: .venv has no Python")
    sys.exit(77)


def plot(out, path):
    return subprocess.run([python, root / "sim/plot.py", "--out", out, path], capture_output=True, text=True, timeout=200, check=False)


def plot_by_verb(out, path):
    return subprocess.run([thalweg, "sim", "plot", "--out", out, path], capture_output=True, text=True, timeout=200, check=False)


def simulated(*words):
    return subprocess.run([sim, *words, "--quiet"], capture_output=True, text=True, timeout=100, check=True).stdout


def drawn(out, path, *texts):
    """What is written in an SVG: its texts are outlines, and each stands in a comment before them."""
    done = plot(out, path)
    picture = out.read_text(encoding="utf-8") if done.returncode == 0 else ""
    missing = [text for text in texts if f"<!-- {text}" not in picture]
    if missing or f"plot: {out}" not in done.stdout:
        sys.exit(f"FAILED: {missing} in {path}: {done}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    curve, trace, empty = folder / "curve.jsonl", folder / "trace.json", folder / "empty"
    curve.write_text(simulated("bcast", "--machine", "dane", "--ranks", "112,448", "--bytes", "64K", "--json"), encoding="utf-8")
    drawn(folder / "curve.svg", curve, "ranks", "auto", "mpich", "openmpi")
    done = plot_by_verb(folder / "verb.svg", curve)
    if done.returncode != 0 or not (folder / "verb.svg").exists() or f"plot: {folder / 'verb.svg'}" not in done.stdout:
        sys.exit(f"FAILED: thalweg sim plot: {done}")
    # No bytes stand beside the others, not so far away that these fall together.
    curve.write_text(simulated("app", "fourier", "--machine", "dane", "--ranks", "8", "--bytes", "0,8,1K,64K", "--json"),
                     encoding="utf-8")
    drawn(folder / "none.svg", curve, "bytes", "thalweg, agent")
    ticks = [float(place) for place in re.findall(r'<g id="xtick_\d+">.*?<use [^>]*\bx="([\d.]+)"',
                                                  (folder / "none.svg").read_text(encoding="utf-8"), re.DOTALL)]
    if len(ticks) != 4 or min(after - before for before, after in zip(ticks, ticks[1:])) < 15:
        sys.exit(f"FAILED: sizes stand at {ticks}")
    simulated("bcast", "--machine", "lab-100", "--ranks", "4", "--per-host", "1", "--bytes", "64K", "--algorithm",
              "chain:chunk_bytes=16K", "--trace", str(trace))
    drawn(folder / "trace.svg", trace, "send", "recv")
    empty.write_text("", encoding="utf-8")
    refused = plot(folder / "none.png", empty)
    if refused.returncode == 0 or "holds nothing to draw" not in refused.stderr or (folder / "none.png").exists():
        sys.exit(f"FAILED: {refused}")
    # What others write, and what is damaged: one sentence too.
    rows = (root / "bench/results/bcast-mpich-4x2.jsonl").read_text(encoding="utf-8")
    for other in (rows, "5\n", '{"column": "auto", "seconds": 1}\n', '{"displayTimeUnit":"ns"}\n',
                  '{"displayTimeUnit":"ns","traceEvents":[{"ph":"e","id":1}]}\n',
                  '{"displayTimeUnit":"ns","traceEvents":[{"ph":"X","ts":1,"pid":0,"name":"copy"}]}\n'):
        empty.write_text(other, encoding="utf-8")
        refused = plot(folder / "none.png", empty)
        if refused.returncode != 1 or refused.stderr.count("\n") != 1 or "sim/plot.py: " not in refused.stderr:
            sys.exit(f"FAILED: {other[:100]}: {refused}")
    # Fields of the right names that hold something else.
    whole = {"collective": "bcast", "machine": "dane", "ranks": 8, "bytes": 1024, "column": "auto", "seconds": 1e-6, "simulated": True,
             "limit_seconds": 1e-7}
    for damaged in ({"seconds": "x"}, {"bytes": [1]}, {"machine": {}}, {"seconds": None}):
        empty.write_text(json.dumps({**whole, **damaged}) + "\n", encoding="utf-8")
        refused = plot(folder / "none.png", empty)
        if refused.returncode != 1 or refused.stderr.count("\n") != 1 or f"cannot draw {empty}: " not in refused.stderr:
            sys.exit(f"FAILED: {damaged}: {refused}")
    curve.write_text(simulated("barrier", "--machine", "dane", "--ranks", "112", "--json"), encoding="utf-8")
    drawn(folder / "barrier.svg", curve, "ranks", "auto")
    for out, why in ((folder / "curve.jpeg", "its name ends in .png, .svg or .pdf"), (folder / "curve", "its name ends in .png"),
                     ("/dev/full/curve.png", "there is no folder /dev/full"), (folder / "taken.png", "cannot be written")):
        (folder / "taken.png").mkdir(exist_ok=True)
        before = sorted(folder.iterdir())
        refused = plot(out, curve)
        if refused.returncode == 0 or why not in refused.stderr or refused.stderr.count("\n") != 1 or before != sorted(folder.iterdir()):
            sys.exit(f"FAILED: {refused}")
print("curves and a timeline are drawn")
