#!/usr/bin/env python3
"""Runs one case of the applications under one MPI: run.py CASE RANKS native|thalweg THALWEG SORT GRADIENT WATCH -- LAUNCHER…

WATCH is the preload of watch.c. LAUNCHER is an MPI's own, or `thalweg lab run …` up to its `--`. Exit status 0: passed,
77: no lab here, 1: failed.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

separator = sys.argv.index("--")
case, ranks, wrapper, thalweg, sort, gradient, watch = sys.argv[1:separator]
launcher, ranks = sys.argv[separator + 1:], int(ranks)
folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-apps-"))
every_version = ["--version", "blocking,waited,nonblocking,manual"]
once = [*every_version, "--pieces", "3", "--repeat", "1", "--warm-up", "0"]


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def launch(program, *options, **variables):
    """The finished process; with Thalweg in front where the case asks for it, which must then have been there."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    inner = [thalweg, "run", "--", program] if wrapper == "thalweg" else [program]
    variables = {**variables, **({"THALWEG_REPORT": str(report)} if wrapper == "thalweg" else {})}
    start = launcher if "lab" in launcher else [*launcher, "-n", str(ranks)]
    command = [*start, "env", *(f"{k}={v}" for k, v in variables.items()), *inner,
               *(str(option) for option in options)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        sys.exit(f"FAILED: no end after {late.timeout:g} s: {command}\n{late.stdout}\n{late.stderr}")
    result.about = f"{' '.join(command)}\nexit status {result.returncode}\n{result.stdout}{result.stderr}"
    if wrapper == "thalweg" and result.returncode == 0:
        expect(report.is_file(), "Thalweg wrote no report, so it was not there:", result.about)
    return result


def passes(program, problems, *options):
    """All versions of `problems` problems were right; the lines that were written."""
    lines_file = folder / "lines.jsonl"
    lines_file.unlink(missing_ok=True)
    result = launch(program, *options, "--json", lines_file)
    expect(result.returncode == 0, result.about)
    expect(result.stdout.count("\nchecked: ") == problems, "not every problem was checked:", result.about)
    lines = [json.loads(line) for line in lines_file.read_text().splitlines()]
    expect(len(lines) == 4 * problems, f"{len(lines)} lines for {problems} problems:", result.about)
    for line in lines:
        expect(line["wrong"] == "" and line["samples"], line)
        for sample in line["samples"]:
            # What a rank does takes no longer than the slowest rank's run.
            expect(0 < sample["communication"] + sample["compute"] <= sample["total"] * 1.001 + 1e-4, line)
            expect(abs(sum(sample["gathers"]) - sample["visible"]) <= 1e-9 + 1e-6 * sample["visible"], line)
    return lines


def case_sort():
    # Fewer keys than ranks, ragged shares, none at all; equal keys and duplicates, sorted and reversed input. Ranks
    # that share cores take milliseconds for each message: there is less of it with many.
    keys, inputs = [0, 3, 1003], ["random", "few", "equal", "sorted", "reversed"]
    if ranks > 4:
        keys, inputs = [3, 1003], ["few", "equal", "sorted"]
    passes(sort, len(keys) * len(inputs), *once, "--keys", ",".join(map(str, keys)), "--input", ",".join(inputs))
    # A last digit that is narrower than the others.
    passes(sort, 1, *once, "--keys", 2001, "--key-bits", 64, "--digit-bits", 13)


def case_gradient():
    steps = 8 if ranks <= 4 else 3
    passes(gradient, 3, *once, "--n", "1,5,61", "--nonzeros", 3, "--segments", 3, "--steps", steps)
    passes(gradient, 1, *once, "--n", 400, "--segments", 1, "--steps", steps, "--outer", 2)


def case_lab():
    """One rank per host: the shape on which Thalweg takes nonblocking collectives."""
    check = subprocess.run([thalweg, "lab", "check"], capture_output=True, text=True)
    if check.returncode != 0:
        print(check.stdout + check.stderr)
        sys.exit(77)
    passes(sort, 4, *once, "--keys", "3,20011", "--input", "random,few", "--digit-bits", 12)
    passes(gradient, 2, *once, "--n", "61,3000", "--nonzeros", 3, "--steps", 6, "--slowdown", 1e-7)


def case_nas_class():
    lines = passes(gradient, 1, *once, "--class", "S")
    expect("published" in lines[0]["checked"], lines[0])


def case_matrix_market():
    # Five-point Laplacian of a 12 by 11 grid.
    wide, high = 12, 11
    entries = []
    for y in range(high):
        for x in range(wide):
            at = y * wide + x + 1
            entries.append(f"{at} {at} 4")
            entries += [f"{at} {at - 1} -1"] if x else []
            entries += [f"{at} {at - wide} -1"] if y else []
    path = folder / "laplace.mtx"
    path.write_text("\n".join(["%%MatrixMarket matrix coordinate real symmetric",
                               f"{wide * high} {wide * high} {len(entries)}", *entries, ""]))
    lines = passes(gradient, 1, *once, "--matrix", path, "--steps", 15, "--outer", 2)
    expect(lines[0]["parameters"]["n"] == wide * high, lines[0])
    expect(lines[0]["parameters"]["nonzeros"] == 2 * len(entries) - wide * high, lines[0])


def within(times, most, problem, *options):
    """Every version of a problem takes what was stated at least, and in one of many tries no more than some times that; a
    busy machine oversleeps. times: what a line of the program took, and what was stated."""
    late = {"all"}
    for _ in range(10):
        found = {line["version"]: times(line) for line in passes(problem, 1, *once, *options)}
        for version, (took, stated) in found.items():
            expect(took >= stated * 0.999 - 1e-6, version, "took", took, "where", stated, "was stated")
        slow = {version for version, (took, stated) in found.items() if took > most * stated}
        late = slow if "all" in late else late & slow
        if not late:
            return
    expect(False, "too slow each time:", late, found)


def case_slowdown():
    keys, slowdown, sort_passes, products = 2000, 2e-5, 2, 5  # a product per step, and the residual's
    within(lambda line: (line["samples"][0]["windows"][0], sort_passes * slowdown * keys / ranks), 3,
           sort, "--keys", keys, "--slowdown", slowdown)
    within(lambda line: (line["samples"][0]["compute"], products * 1e-6 * line["parameters"]["nonzeros"] / ranks), 5,
           gradient, "--n", 300, "--steps", products - 1, "--slowdown", 1e-6)


def case_damage():
    for program, options in ((sort, ["--keys", 1000]), (gradient, ["--n", 100])):
        result = launch(program, *options, *once, "--damage")
        expect(result.returncode == 1, result.about)
        for version in ("blocking", "waited", "nonblocking", "manual/3"):
            expect(f"WRONG, {version}: " in result.stdout, result.about)
        expect("checked:" not in result.stdout, result.about)


def case_wrong_messages():
    for program, function, options in ((sort, "MPI_Alltoallv", ["--keys", 1000, "--digit-bits", 8]),
                                       (gradient, "MPI_Allgather", ["--n", 100])):
        common = [*options, "--version", "blocking", "--repeat", 1, "--warm-up", 0]
        result = launch(program, *common, LD_PRELOAD=watch)
        expect(result.returncode == 0, result.about)
        result = launch(program, *common, LD_PRELOAD=watch, WATCH_DAMAGE=function)
        expect(result.returncode == 1 and "WRONG, blocking: " in result.stdout, result.about)


def case_calls():
    """Each version is made of the calls that its name says, and of plain MPI."""
    sort_passes, steps, segments, pieces = 2, 4, 3, 5
    products = steps + 1
    for program, options, gathers, cut in (
            (sort, ["--keys", 1000], sort_passes, 1),
            (gradient, ["--n", 300, "--steps", steps, "--segments", segments], products, segments)):
        for version, calls in (("blocking", (gathers, 0, 0, 0)), ("waited", (0, gathers * cut, 0, gathers * cut)),
                               ("nonblocking", (0, gathers * cut, 0, gathers * cut)),
                               ("manual", (0, gathers * cut, None, gathers * cut))):
            result = launch(program, *options, "--version", version, "--pieces", pieces, "--repeat", 1, "--warm-up", 0,
                            LD_PRELOAD=watch)
            expect(result.returncode == 0, result.about)
            made = dict(line.split()[1:] for line in result.stdout.splitlines() if line.startswith("calls "))
            for name, count in zip(("MPI_Allgather", "MPI_Iallgather", "MPI_Test", "MPI_Wait"), calls):
                if count is not None and not (version == "manual" and name == "MPI_Wait"):
                    expect(int(made[name]) == count, version, name, made[name], "instead of", count, result.about)
            if version == "manual":
                # At least one Test each, and none after the last piece or once it was there.
                expect(gathers * cut <= int(made["MPI_Test"]) <= gathers * cut * (pieces - 1), result.about)


def case_bad_input():
    missing = folder / "no" / "such"
    matrix = folder / "bad.mtx"
    matrix.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n7 1 1\n")
    for program, options, word in (
            (sort, ["--keys", "-5"], "--keys"), (sort, ["--keys", "many"], "--keys"),
            (sort, ["--input", "shuffled"], "shuffled"), (sort, ["--version", "fast"], "fast"),
            (sort, ["--pieces", "0"], "--pieces"), (sort, ["--key-bits", "16"], "--key-bits"),
            (sort, ["--digit-bits", "40"], "--digit-bits"), (sort, ["--json", missing], str(missing)),
            (sort, ["--keys", "2T"], "MPI_Alltoallv"), (sort, ["--slowdown", "-1"], "--slowdown"),
            (sort, ["surplus"], "surplus"), (gradient, ["--class", "Q"], "class Q"),
            (gradient, ["--n", "0"], "--n"), (gradient, ["--matrix", missing], "cannot be opened"),
            (gradient, ["--matrix", matrix], "line 3"), (gradient, ["--class", "S", "--n", "9"], "--class"),
            (gradient, ["--segments", "0"], "--segments"), (sort, ["--slowdown", "nan"], "--slowdown"),
            (gradient, ["--tolerance", "nan"], "--tolerance"), (gradient, ["--n", "9", "--shift", "inf"], "--shift")):
        result = launch(program, *options)
        expect(result.returncode == 2, result.about)
        told = [line for line in (result.stderr + result.stdout).splitlines()
                if line.startswith(("radix-sort: ", "conjugate-gradient: "))]
        expect(len(told) == 1 and word in told[0], "not one sentence with", word, result.about)
        expect("terminate called" not in result.stderr, result.about)


globals()["case_" + case]()
for path in folder.iterdir():
    path.unlink()
folder.rmdir()
print("passed")
