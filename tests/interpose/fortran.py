"""The cases of run.py about Fortran: what arrives at the wrappers, and the product itself under programs in Fortran."""

import re

from launches import Skipped, expect, reported

ASKED_FOR = {"THALWEG_BCAST_MIN_BYTES": "1", "THALWEG_BCAST": "chain:chunk_bytes=4K", "THALWEG_ALLGATHER": "ring",
             "THALWEG_ALLREDUCE": "recursive_doubling", "THALWEG_BARRIER": "dissemination"}


def case_fortran(context):
    if not context.fortran:
        raise Skipped("no Fortran for this library, or no compiler")
    for program in context.fortran:
        plain = context.launch((3, [program], None, {}))
        expect(plain.code == 0, program, plain)
        calls = re.search(r"broadcasts (\d+)", plain.out)[1]
        for take in ("none", "all"):
            run = context.launch((3, [program], context.objects(), {"PROBE_TAKE": take}))
            expect(run.code == 0 and run.out == plain.out, program, take, run)
            expect(run.count("initialized") == ["1"] * 3 and run.count("finalizing") == ["1"] * 3, program, run)
            expect(run.count("seen") == [calls] * 3, program, take, run)
            expect(all(int(n) > 0 for n in run.count("freed")), program, run)


def case_fortran_requests(context):
    """The product itself: operations that are ours, completed from Fortran."""
    if not context.fortran_requests:
        raise Skipped("no Fortran for this library, or no compiler")
    for program in context.fortran_requests:
        plain = context.launch((3, [program], None, {}))
        expect(plain.code == 0, program, plain)
        run, taken, rows = reported(context, [program], ASKED_FOR)
        expect(run.out == plain.out, program, run, plain)
        expect(taken == {"ibcast": 55, "iallgather": 36, "iallreduce": 18, "ibarrier": 18, "allgather": 18,
                         "allgatherv": 18, "allreduce": 18}, program, taken, rows)


def case_fortran_neighbours(context):
    """The product itself: neighbourhood collectives called from Fortran, natively and as ours."""
    if not context.fortran_neighbours:
        raise Skipped("no Fortran for this library, or no compiler")
    left_out = 0
    for program in context.fortran_neighbours:
        # Where ranks abort, launchers may lose what they said.
        for _ in range(5):
            plain = context.launch((3, [program], None, {}))
            if plain.code == 0 or (plain.out + plain.err).strip():
                break
        # MPICH 4.0.2's mpi_f08 asks a grid for a distributed graph's neighbours, with or without us.
        if plain.code != 0 and "No Distributed Graph topology" in plain.out + plain.err:
            print(f"left out: {program}, which this library cannot run")
            left_out += 1
            continue
        # Open MPI 4.1.4 lets go of the types of Fortran's MPI_INEIGHBOR_ALLTOALLW before it has used them, and crashes.
        crashes = plain.code != 0 and "Segmentation fault" in plain.out + plain.err
        expect(plain.code == 0 or crashes, program, plain)
        run, taken, rows = reported(context, [program], {"THALWEG_ALLTOALLV": "spread", "THALWEG_TEST_TAKEN": "1"})
        expect(crashes or run.out == plain.out, program, run, plain)
        expect("done on 3 ranks" in run.out, program, run)
        kinds = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
        # 6 rounds on a ring, and 2 on each of a distributed graph, a graph and a line, not with large counts.
        rounds = 6 if "_large_" in program else 6 + 3 * 2
        wanted = {f"{prefix}neighbor_{kind}": rounds for kind in kinds for prefix in ("", "i")}
        if context.name != "openmpi4":  # it has no plans; of the others each is started twice
            wanted |= {f"neighbor_{kind}_init": 2 * rounds for kind in kinds}
        expect(taken == wanted, program, taken, wanted, rows)
    if left_out == len(context.fortran_neighbours):
        raise Skipped("this library cannot run them")


def case_fortran_sessions(context):
    """What makes a communicator of a session arrives, and the library makes it of the text that the program gave."""
    if not context.fortran_sessions:
        raise Skipped("no Fortran with sessions for this library, or no compiler")
    for program in context.fortran_sessions:
        plain = context.launch((2, [program], None, {}))
        expect(plain.code == 0 and "of 2 ranks" in plain.out, program, plain)
        run = context.launch((2, [program], context.objects(), {"PROBE_TAKE": "none"}))
        expect(run.code == 0 and run.out == plain.out, program, run)
        # By both where the binding calls the C function. Ranks have no number before their communicator exists.
        expect(run.count("of_sessions", "closing") in (["1"], ["2"]), program, run)


def case_fortran_plans(context):
    """The product itself: alltoalls and plans from Fortran, all of them ours."""
    if not context.fortran_plans:
        raise Skipped("no Fortran for this library, or no compiler")
    plans = context.name != "openmpi4"
    settings = dict(ASKED_FOR, THALWEG_ALLTOALLV="spread", THALWEG_SETUP="early", THALWEG_TEST_TAKEN="1")
    # Two rounds; alltoalls in place as well, and each of a plan's three starts counts.
    wanted = {}
    for kind, calls in (("alltoall", 4), ("alltoallv", 4), ("alltoallw", 4), ("allgatherv", 2)):
        wanted |= {kind: calls, f"i{kind}": calls}
        if plans:
            wanted[f"{kind}_init"] = 3 * calls
    if plans:
        wanted |= {"allgather_init": 6, "allreduce_init": 6, "bcast_init": 6, "barrier_init": 6}
    for program in context.fortran_plans:
        plain = context.launch((3, [program], None, {}))
        expect(plain.code == 0, program, plain)
        run, taken, rows = reported(context, [program], settings)
        expect(run.out == plain.out, program, run, plain)
        expect(taken == wanted, program, taken, wanted, rows)


def case_f08_procedures(context):
    """Intel MPI's mpi_f08, called as its compilers call it: what arrives, and the product itself."""
    program = context.f08_procedures
    if not program:
        raise Skipped("these are Intel MPI's")
    plain = context.launch((3, [program], None, {}))
    expect(plain.code == 0, plain)
    if context.family == "abi":  # its handles are wider than ours: it is passed by
        run = context.launch((3, [program], context.objects(), {"PROBE_TAKE": "all"}))
        expect(run.code == 0 and run.out == plain.out and run.count("initialized") == [], run)
        run, taken, rows = reported(context, [program], ASKED_FOR)
        expect(run.out == plain.out and taken == {}, run, plain, taken, rows)
        # Where C has started MPI we are there, and leave alone what its mpi_f08 would complete past us.
        run, taken, rows = reported(context, [program, "c"], ASKED_FOR)
        expect(run.code == 0 and run.out == plain.out and taken == {"bcast": 1}, run, plain, taken, rows)
        return
    calls = re.search(r"broadcasts (\d+)", plain.out)[1]
    for take in ("none", "all"):
        run = context.launch((3, [program], context.objects(), {"PROBE_TAKE": take}))
        expect(run.code == 0 and run.out == plain.out, take, run)
        expect(run.count("initialized") == ["1"] * 3 and run.count("finalizing") == ["1"] * 3, take, run)
        expect(run.count("seen") == [calls] * 3 and all(int(n) > 0 for n in run.count("freed")), take, run)
    run, taken, rows = reported(context, [program], ASKED_FOR)
    expect(run.out == plain.out, run, plain)
    # All but the first, which asks for the set-up, and those on one rank.
    expect(taken == {"bcast": 24, "ibcast": 24, "allreduce": 12, "iallgather": 12, "bcast_init": 6}, taken, rows)
