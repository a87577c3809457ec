"""A sweep of `thalweg bench bcast` that was cut off goes on where it stopped when it is given the same file again, and
measures nothing twice; with other settings it measures anew. One that is interrupted keeps what it measured. A wrong
byte of a call that is no sample stays in the rows. Native algorithms whose control variables the library does not take
are left out, and the others measured. Where the environment sets the native algorithms, as Intel MPI's,
each has a launch of its own: that is what is checked there.

    sweep.py THALWEG MPI DAMAGING_LIBRARY
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from common import expect

thalweg, mpi, damage = sys.argv[1:]
SIZES = (3000, 20000)
ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(out, sizes, samples=1):
    return [thalweg, "bench", "bcast", "--mpi", mpi, "--hosts", "0", "--ppn", "2", "--bytes", ",".join(map(str, sizes)),
            "--screen-samples", str(samples), "--decide-samples", "2", "--ours", "binomial", "--out", str(out)]


def bench(out, sizes=SIZES, **more):
    ended = subprocess.run(command(out, sizes), capture_output=True, text=True, timeout=250, env={**os.environ, **more})
    expect(ended.returncode == 0, ended.stdout, ended.stderr)
    return ended


def points(lines):
    """(phase, column, bytes) of each line, and how often it is there."""
    count = {}
    for line in map(json.loads, lines):
        key = line["phase"], line["column"], line["bytes"]
        count[key] = count.get(key, 0) + 1
    return count


def goes_on(out):
    bench(out)
    whole = out.read_text().splitlines()
    everything = points(whole)
    for size in SIZES:
        for phase in ("screen", "decide"):
            expect((phase, "thalweg", size) in everything, "no row of", phase, size)
    for line in map(json.loads, whole):
        expect(line["wrong_words"] == 0, line)

    # Complete: nothing is measured, and the table is printed all the same.
    ended = bench(out)
    expect(out.read_text().splitlines() == whole, "a complete file was measured again")
    expect("3000 B" in ended.stdout, ended.stdout)

    # Cut off in the screen of the second size: the rest of it is measured, and both decisions. What needs launches with
    # settings of their own was there before.
    screen = [row for row in map(json.loads, whole) if row["phase"] == "screen"]
    kept = [json.dumps(row) for row in screen if row["context"]["environment"]]
    kept += [json.dumps(row) for row in screen if not row["context"]["environment"]][:-3]
    lost = set(everything) - set(points(kept))
    out.write_text("\n".join(kept) + "\n")
    bench(out)
    lines = out.read_text().splitlines()
    expect(lines[:len(kept)] == kept, "rows that were there have changed")
    fresh = points(lines[len(kept):])
    expect(lost <= set(fresh), "not measured:", lost - set(fresh))
    # What is always measured stands beside what was missing; nothing else comes twice.
    again = {key for key in fresh if key in points(kept)}
    expect({column for _, column, _ in again} <= {"native", "native (A/A)", "thalweg"}, "measured again:", again)
    expect({size for _, _, size in again} <= {SIZES[1]}, "a size that was complete was measured again:", again)

    # Other settings: all of it, though other natives may be the best, and the rows say so.
    bench(out, THALWEG_WAIT="sleep")
    others = out.read_text().splitlines()[len(lines):]
    wanted = {key for key in everything if key[0] == "screen" or key[1] == "thalweg"}
    expect(wanted <= set(points(others)), "not measured anew:", wanted - set(points(others)))
    for line in map(json.loads, others):
        expect(line["context"]["settings"]["THALWEG_WAIT"] == "sleep", line)
    print(f"{len(lost)} of {len(everything)} points were cut off and measured")


def keeps_what_was_measured(folder):
    """Interrupted behind the first of two points of one launch."""
    out, place = folder / "interrupted.jsonl", folder / "place"
    place.mkdir()
    running = subprocess.Popen(command(out, (3000, 1 << 20), 30), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, "TMPDIR": str(place)})
    begun = time.monotonic()
    while running.poll() is None and time.monotonic() - begun < 200:
        time.sleep(0.3)
        if any(path.read_text().count("\n") > 2 for path in place.glob("thalweg-bench-*/rows.jsonl")):
            break
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    expect(running.returncode == -signal.SIGINT and "thalweg bench: interrupted; " in said,
           running.returncode, said)
    kept = points(out.read_text().splitlines())
    expect(("screen", "thalweg", 3000) in kept, "what was measured is lost:", kept)
    expect(("screen", "thalweg", 1 << 20) not in kept, "it was not interrupted:", kept)
    expect(not list(place.glob("thalweg-bench-*")), "something was left behind:", list(place.iterdir()))


def remembers_wrong_bytes(out):
    """The first call of this size is damaged in each launch; what is timed is right."""
    ended = subprocess.run(command(out, SIZES[:1]), capture_output=True, text=True, timeout=250,
                           env={**os.environ, "LD_PRELOAD": damage})
    expect(ended.returncode == 1 and "WRONG WORDS" in ended.stdout, ended.returncode, ended.stdout, ended.stderr)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    wrong = sorted(line["launch"] for line in lines if line["wrong_words"])
    expect(wrong == sorted({line["launch"] for line in lines}), "not one column of each launch:", wrong, lines)

    # Where nothing is left to be measured, what was wrong is told all the same.
    out.write_text(json.dumps({**lines[0], "phase": "small", "column": "thalweg", "wrong_words": 3}) + "\n")
    ended = subprocess.run([*command(out, SIZES[:1]), "--small"], capture_output=True, text=True, timeout=250)
    expect(ended.returncode == 1 and "3 WRONG WORDS" in ended.stdout, ended.returncode, ended.stdout, ended.stderr)
    expect(len(out.read_text().splitlines()) == 1, "it was measured again")


def leaves_out_what_cannot_be_asked_for(out):
    """The library has the variables, and takes no value for them."""
    ended = bench(out, SIZES[1:], LD_PRELOAD=damage, BENCH_REFUSES_CONTROLS="1")
    expect(" is left out: the control variable " in ended.stderr and "cannot be written at run time" in ended.stderr,
           ended.stderr)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    left_out = {f"native {name}" for name in natives("cvar")}
    expect(left_out and not left_out & {line["column"] for line in lines}, "measured all the same:", lines)
    for phase in ("screen", "decide"):
        seen = {line["column"] for line in lines if line["phase"] == phase and line["seconds"]}
        expect({"native", "native (A/A)", "thalweg"} <= seen, phase, seen)


def natives(how):
    """{name: settings} of the broadcasts that this MPI is told by its variables (cvar) or its environment (env)."""
    rows = (ROOT / "tools/thalweg/bench/natives.def").read_text()
    return dict(re.findall(rf'^NATIVE\({mpi}, bcast, "([^"]+)", {how}, "([^"]+)"', rows, re.MULTILINE))


def native_settings():
    """{column: setting} of the broadcasts that this MPI is told by its environment."""
    return {f"native {name}": setting for name, setting in natives("env").items()}


def by_launch(lines, phase):
    """{launch: ({column}, {environment})} of the rows of a phase."""
    launches = {}
    for line in map(json.loads, lines):
        if line["phase"] == phase:
            columns, environments = launches.setdefault(line["launch"], (set(), set()))
            columns.add(line["column"])
            environments.add(line["context"]["environment"])
    return launches


def has_launches_of_their_own(out):
    wanted = native_settings()
    expect(len(set(wanted.values())) > 1, "natives.def:", wanted)
    bench(out, SIZES[1:])
    whole = out.read_text().splitlines()
    for line in map(json.loads, whole):
        expect(line["wrong_words"] == 0 and line["seconds"], line)

    # Alone with its setting at first; what is switched within a launch has none.
    alone, together = {}, []
    for columns, environments in by_launch(whole, "screen").values():
        expect(len(environments) == 1, "one launch of several environments:", columns, environments)
        if environments == {""}:
            together.append(columns)
        else:
            expect(len(columns) == 1, "more than one native under", environments, columns)
            alone[columns.pop()] = environments.pop()
    expect(alone == wanted, "screened alone:", alone, "wanted:", wanted)
    expect(len(together) == 1 and {"native", "native (A/A)", "thalweg"} <= together[0], "screened together:", together)

    # The two fastest are decided beside the automatic choice under the same setting.
    decided = list(by_launch(whole, "decide").values())
    for columns, environments in decided:
        expect("thalweg" in columns and len(environments) == 1, columns, environments)
    for columns, environments in (each for each in decided if each[1] != {""}):
        name = (columns - {"thalweg"}).pop()
        expect(columns == {name, "thalweg"} and environments == {wanted.get(name)}, "decided:", columns, environments)
    expect(sum(environments == {""} for _, environments in decided) == 1 and len(decided) == 3, "decided:", decided)

    # One of them lost: it alone is screened again, and nothing beside it.
    lost = max(alone, key=lambda name: max(max(line["seconds"]) for line in map(json.loads, whole)
                                           if line["column"] == name))
    kept = [line for line in whole if (json.loads(line)["phase"], json.loads(line)["column"]) != ("screen", lost)]
    out.write_text("\n".join(kept) + "\n")
    bench(out, SIZES[1:])
    lines = out.read_text().splitlines()
    expect(lines[:len(kept)] == kept, "rows that were there have changed")
    again = list(by_launch(lines[len(kept):], "screen").values())
    expect(again == [({lost}, {wanted[lost]})], "screened again:", again, "lost:", lost)
    print(f"{len(alone)} natives in launches of their own, {lost} twice")


with tempfile.TemporaryDirectory(prefix="tw") as folder:
    rows = pathlib.Path(folder) / "rows.jsonl"
    if mpi == "impi":
        has_launches_of_their_own(rows)
    else:
        goes_on(rows)
        keeps_what_was_measured(pathlib.Path(folder))
        remembers_wrong_bytes(pathlib.Path(folder) / "damaged.jsonl")
        leaves_out_what_cannot_be_asked_for(pathlib.Path(folder) / "refused.jsonl")
