"""Codes of physics, chemistry and engineering, as Debian builds them, give the same answers with everything forced on as
without Thalweg.

    codes.py MPI.json CODE RANKS      CODE: a function's name of CODES, below
"""

import gzip
import os
import pathlib
import re
import shutil
import tempfile

from conformance import HERE, Mpi, Skipped, expect, main, operations_of, read_report, run

INPUTS = HERE / "programs/codes"
EVERYTHING = {"ALLTOALLV": "spread", "ALLREDUCE": "recursive_doubling", "ALLGATHER": "ring", "BCAST": "binomial",
              "BCAST_MIN_BYTES": 0, "BARRIER": "dissemination", "SETUP": "early"}
# What each launch has besides; the ranks are pretended to lie on two hosts in some. Over the MPI exchanges stay native,
# because most codes ask for one thread.
HOSTS = {"TOPOLOGY": "node:2 core:2", "UCX_TLS": "tcp,self"}
WAYS = {"inside the host": {"TRANSPORT": "shm"},
        "between hosts": {"TRANSPORT": "ucx", **HOSTS},
        "of whole hosts": {"TRANSPORT": "shm", "ALLTOALLV": "node_leader", "BCAST": "node_leader(intra=binomial,inter=chain)",
                           **HOSTS},
        "over the library": {"TRANSPORT": "mpi", "BCAST": "circulant"}}
SHIPPED = "as it is shipped"
NUMBER = r"-?\d+\.\d*(?:[eEdD][+-]?\d+)?"


def numbers(text):
    return [float(word.replace("D", "e").replace("d", "e")) for word in re.findall(NUMBER, text)]


def lines(text, *patterns):
    """The numbers of the lines that match one of the patterns."""
    return [value for line in text.splitlines() if any(re.search(p, line) for p in patterns) for value in numbers(line)]


def read(path):
    expect(path.exists(), "it wrote no", path.name)
    return path.read_text(encoding="utf-8", errors="replace")


def needs(path):
    if not pathlib.Path(path).exists():
        raise Skipped(f"{path} is not installed")
    return pathlib.Path(path)


class Code:
    """How a code is run, and what it answered: `files` are copied where it runs; `answers` takes that folder and what was
    printed. Numbers may differ by `off`, relative to the largest of them."""

    def __init__(self, words, answers, files=(), prepare=None, off=1e-9):
        self.words, self.answers, self.files, self.prepare, self.off = words, answers, files, prepare, off


def pseudopotential(folder, _):
    packed = needs("/usr/share/doc/quantum-espresso/examples/atomic/pseudo-LDA-0.5/Si.pz-vbc.UPF.gz")
    (folder / "Si.UPF").write_bytes(gzip.decompress(packed.read_bytes()))


def cavity(folder, ranks):
    """The tutorial's flow in a box, on a finer grid, cut up for the ranks."""
    for part in ("0", "constant", "system"):
        shutil.copytree(needs(f"/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity/{part}"),
                        folder / part)
    for path in folder.rglob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()

    def change(name, *changes):
        path = folder / "system" / name
        text = read(path)
        for old, new in changes:
            expect(old in text, f"{name} has no {old}")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    change("blockMeshDict", ("(20 20 1)", "(32 32 1)"))
    change("controlDict", ("endTime         0.5", "endTime         0.1"), ("deltaT          0.005", "deltaT 0.002"),
           ("writeInterval   20", "writeInterval 50"), ("writePrecision  6", "writePrecision 12"))
    (folder / "system/decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {ranks};\nmethod simple;\nsimpleCoeffs {{ n ({ranks // 2} 2 1); delta 0.001; }}\n",
        encoding="utf-8")
    for step in ("blockMesh", "decomposePar"):
        done = run([step], {"WM_PROJECT_DIR": "/usr/share/openfoam"}, folder=folder)
        expect(done.code == 0, done)


