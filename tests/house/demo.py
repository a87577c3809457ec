"""`make demo` without its build: one round on this host alone. It says where it ran and how, and leaves a table, a plot and
the data behind both.

    demo.py SOURCE_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MPIS = ("mpich", "openmpi", "impi")
SIZES = {"64K": 65536, "1M": 1048576}
COLUMNS = ["native ms", "Thalweg ms", "speed-up", "limit ms", "time/limit", "how"]


def expect(condition, what, output):
    if not condition:
        sys.exit(f"error: {what}\n{output}")


def main(root):
    mpi = next((name for name in MPIS if (root / f".venv-{name}").is_dir()), None)
    python = root / ".venv/bin/python"
    if mpi is None or not python.exists():
        print("no MPI wheel is installed here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="thalweg-demo-") as name:
        folder = pathlib.Path(name)
        done = subprocess.run([python, "-B", root / "scripts/demo.py", "--one-host", "--mpi", mpi, "--rounds", "1", "--reps",
                               "1", "--out", folder, "--sizes", *SIZES], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, cwd=root, timeout=280)
        said = done.stdout + done.stderr
        expect(done.returncode == 0, f"it ended with {done.returncode}", said)
        data = json.loads((folder / "bcast.json").read_text(encoding="utf-8"))
        plot = (folder / "bcast.png").read_bytes()
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    expect("demo: on this host alone, 2 ranks" in said and data["where"] in said, "it says where it ran", said)
    expect(said.count("every byte correct") == 2, "once with and once without Thalweg", said)
    lines = said.splitlines()
    head = next((i for i, line in enumerate(lines) if all(column in line for column in COLUMNS)), None)
    expect(head is not None, "a table", said)
    rows = [line.split(maxsplit=6) for line in lines[head + 1:head + 1 + len(SIZES)]]
    expect([int(row[0]) for row in rows] == list(SIZES.values()), "a row for every size", said)
    for row, kept in zip(rows, data["rows"]):
        figures = [float(figure.rstrip("x")) for figure in row[1:6]]
        # The table rounds to a microsecond, which is several percent of the least times: the ratio is that of the data. It
        # is 0.00 where the machine left one of the two waiting.
        expect(all(figure > 0 for figure in figures[:2] + figures[3:]), "times and ratios", row)
        ratio = kept["native_s"] / kept["thalweg_s"]
        expect(abs(figures[2] - ratio) < 0.006, "the ratio of the two times", (row, ratio))
        shown = all(abs(kept[key] * 1e3 - figure) < 1e-3 for key, figure in zip(("native_s", "thalweg_s"), figures))
        expect(row[6] == kept["how"] and shown, "the data are the table's", row)
        # One host: a broadcast is the library's, and it says so.
        expect(row[6].startswith("native"), "how it ran", row)
    expect(report["ranks"] == 2 and report["unseen"], "Thalweg was there", report)
    expect(plot.startswith(b"\x89PNG\r\n"), "a plot", plot[:20])
    for name in ("bcast.png", "bcast.json", "report.json"):
        expect(name in said, f"it says where {name} is", said)
    print(f"the demo's table, plot and data, under {mpi}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
