"""The cases of run.py about calls of MPI's functions from inside MPI."""

from launches import Skipped, expect

COUNTED = ("seen", "exchanged", "met", "blocking", "nonblocking", "persistent", "completed", "started", "released",
           "created", "freed")


def case_binding(context):
    """A call from Fortran whose binding calls the C function is asked about once, and so is the next one from C."""
    if context.family == "abi":
        raise Skipped("its header knows no Fortran")
    if context.family == "ompi":
        raise Skipped("its bindings call PMPI_*")
    run = context.program("binding", 2, preload=f"{context.objects()}:{context.tool}")
    expect(run.code == 0 and "wrong" not in run.out, run)
    expect(run.count("seen") == ["2", "2"], run)


def case_files(context):
    """A program that calls MPI for a file only: what the library calls for it is by its profiling names and passes unseen.
    Open MPI's ROMIO alone calls MPI_Ialltoall as a program does."""
    for component in ({}, {"OMPI_MCA_io": "^ompio"}) if context.family == "ompi" else ({},):
        plain = context.program("files", 2, preload=None, **component)
        if component and plain.code != 0:
            print("left out, this library has nothing else for files:", plain)
            continue
        expect(plain.code == 0, "without us:", plain)
        run = context.program("files", 2, take="all", **component)
        expect(run.code == 0 and run.out == plain.out, component, run, plain)
        for counter in COUNTED:
            if counter != "nonblocking" or not component:
                expect(run.count(counter) == ["0"] * 2, counter, component, run)
