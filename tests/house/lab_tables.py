"""scripts/lab-tables lists exchanges on every shape, dense and sparse, blocking and nonblocking collectives on every shape, and
several links per host, the applications, and halos of every kind and mix, and measures each as listed, with a stand-in for
the command that writes down what it was asked to do.

    lab_tables.py SOURCE_ROOT BUILD
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root, build = map(pathlib.Path, sys.argv[1:])
MPIS = ("mpich", "openmpi", "impi")
DENSE = ("4x1", "4x2", "3x3", "8x1", "1x2")
SPARSE = ("4x2", "8x1")
SIZES = {"256", "4K", "32K", "256K", "1M"}


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def commands(tree, table):
    """What the stand-in was asked to measure for a table, by words."""
    record = tree / "asked"
    record.unlink(missing_ok=True)
    subprocess.run([tree / "scripts/lab-tables", *table], check=True, cwd=tree)
    calls = [line.split("\t") for line in record.read_text(encoding="utf-8").splitlines()]
    return [call for call in calls if call[0] == "bench" and call[1] != "document"]


def check_collectives(tree, listed):
    """Every collective on every shape, at the rates that it is to be measured at; the command understands all of it."""
    wanted = {("blocking", mpi, shape, collective) for mpi in MPIS for shape in ("4x1", "4x2", "8x1")
              for collective in ("allgather", "allreduce")}
    wanted |= {("overlap", mpi, shape, collective) for mpi in MPIS for shape in ("2x1", "4x1", "4x2", "8x1")
               for collective in ("iallgather", "ibcast", "iallreduce")}
    wanted |= {("overlap", mpi, "2x1", collective, "50mbit") for mpi in MPIS
               for collective in ("iallgather", "ibcast", "iallreduce")}
    wanted |= {("rails", mpi, "4x1", "iallgather") for mpi in MPIS}
    tables = {tuple(line.split()[1:]) for line in listed.splitlines()}
    expect(wanted <= tables, "not listed:", sorted(wanted - tables))
    for table in sorted(wanted):
        kind, mpi, shape, collective = table[:4]
        calls = commands(tree, table)
        expect(len(calls) == (2 if kind == "rails" else 1), table, calls)
        for number, call in enumerate(calls):
            words = dict(zip(call, call[1:]))
            rate = "50mbit" if len(table) == 5 or shape == "8x1" or kind == "rails" else "100mbit"
            expect((words["bench"], words["--mpi"], words["--rate"]) == (collective, mpi, rate), table, call)
            expect([words["--hosts"], words["--ppn"]] == shape.split("x"), table, call)
            expect(words["--out"] == f"bench/results/{kind}-{mpi}-{shape}.jsonl", table, call)
            expect(("--overlap" in call) == (kind != "blocking"), table, call)
            expect(kind != "rails" or words["--rails"] == str(number + 1), table, call)
            # All options are understood when the size is what is wrong.
            call[call.index("--bytes") + 1] = "0"
            said = subprocess.run([build / "bin/thalweg", *call], capture_output=True, text=True, cwd=tree)
            expect(said.returncode != 0 and "--bytes 0" in said.stderr, table, call, said.stderr)
    return len(wanted)


def check_applications(tree, listed):
    """The applications on one shape, the exchange of a refined mesh on two."""
    wanted = {("apps", mpi, "4x1") for mpi in MPIS}
    wanted |= {("apps", mpi, shape, "amr") for mpi in MPIS for shape in ("4x1", "4x2")}
    tables = {tuple(line.split()[1:]) for line in listed.splitlines()}
    expect(wanted <= tables, "not listed:", sorted(wanted - tables))
    for table in sorted(wanted):
        (call,) = commands(tree, table)
        words = dict(zip(call, call[1:]))
        expect((words["bench"], words["--mpi"]) == ("apps", table[1]), table, call)
        expect([words["--hosts"], words["--ppn"]] == table[2].split("x"), table, call)
        expect(words.get("--app") == (table[3] if len(table) == 4 else None), table, call)
        expect(words["--out"] == f"bench/results/apps-{table[1]}-{table[2]}.jsonl", table, call)
    return len(wanted)


def check_halos(tree, listed):
    """Halos of each mix on every shape; corners, four dimensions, faces of one direction, changes, pairs and computation
    on one or two."""
    wanted = {("halo", mpi, shape) for mpi in MPIS for shape in ("4x1", "4x2", "2x4", "3x3", "1x2")}
    wanted |= {("halo", mpi, "4x2", kind) for mpi in MPIS
               for kind in ("pairs", "changing", "upwind", "lattice", "corners", "overlap")}
    wanted |= {("halo", mpi, "4x1", "overlap") for mpi in MPIS}
    tables = [tuple(line.split()[1:]) for line in listed.splitlines() if line.startswith("table halo ")]
    expect(set(tables) == wanted and len(tables) == len(wanted), "halos listed:", tables)
    for table in sorted(wanted):
        _, mpi, shape, *kind = table
        hosts, ppn = shape.split("x")
        calls = commands(tree, table)
        expect(len(calls) == (1 if kind else 2), table, calls)
        for call in calls:
            words = dict(zip(call, call[1:]))
            expect((words["bench"], words["--mpi"], words["--rate"]) == ("halo", mpi, "100mbit"), table, call)
            expect([words["--hosts"], words["--ppn"]] == ["0" if hosts == "1" else hosts, ppn], table, call)
            expect(words["--out"] == f"bench/results/{'-'.join(table)}.jsonl", table, call)
            expect((words.get("--points"), words.get("--dims")) == {
                ("corners",): ("27", None), ("lattice",): (None, "4")}.get(tuple(kind), (None, None)), table, call)
            for flag in ("pairs", "changing", "upwind", "overlap"):
                expect((f"--{flag}" in call) == (kind == [flag]), table, call)
            if "--cells" not in words:  # a run that changes has its own
                expect(kind == ["changing"], table, call)
                continue
            # All options are understood when the cells are what is wrong, or that the MPI is not here.
            call[call.index("--cells") + 1] = "0"
            said = subprocess.run([build / "bin/thalweg", *call], capture_output=True, text=True, cwd=tree)
            wrong = any(each in said.stderr for each in ("--cells 0: ", "--hosts 0: ", "thalweg-bench-"))
            expect(said.returncode != 0 and wrong, table, call, said.stderr)
        if not kind:
            # Bound by the wire and balanced; on hosts of several ranks by copies as well. Then cut in all dimensions.
            words = dict(zip(calls[0], calls[0][1:]))
            expect(words["--grid"] == f"{hosts}x{ppn}x1" and "--grid" not in calls[1], table, calls)
    for shape in ("4x2", "2x4", "3x3"):
        first = commands(tree, ("halo", "mpich", shape))[0]
        mixes = set(first[first.index("--cells") + 1].split(","))
        expect({"22", "90", "640x8x1024", "1024x2x1024", "2048x1x1024"} <= mixes, shape, mixes)
    return len(wanted)


def asked(tree, table):
    """The options that the stand-in was given for a table, in each of its launches; each option once."""
    launches = []
    for command in commands(tree, table):
        expect(command[1] == "alltoallv", table, "asked for", command)
        options = dict(zip(command[2::2], command[3::2]))
        expect(all(name.startswith("--") for name in options), table, "asked for", command)
        launches.append(options)
    return launches


# The patterns that the bench knows by name; a file of a matrix is one more.
described = subprocess.run([build / "bin/thalweg", "bench", "alltoallv", "--help"], check=True, capture_output=True,
                           text=True).stdout
words = re.search(r"who\s+sends\s+to\s+whom,\s+comma-separated:(.*?)--sizes", described, re.S)[1]
named = set(re.findall(r"\b(dense|uniform|powerlaw|banded|block|one_to_many)\b", words))
expect({"dense", "banded"} <= named, "the bench's patterns:", words)

with tempfile.TemporaryDirectory(prefix="tw") as folder:
    tree = pathlib.Path(folder)
    for name in ("scripts/lab-tables", *(path.relative_to(root) for path in root.glob("bench/matrices/*.mtx"))):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tree / name)
    stand_in = tree / "build/bin/thalweg"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text("#!/bin/sh\nIFS='\t'\nprintf '%s\\n' \"$*\" >> asked\n", encoding="utf-8")
    stand_in.chmod(0o755)

    listed = subprocess.run([tree / "scripts/lab-tables", "--list"], check=True, capture_output=True, text=True).stdout
    refused = subprocess.run([tree / "scripts/lab-tables", "touch", "anything"], capture_output=True, text=True,
                             cwd=tree)
    expect(refused.returncode == 2 and refused.stderr.startswith("lab-tables: there is no table touch; "), refused)
    # What is missing, too much or misspelt would be measured for hours under a name that nobody looks at.
    for words in ("bcast", "bcast mpich", "bcast mpich 4", "bcast mpich 4x", "bcast mpich 4x2 again", "onehost", "small mpich 1x2",
                  "trimmed mpich 4x1", "trimmed mpich", "blocking mpich 4x1", "blocking mpich 4x1 table", "rails mpich 4x1 bcast",
                  "overlap mpich 2x1 iallgather 50mbit twice", "alltoallv mpich", "alltoallv mpich 0x4", "halo mpich 4x2 pair",
                  "halo mpich", "apps", "waiters now", "document all", "--list all"):
        refused = subprocess.run([tree / "scripts/lab-tables", *words.split()], capture_output=True, text=True, cwd=tree)
        expect(refused.returncode == 2 and refused.stderr.startswith(f'lab-tables: there is no table "{words}": ask for ')
               and refused.stderr.count("\n") == 1, words, refused)
    for words in ([""], ["bcast", "", "4x2"], ["halo", "mpich", "4x2", ""]):
        refused = subprocess.run([tree / "scripts/lab-tables", *words], capture_output=True, text=True, cwd=tree)
        expect(refused.returncode == 2 and refused.stderr.count("\n") == 1, words, refused)
    missing = subprocess.run([tree / "scripts/lab-tables", "bcast", "mpich", "4x2"], capture_output=True, text=True, cwd=tree,
                             env={**os.environ, "LAB_TABLES_THALWEG": "no/thalweg"})
    expect(missing.returncode == 2 and missing.stderr.startswith("lab-tables: no/thalweg is not there: "), missing)
    expect(not (tree / "asked").exists() and not (tree / "anything").exists(), "a command was run for a table")
    tables = [line.split()[1:] for line in listed.splitlines() if line.startswith("table alltoallv ")]
    expect(len(tables) == len({tuple(table) for table in tables}), "listed twice:", tables)
    seen, patterns = set(), set()
    for table in tables:
        options, *others = asked(tree, table)
        mpi, shape, pattern = options["--mpi"], table[2], options["--pattern"]
        hosts, ppn = shape.split("x")
        expect([options["--hosts"], options["--ppn"]] == ["0" if hosts == "1" else hosts, ppn], table, options)
        expect(options["--rate"] == ("50mbit" if hosts == "8" else "100mbit"), table, options)
        expect(options["--out"] == f"bench/results/alltoallv-{mpi}-{shape}.jsonl", table, options)
        expect(pattern in named or (tree / pattern).is_file(), table, "has no pattern", pattern)
        if pattern in named:
            expect(SIZES <= set(options["--sizes"].split(",")), table, options)
        columns = options.get("--columns", "native,native (A/A),native init,thalweg,thalweg init").split(",")
        expect({"native", "native (A/A)", "native init", "thalweg", "thalweg init"} <= set(columns), table, options)
        # Single algorithms and windows are told apart in a launch of their own, beside native calls of that launch; on
        # one host, windows for the paper's comparison in another.
        expect(len(others) == (pattern == "dense") + (hosts == "1"), table, "has launches:", others)
        for single in others:
            for name in ("--mpi", "--hosts", "--ppn", "--rate", "--pattern", "--out"):
                expect(single[name] == options[name], table, name, single)
            columns = single["--columns"].split(",")
            if "rma_fence" in columns:
                expect(hosts == "1" and single["--sizes"] == options["--sizes"], table, single)
                continue
            expect({"native", "native (A/A)", "rma_pscw", "thalweg init node_leader"} <= set(columns), table, single)
            # It crashes beside persistent alltoalls of Intel MPI.
            expect(("rma_get" in columns) == (mpi != "impi"), table, single)
        seen.add((mpi, shape, pattern))
        patterns.add(pattern)
    expect({(mpi, shape, "dense") for mpi in MPIS for shape in DENSE} <= seen, "dense tables:", sorted(seen))
    matrices = {f"bench/matrices/{path.name}" for path in root.glob("bench/matrices/*.mtx")}
    expect(len(matrices) > 1 and named | matrices == patterns, "patterns:", patterns)
    wanted = {(mpi, shape, pattern) for mpi in MPIS for shape in SPARSE for pattern in patterns}
    expect(wanted <= seen, "not listed:", sorted(wanted - seen))
    print(f"{len(tables)} tables of exchanges, {check_collectives(tree, listed)} of collectives, "
          f"{check_applications(tree, listed)} of applications, {check_halos(tree, listed)} of halos")

    # Where there is no lab, what needs none is measured all the same, and the others are skipped.
    first, rest = stand_in.read_text(encoding="utf-8").split("\n", 1)
    stand_in.write_text(first + "\n[ \"$1\" != lab ] || exit 1\n" + rest, encoding="utf-8")
    for table in (("alltoallv", "mpich", "1x2"), ("halo", "impi", "1x2"), ("onehost", "mpich"), ("waiters",)):
        expect(commands(tree, table), table, "was not measured without a lab")
    for table in (("alltoallv", "mpich", "4x1"), ("halo", "impi", "4x1"), ("bcast", "mpich", "4x1"),
                  ("trimmed", "mpich", "8")):
        skipped = subprocess.run([tree / "scripts/lab-tables", *table], capture_output=True, text=True, cwd=tree)
        expect(skipped.returncode == 77, table, "without a lab:", skipped)
