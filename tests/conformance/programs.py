"""Programs that compare every byte of what they receive, under Thalweg: the examples in C, Fortran and Python, NumPy,
and one that reaches MPI through parallel HDF5 only.

    programs.py MPI.json sound PROGRAM         right bytes, and the report says that Thalweg moved them
    programs.py MPI.json sabotaged PROGRAM     wrong in every mode of the saboteur, or the test is worth nothing
"""

import re
import shutil
import tempfile

from conformance import HERE, Mpi, Skipped, algorithms_of, expect, main, read_report, run

MODES = ("flip", "drop", "repeat", "swap", "stale")
ALGORITHM = "chain:chunk_bytes=4K"
RIGHT, WRONG = "every byte correct", "WRONG"


def compiler(mpi, what):
    command = getattr(mpi, what)
    if not command or not shutil.which(command[0]):
        raise Skipped(f"{mpi.name} has no {'Fortran' if what == 'fortran' else 'C'} compiler here")
    return command


def example_c(mpi, folder):
    program = mpi.compile([*compiler(mpi, "cc"), "-O1", mpi.root / "examples/bcast.c"], f"{folder}/program")
    return [program, "--reps", "2", "0", "1", "8", "1000", "64K", "1M"]


def fortran(source):
    def build(mpi, folder):
        # Old compilers warn, new ones object, where mpif.h's buffers have several types.
        words = [*compiler(mpi, "fortran"), "-O1", "-w", "-fallow-argument-mismatch", f"-J{folder}"]
        if source == "bcast_f08.f90" and not mpi.f08:
            raise Skipped(f"{mpi.name} has no mpi_f08 for this compiler")
        sources = [mpi.root / "examples" / name for name in ("bcast_checks.f90", source)]
        return [mpi.compile([*words, *sources, *mpi.fortran_libraries], f"{folder}/program")]
    return build


def python(path):
    def build(mpi, _):
        if not mpi.python:
            raise Skipped(f"{mpi.name} has no mpi4py")
        return [mpi.python, "-B", mpi.root / path]
    return build


def hdf5(mpi, folder):
    if not mpi.hdf5_library:
        raise Skipped(f"{mpi.name} has no parallel HDF5")
    # A shared library may leave names open: its MPI calls are met by what HDF5 brings along.
    library = mpi.compile(["cc", "-O1", "-shared", "-fPIC", "-Dmain=application", f"-I{mpi.hdf5_include}",
                           f"-I{mpi.include}", HERE / "programs/hdf5.c", mpi.hdf5_library], f"{folder}/libapplication.so")
    program = mpi.compile(["cc", HERE / "programs/start.c", library, "-Wl,--allow-shlib-undefined"], f"{folder}/program")
    for file, wanted in ((program, "libapplication"), (library, "libhdf5")):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", file]).out)
        expect(any(wanted in name for name in needed), f"not linked to {wanted}:", needed)
        expect(not any("mpi." in name or "mpich." in name for name in needed if "hdf5" not in name), "an MPI:", needed)
    return [program, f"{folder}/data.h5"]


PROGRAMS = {
    "c": example_c,
    "mpif": fortran("bcast_mpif.f"),
    "use_mpi": fortran("bcast_use_mpi.f90"),
    "f08": fortran("bcast_f08.f90"),
    "python": python("examples/bcast.py"),
    "numpy": python("tests/conformance/programs/numpy_bcast.py"),
    "hdf5": hdf5,
}


def sound(mpi, program, folder):
    native = mpi.launch(3, program, thalweg=False)
    expect(native.code == 0 and RIGHT in native.out, "without Thalweg:", native)
    for algorithm in (ALGORITHM, "scatter_ring_trimmed", "circulant"):
        report_file = f"{folder}/{algorithm.split(':')[0]}.json"
        ours = mpi.launch(3, program, BCAST=algorithm, BCAST_MIN_BYTES=1, REPORT=report_file)
        expect(ours.code == 0 and RIGHT in ours.out, algorithm, ours)
        report = read_report(report_file)
        totals, chosen = report["totals"], algorithms_of(report)
        expect(totals["accelerated"] > 0 and totals["errors"] == 0, "accelerated:", report)
        expect(totals["accelerated_bytes"] > 0.9 * totals["bytes"], "most bytes are not ours:", report)
        expect({name.split(":")[0] for name in chosen} == {algorithm.split(":")[0]}, "another algorithm ran:", chosen)
        print(f"{totals['accelerated']} of {totals['calls']} broadcasts, {totals['accelerated_bytes']} bytes: {chosen}")


def sabotaged(mpi, program, _):
    settings = {"BCAST": ALGORITHM, "BCAST_MIN_BYTES": 2000}  # counts and lengths arrive: nothing waits for them
    # The saboteur's objects, told to do no damage, deliver: what fails below fails because of the damage.
    idle = mpi.launch(2, program, saboteur="flip:4000000000", **settings)
    expect(idle.code == 0 and RIGHT in idle.out, "the saboteur at rest:", idle)
    for mode in MODES:
        damaged = mpi.launch(2, program, saboteur=mode, **settings)
        expect(damaged.code not in (0, None), mode, "was not noticed:", damaged)
        expect(WRONG in damaged.out, mode, "did not show as wrong bytes:", damaged)
        expect(RIGHT not in damaged.out, mode, damaged)
    print("noticed:", ", ".join(MODES))


def test(path, way, name):
    mpi = Mpi(path)
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        {"sound": sound, "sabotaged": sabotaged}[way](mpi, PROGRAMS[name](mpi, folder), folder)


if __name__ == "__main__":
    main(test)
