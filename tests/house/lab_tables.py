"""scripts/lab-tables lists exchanges on every shape, dense and sparse, and measures each as listed, with a stand-in for
the command that writes down what it was asked to do.

    lab_tables.py SOURCE_ROOT BUILD
"""
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


def asked(tree, table):
    """The options that the stand-in was given for a table; how often each stands there is once."""
    record = tree / "asked"
    record.unlink(missing_ok=True)
    subprocess.run([tree / "scripts/lab-tables", *table], check=True, cwd=tree)
    calls = [line.split("\t") for line in record.read_text(encoding="utf-8").splitlines()]
    bench = [call for call in calls if call[:2] == ["bench", "alltoallv"]]
    expect(len(bench) == 1, table, "asked for", calls)
    options = dict(zip(bench[0][2::2], bench[0][3::2]))
    expect(all(name.startswith("--") for name in options), table, "asked for", bench[0])
    return options


# The patterns that the bench knows by name; a file of a matrix is one more.
described = subprocess.run([build / "bin/thalweg", "bench", "alltoallv", "--help"], check=True, capture_output=True,
                           text=True).stdout
words = re.search(r"who\s+sends\s+to\s+whom,\s+comma-separated:(.*?)--sizes", described, re.S)[1]
named = set(re.findall(r"\b(dense|uniform|powerlaw|banded|block|one_to_many)\b", words))
expect({"dense", "banded"} <= named, "the bench's patterns:", words)

with tempfile.TemporaryDirectory(prefix="tw") as folder:
    tree = pathlib.Path(folder)
    for name in ("scripts/lab-tables", "bench/matrices/poisson-4x4x4.mtx"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tree / name)
    stand_in = tree / "build/bin/thalweg"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text("#!/bin/sh\nIFS='\t'\nprintf '%s\\n' \"$*\" >> asked\n", encoding="utf-8")
    stand_in.chmod(0o755)

    listed = subprocess.run([tree / "scripts/lab-tables", "--list"], check=True, capture_output=True, text=True).stdout
    tables = [line.split()[1:] for line in listed.splitlines() if line.startswith("table alltoallv ")]
    expect(len(tables) == len({tuple(table) for table in tables}), "listed twice:", tables)
    seen, patterns = set(), set()
    for table in tables:
        options = asked(tree, table)
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
        seen.add((mpi, shape, pattern))
        patterns.add(pattern)
    expect({(mpi, shape, "dense") for mpi in MPIS for shape in DENSE} <= seen, "dense tables:", sorted(seen))
    expect(named <= patterns and any(pattern.endswith(".mtx") for pattern in patterns), "patterns:", patterns)
    wanted = {(mpi, shape, pattern) for mpi in MPIS for shape in SPARSE for pattern in patterns}
    expect(wanted <= seen, "not listed:", sorted(wanted - seen))
    print(f"{len(tables)} tables of exchanges")
