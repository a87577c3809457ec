"""`thalweg bench plot` draws what result files hold: a picture with the columns, the limit, and what was measured where in
its title; and says in one sentence why it draws nothing.

    plot.py THALWEG SOURCE_ROOT
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from common import expect

thalweg, root = sys.argv[1], pathlib.Path(sys.argv[2])
if not (root / ".venv/bin/python").exists():
    print("skipped: .venv has no Python")
    sys.exit(77)


def plot(out, *files):
    ended = subprocess.run([thalweg, "bench", "plot", "--out", str(out), *map(str, files)], capture_output=True,
                           text=True, timeout=200)
    ended.about = f"{files}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return ended


def row(column, size, seconds, **more):
    settings = {"THALWEG_LAB_RATE_BYTES_PER_S": "1.2e7", "THALWEG_LAB_BURST_BYTES": "16384", "THALWEG_LAB_LATENCY_S": "1e-6"}
    return {"context": {"mpi_name": "mpich", "shape": "4x2", "rate": "100mbit", "hosts": 4, "ranks": 8,
                        "settings": settings},
            "collective": "bcast", "column": column, "phase": "decide", "launch": 1, "bytes": size, "seconds": seconds,
            "back_to_back_seconds": [], "wrong_words": 0, "late_samples": 0, "algorithm": "", "reason": "",
            "tx_bytes": -1, "tx_packets": -1, **more}


def write(path, rows):
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def texts(path):
    """What is written in an SVG: its texts are outlines, and each stands in a comment before them."""
    return path.read_text(encoding="utf-8")


with tempfile.TemporaryDirectory(prefix="tw") as name:
    folder = pathlib.Path(name)
    rows = [row(column, size, [slower * size * 1e-7] * 3) for size in (1 << 16, 1 << 20)
            for column, slower in (("native", 3), ("native scatter_ring", 2), ("thalweg", 1), ("thalweg binomial", 2))]
    rows.append({**row("native binomial", 1 << 20, []), "stopped": "left out: 3x at 4 MiB"})
    broadcasts = write(folder / "bcast.jsonl", rows)

    ended = plot(folder / "bcast.png", broadcasts)
    expect(ended.returncode == 0 and str(folder / "bcast.png") in ended.stdout, ended.about)
    picture = (folder / "bcast.png").read_bytes()
    wide, high = (int.from_bytes(picture[at:at + 4], "big") for at in (16, 20))
    expect(picture[:8] == b"\x89PNG\r\n\x1a\n" and wide > 400 and high > 300, "no picture:", picture[:24])

    # The same as a drawing, whose words can be read; and files of the other kinds.
    results = root / "bench/results"
    for files, words in (
            ([broadcasts], ["thalweg", "native default", "line-rate limit", "time / limit", "1 MiB",
                            "MPICH, 4 hosts x 2 ranks, 100 Mbit/s"]),
            ([results / "overlap-mpich-2x1.jsonl"], ["thalweg", "sockets", "native MPI_Test", "hidden (OSU), %",
                                                     "MPI_Iallgather, MPICH, 2 hosts x 1 rank, 100 Mbit/s"]),
            ([results / "alltoallv-mpich-4x1.jsonl"], ["thalweg init", "rma_fence", "pays at once (1.1)",
                                                       "MPICH, 4 hosts x 1 rank, 100 Mbit/s, dense"]),
            ([results / "halo-mpich-4x1.jsonl"], ["native", "isend", "thalweg init", "the largest limit",
                                                  "2x2x1: 90x90x90", "4x1x1: 90x90x90",
                                                  "MPICH, 4 hosts x 1 rank, 100 Mbit/s"])):
        out = folder / "drawn.svg"
        ended = plot(out, *files)
        expect(ended.returncode == 0, ended.about)
        drawn = texts(out)
        for word in words:
            expect(f"<!-- {word} -->" in drawn, files, "has no", word)

    # Over two links the limit is about half as long; and what ran beside a native algorithm in a launch of its own is
    # not what runs when nothing is asked for.
    apart, doubled = row("thalweg", 1 << 20, [9.0] * 3), row("thalweg", 1 << 20, [0.05] * 3)
    apart["context"]["environment"], doubled["context"]["rails"] = "I_MPI_ADJUST_BCAST=3", 2
    linked = write(folder / "linked.jsonl", [*rows, doubled, apart])
    code = ("import json, sys; sys.path.insert(0, sys.argv[1]); import plot\n"
            "for key, panel in plot.read(sys.argv[2:]).items():\n"
            "    print(json.dumps([key[3], *panel['thalweg'][1 << 20][1:]]))")
    ended = subprocess.run([root / ".venv/bin/python", "-B", "-c", code, root / "bench", linked],
                           capture_output=True, text=True, timeout=200)
    expect(ended.returncode == 0, ended.stderr)
    drawn = [json.loads(line) for line in ended.stdout.splitlines()]
    wanted = [["100mbit", 0.1048576, ((1 << 20) - 16384) / 1.2e7], ["2 x 100mbit", 0.05, ((1 << 19) - 16384) / 1.2e7]]
    expect(len(drawn) == 2, drawn)
    for (rate, seconds, limit), (right, *numbers) in zip(drawn, wanted):
        near = abs(seconds - numbers[0]) < 1e-9 and abs(limit - numbers[1]) < 1e-5
        expect(rate == right and near, drawn, "not", wanted)
    ended = plot(folder / "linked.svg", linked)
    expect(ended.returncode == 0, ended.about)
    expect("<!-- MPICH, 4 hosts x 2 ranks, 2 x 100 Mbit/s -->" in texts(folder / "linked.svg"), "no panel of two links")

    empty, short = write(folder / "empty.jsonl", []), write(folder / "small.jsonl", [row("native", 8, [1e-6], phase="small")])
    for files, why in (([empty], f"no results in {empty}"), ([short], "the files hold no rows to draw"),
                       ([folder / "none.jsonl"], "none.jsonl does not exist"),
                       ([write(folder / "context.jsonl", [{**rows[0], "context": 5}])], "look for a damaged row in the files"),
                       ([write(folder / "ranks.jsonl", [{**rows[0], "context": {**rows[0]["context"], "settings": 5}}])],
                        "look for a damaged row in the files"),
                       ([broadcasts, results / "halo-mpich-4x1.jsonl"], "draw files of")):
        out = folder / "nothing.png"
        ended = plot(out, *files)
        expect(ended.returncode != 0 and not out.exists(), ended.about)
        expect(ended.stderr.count("\n") == 1 and why in ended.stderr, "not one sentence:", ended.about)
    torn = folder / "torn.jsonl"
    torn.write_text(broadcasts.read_text() + '{"algorithm":"cha')
    ended = plot(folder / "torn.png", torn)
    expect(ended.returncode == 0 and "was cut off, and is left out" in ended.stderr, ended.about)
    (folder / "taken.png").mkdir()
    before = sorted(folder.iterdir())
    for name, why in (("drawn.jpeg", "its name ends in .png, .svg or .pdf"), ("drawn", "its name ends in .png"),
                      ("none/drawn.png", "cannot be written: No such file or directory"),
                      ("taken.png", "cannot be written: Is a directory")):
        ended = plot(folder / name, broadcasts)
        expect(ended.returncode != 0 and before == sorted(folder.iterdir()), ended.about)
        expect(ended.stderr.count("\n") == 1 and why in ended.stderr, "not one sentence:", ended.about)
print("pictures have their columns, limits and titles")