def energies(folder, _):
    """Of each step; the last column says how long it took."""
    return [value for line in read(folder / "water-1.ener").splitlines()[1:] for value in numbers(line)[:-1]]


def fields(folder, _):
    return [value for path in sorted(folder.glob("processor*/0.1/[Up]")) for value in numbers(read(path))]


CODES = {
    # Charges on a mesh, whose transforms exchange by MPI_Alltoallv where they are told to.
    "lammps": Code(["lmp", "-in", "lammps.in", "-log", "none"], lambda folder, _: numbers(read(folder / "final.dump")),
                   ["lammps.in"]),
    # Transforms of wave functions, which are cut up over the ranks.
    "espresso": Code(["pw.x", "-in", "espresso.in"],
                     lambda folder, out: lines(out, "^!", "Total force", r"^ +atom +\d+ type", r"^ +estimated scf"),
                     ["espresso.in"], pseudopotential, 1e-6),
    # Matrices, grids and molecules in communicators of their own.
    "cp2k": Code(["cp2k.psmp", "-i", "cp2k.in"], energies, ["cp2k.in"], off=1e-6),
    # Global arrays, whose remote memory is messages. (What Debian builds with MPICH fails by itself.)
    "nwchem": Code(["nwchem.openmpi", "nwchem.in"],
                   lambda folder, out: lines(out, "Total SCF energy", "Total DFT energy", r"^ +\d [OH] "), ["nwchem.in"],
                   off=1e-6),
    # Messages between neighbours beside reductions and gathers.
    "openfoam": Code(["icoFoam", "-parallel"], fields, [], cavity, 1e-6),
}
# What each must have had of us, at least.
TAKEN = {"lammps": ["alltoallv", "bcast"], "espresso": ["bcast", "allreduce"], "cp2k": ["bcast", "allreduce", "alltoallv"],
         "nwchem": ["bcast"], "openfoam": ["allreduce"]}


def answered(code, mpi, ranks, **settings):
    with tempfile.TemporaryDirectory(prefix="tw") as place:
        folder = pathlib.Path(place)
        for name in code.files:
            shutil.copy(INPUTS / name, folder)
        if code.prepare:
            code.prepare(folder, ranks)
        os.chdir(folder)  # where it reads and writes
        ended = mpi.launch(ranks, code.words, **settings)
        expect(ended.code == 0, ended)
        answers = code.answers(folder, ended.out)
        expect(len(answers) > 1, "it answered nothing:", ended)
        return answers


def test(path, name, ranks):
    mpi, code, ranks = Mpi(path), CODES[name], int(ranks)
    mpi.environment.update(OMP_NUM_THREADS="1", WM_PROJECT_DIR="/usr/share/openfoam")
    needs(shutil.which(code.words[0]) or f"/usr/bin/{code.words[0]}")
    native = answered(code, mpi, ranks, thalweg=False)
    size = max(abs(value) for value in native)
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        for way in (SHIPPED, *WAYS):
            settings = {} if way == SHIPPED else {**EVERYTHING, **WAYS[way]}
            report_file = f"{folder}/report.json"
            ours = answered(code, mpi, ranks, REPORT=report_file, **settings)
            expect(len(ours) == len(native), way, len(native), "numbers became", len(ours))
            most = max(abs(a - b) for a, b in zip(native, ours)) / size
            expect(most <= code.off, way, "answers differ by", most)
            report = read_report(report_file)
            expect(report["totals"]["errors"] == 0, way, report["totals"])
            taken = {operation: sum(calls.values()) for operation, calls in operations_of(report).items()}
            print(f"{way}: {len(ours)} numbers within {most:.1e}; {taken}")
            for operation in TAKEN[name] if way != SHIPPED else ():
                elsewhere = operation == "alltoallv" and settings["TRANSPORT"] == "mpi"
                expect(elsewhere or taken.get(operation, 0) > 0, way, f"no {operation} was taken:", taken)


if __name__ == "__main__":
    main(test)
