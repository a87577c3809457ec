#!/usr/bin/env python3
"""Runs one case of the interposition tests on one MPI library: run.py CONTEXT.json CASE [LAUNCHER…]

CONTEXT.json is written by CMake: how to launch, where the programs and the preload objects are. The preload objects are
the wrappers with the recording entry of probe/entry.cpp, so that what arrived can be counted. LAUNCHER replaces the
library's own. Exit status 0: passed,
77: does not apply to this library (said why), 1: failed.
"""

import re
import signal
import sys

import presence
from fortran import (case_f08_procedures, case_fortran, case_fortran_neighbours, case_fortran_plans,  # noqa: F401
                     case_fortran_requests, case_fortran_sessions)  # noqa: F401
from inside import case_binding, case_files  # noqa: F401
from launches import SKIP, Context, Failure, Skipped, expect, reported, same


def both_ways(context, mode, ranks=3, initialized=True, **more):
    """Declining and taking: every byte right, every rank asked about the same calls, more than none."""
    plain = context.program(mode, ranks, preload=None, **more)
    expect(plain.code == 0, "without us:", plain)
    for take in ("none", "all"):
        run = context.program(mode, ranks, take=take, **more)
        expect(run.code == 0, take, run)
        expect(same(run.out, plain.out), take, "says something else than without us:", run, plain)
        if initialized:
            expect(len(run.reports) == ranks, take, "not every rank reported:", run)
            expect(run.count("initialized") == ["1"] * ranks, "MPI_Init:", run)
            seen = run.count("seen")
            expect(all(int(n) > 0 for n in seen), "no broadcast arrived:", run)
            expect(run.count("taken") == (["0"] * ranks if take == "none" else seen), take, "is not what was taken:", run)
    return run


def case_bcast(context):
    both_ways(context, "bcast", ranks=4)
    both_ways(context, "bcast", ranks=1)


def case_direct(context):
    """Where nobody need see broadcasts, a wrapper asks once and jumps to the native function from then on."""
    plain = context.program("bcast", 3, preload=None)
    run = context.program("bcast", 3, take="direct")
    expect(run.code == 0 and same(run.out, plain.out), run, plain)
    expect(run.count("seen") == ["1"] * 3 and run.count("taken") == ["0"] * 3, run)
    if context.exported("MPI_Bcast_c"):
        run = context.program("bigcount", 2, take="direct")
        # MPI_Bcast and MPI_Bcast_c are two wrappers.
        seen = run.count("seen")
        expect(run.code == 0 and len(seen) == 2 and all(n in ("1", "2") for n in seen), run)


def case_passing(context):
    """Each wrapper asks once, also where of broadcasts only short ones are handed on; all are made."""
    plain = context.program("passing", 3, preload=None)
    for take in ("direct", "limited"):
        run = context.program("passing", 3, take=take)
        expect(run.code == 0 and same(run.out, plain.out), take, run, plain)
        # MPI_Bcast, MPI_Alltoall, -v are `seen`. The first is asked for each time where handles tell no sizes: the
        # probe has no table of these.
        broadcasts = 20 if take == "limited" and context.family != "mpich" else 1
        for counter, calls in (
            ("seen", broadcasts + 2),
            ("exchanged", 2),
            ("blocking", 2),
            ("nonblocking", 3),
            ("met", broadcasts + 4),
            ("completed", 9),
            ("started", 2),
            ("released", 1),
        ):
            expect(run.count(counter) == [str(calls)] * 3, take, counter, run)
    run = context.program("passing", 3, take="none")
    every = (("blocking", 40), ("nonblocking", 60), ("completed", 240), ("started", 40), ("released", 20))
    expect(run.code == 0 and all(run.count(counter) == [str(calls)] * 3 for counter, calls in every), run)


def case_errors(context):
    both_ways(context, "errors", ranks=2)


def case_fork(context):
    both_ways(context, "fork", ranks=2)


def case_callbacks(context):
    both_ways(context, "callbacks", ranks=2)


def case_threads(context):
    both_ways(context, "threads", ranks=2)


def no_later(launch):
    """A launch of two ranks without us and one with us, which takes at most 10 s longer; a busy machine is given three
    pairs for that."""
    for _ in range(3):
        plain, run = launch(preload=None), launch(take="all")
        if run.seconds < plain.seconds + 10:
            break
    expect(run.seconds < plain.seconds + 10, run.seconds, plain.seconds)
    expect(run.count("initialized", "initialized") == ["1"] * 2, "we were not there:", run)
    return plain, run


def case_exit_without_finalize(context):
    plain, run = no_later(lambda **options: context.program("exit", 2, **options))
    expect((run.code != 0) == (plain.code != 0), run, plain)
    expect("wrong" not in run.out, run)


def aborted(context, **options):
    """Intel MPI's launcher writes to helpers that have left, and dies of it (SIGPIPE) in one abort of twenty-five, without us too."""
    for _ in range(5):
        run = context.program("abort", 2, **options)
        if run.code != -signal.SIGPIPE:
            break
    return run


def case_abort(context):
    plain, run = no_later(lambda **options: aborted(context, **options))
    expect(run.code == plain.code != 0, run, plain)


def case_names(context):
    """A program that asks which functions its MPI has gets its MPI's answer."""
    plain, run = context.program("names", 1, preload=None), context.program("names", 1)
    # Fortran's name is in our session object wherever the C name is, whether or not the MPI has a Fortran library.
    of_c = [re.findall(r"^MPI_.*", r.out, re.M) for r in (plain, run)]
    expect(of_c[0] and of_c[0] == of_c[1], plain, run)


def case_bigcount(context):
    if not context.exported("MPI_Bcast_c"):
        raise Skipped("this library has no MPI_Bcast_c")
    run = both_ways(context, "bigcount", ranks=2)
    expect(run.count("taken") == ["3", "3"], run)


def sessions(context, **options):
    """On a busy machine MPICH 5.0.2 fails in MPI_Comm_create_from_group in one run of eight, without us too."""
    for _ in range(5):
        run = context.program("sessions", 2, **options)
        if run.code == 0 or not re.search("create_from_group|failed to unpack address", run.out + run.err):
            break
    return run


def case_sessions(context):
    if not context.exported("MPI_Session_init"):
        raise Skipped("this library has no sessions")
    plain = sessions(context, preload=None)
    if plain.code != 0:
        raise Skipped(f"sessions do not work here without us either: exit status {plain.code}")
    run = sessions(context)
    expect(run.code == 0 and run.out == plain.out, run, plain)
    # Ranks have no number before their communicator exists: all report as 0.
    epochs = plain.out.split()[0]
    expect(run.count("opened", "closing") == [epochs], run)
    expect(run.count("closing", "closing") == [epochs], run)
    expect(run.count("of_sessions", "closing") == [epochs], run)
    expect(run.count("initialized", "closing") == ["0"], "the world was touched:", run)


TOOL = re.compile(r"tool: init (\d+) bcast (\d+) finalize (\d+)")


def tool_counts(run):
    expect(run.code == 0, run)
    found = TOOL.search(run.out)
    expect(found is not None, "the tool did not speak:", run)
    return tuple(int(n) for n in found.groups())


def case_tools(context):
    tool, ours = context.tool, context.objects()
    alone = tool_counts(context.program("bcast", 2, preload=tool))
    # Below us: sees every call that is declined, and none of our own traffic.
    run = context.program("bcast", 2, preload=f"{ours}:{tool}")
    expect(tool_counts(run) == alone and run.count("presence") == ["all"] * 2, "below, declined:", run)
    run = context.program("bcast", 2, preload=f"{ours}:{tool}", take="all")
    expect(tool_counts(run) == (1, 0, 1), "below, taken:", run)
    # Or nothing of them where the user wants it so, with its MPI_Init and MPI_Finalize as well.
    run = context.program("bcast", 2, preload=f"{ours}:{tool}", THALWEG_CALL_THROUGH="pmpi")
    expect(run.code == 0 and "tool:" not in run.out and run.count("presence") == ["all"] * 2, "below, PMPI:", run)
    expect([int(seen) for seen in run.count("seen")] == [alone[1]] * 2, "below, PMPI:", run)
    # Above us, passing calls on: sees every call, and so do we. It is asked once more, by us, whether it does.
    run = context.program("bcast", 2, preload=f"{tool}:{ours}", take="all", TOOL_CALLS="next")
    expect(tool_counts(run) == (1, alone[1] + 1, 1), "above, next:", run)
    expect(run.count("taken") == [str(alone[1])] * 2, "above, next:", run)
    # Above us, answering with PMPI_*: nothing reaches us, which is found out, and told once.
    run = context.program("bcast", 2, preload=f"{tool}:{ours}", take="all")
    expect(tool_counts(run) == (1, alone[1] + 1, 1), "above, PMPI:", run)
    expect(run.count("presence") == ["some"] * 2 and run.count("seen") == ["0"] * 2, "above, PMPI:", run)
    # Any one call that does not reach us is enough.
    run = context.program("bcast", 2, preload=f"{tool}:{ours}", take="all", TOOL_CALLS="next", TOOL_ALLTOALLV="profiled")
    expect(run.count("presence") == ["some"] * 2 and run.count("taken") == ["0"] * 2, "alltoallv, PMPI:", run)
    # On one rank only: the others must not wait for it.
    program = [context.programs["program"], "bcast"]
    run = context.launch((1, program, f"{tool}:{ours}", {"PROBE_TAKE": "all"}),
                         (2, program, ours, {"PROBE_TAKE": "all"}))
    expect(run.code == 0 and run.count("presence") == ["some"] * 3, "above on one rank:", run)


def case_plugin(context):
    """MPI behind a library that was opened RTLD_LOCAL, where RTLD_NEXT finds nothing."""
    program = [context.programs["loader"], context.programs["plugin"]]
    plain = context.launch((2, program, None, {}))
    if plain.code != 0:
        raise Skipped("this library does not work behind RTLD_LOCAL: " + plain.err[-300:])
    for take in ("none", "all"):
        run = context.launch((2, program, context.objects(), {"PROBE_TAKE": take}))
        expect(run.code == 0 and run.out == plain.out, take, run)
        expect(run.count("seen") == ["5", "5"] and run.count("presence") == ["all", "all"], take, run)
    if context.family == "ompi":
        return  # a tool of its family is linked to data of the library, and cannot be loaded in front of it here
    # A tool in front that passes calls on to us: ours must not find the tool's again behind it.
    run = context.launch((2, program, f"{context.tool}:{context.objects()}", {"PROBE_TAKE": "none", "TOOL_CALLS": "next"}))
    expect(run.code == 0 and "done on 2 ranks" in run.out, "a tool in front:", run)
    expect(run.out.count("tool: init 1") == 2, "a tool in front:", run)


def case_handle(context):
    """MPI found on a handle of its library, as Julia finds it, which passes us by: all of it, or only MPI_Init and
    MPI_Finalize, where the program is linked with a library of its own that calls MPI as usual."""
    program = [context.programs["loader"], context.programs["plugin"]]
    plain = context.launch((3, program, None, {}))
    if plain.code != 0:
        raise Skipped("this library does not work behind RTLD_LOCAL: " + plain.err[-300:])
    for everything in ({}, {"PLUGIN_HANDLE_ALL": "1"}):
        passes_by = {"PLUGIN_HANDLE": context.library, **everything}
        for take in ("none", "all"):
            run = context.launch((3, program, context.objects(), dict(passes_by, PROBE_TAKE=take)))
            expect(run.code == 0 and run.out == plain.out, take, everything, run)
            expect(run.count("initialized") == [], "an MPI_Init was seen:", take, everything, run)
            expect(not everything or run.reports == [], "took part:", take, run)
        run = context.launch((3, program, context.objects(context.product), dict(passes_by, THALWEG_BCAST="chain")))
        expect(run.code == 0 and run.out == plain.out, "the product", everything, run)


def case_closed(context):
    """A library of MPI, or one behind which it is, opened for itself alone or for everybody, and closed again after
    MPI_Finalize: what is left of us makes no call, and the program ends as without us."""
    opener, loader = context.programs["opener"], [context.programs["loader"], context.programs["plugin"]]
    settings = {"THALWEG_BCAST_MIN_BYTES": "1", "THALWEG_BCAST": "chain:chunk_bytes=4K"}
    left_out = 0
    for program, rounds in (([opener, context.library, "local"], 0), ([opener, context.library, "global"], 5),
                            ([*loader, "local", "close"], 5), ([*loader, "global", "close"], 5)):
        plain = context.launch((2, program, None, {}))
        if plain.code != 0:
            print("left out, this library does not bear it either:", *program, plain.err[-300:])
            left_out += 1
            continue
        run = context.launch((2, program, context.objects(), {"PROBE_TAKE": "all"}))
        expect(run.code == 0 and same(run.out, plain.out), program, run)
        # Who asks the library itself passes us by.
        expect(run.count("seen") == [str(rounds)] * 2 if rounds else run.reports == [], program, run)
        nonblocking = rounds > 0 and program[0] == opener
        for transport in ("mpi", "ucx") if nonblocking else ("mpi",):
            run, taken, rows = reported(context, program, dict(settings, THALWEG_TRANSPORT=transport), 2)
            expect(same(run.out, plain.out) and taken.get("bcast", 0) == rounds, program, transport, taken, rows, run)
            # The first asks for the set-up.
            expect(taken.get("ibcast", 0) == (4 if nonblocking else 0), program, transport, taken, rows)
    if left_out == 4:
        raise Skipped("this library cannot be opened so")


def case_launcher(context):
    """A launcher that inherits LD_PRELOAD, and hands it to its helpers and to the ranks: the preload of a site, or of
    a user who exports it in front of mpiexec."""
    plain = context.program("bcast", 3, preload=None)
    program = [context.programs["program"], "bcast"]
    probed = context.launch((3, program, None, {"PROBE_TAKE": "all"}), inherited=context.objects())
    expect(probed.count("taken") == probed.count("seen") != [], "nothing taken:", probed)
    settings = {"THALWEG_BCAST_MIN_BYTES": "1", "THALWEG_BCAST": "chain"}
    run, taken, rows = reported(context, program, settings, inherited=True)
    expect(taken.get("bcast", 0) > 0, "nothing taken:", rows, run)
    for run in (probed, run):
        expect(run.code == 0 and same(run.out, plain.out), "with it in the launcher:", run)
        expect("thalweg" not in run.err, "somebody had to say something:", run)
    # And where there is no MPI to find.
    # MPICH's launcher itself now and then ends by SIGPIPE where programs end at once.
    run = context.launch((2, ["sleep", "0.5"], None, {}), inherited=context.objects())
    expect(run.code == 0 and run.err == "" and run.reports == [], "programs without MPI:", run)


def case_wrong_family(context):
    """The preload object of another ABI: one sentence, and MPI as it was."""
    plain = context.program("bcast", 2, preload=None)
    others = {family: probe for family, probe in context.probes.items() if family != context.family}
    if not others:
        raise Skipped("no other ABI was built for")
    for family, other in others.items():
        run = context.program("bcast", 2, preload=other, take="all")
        expect(run.code == 0 and run.out == plain.out, family, run)
        expect(run.reports == [], "took part:", run)
        expect(run.err.count("thalweg: this build is for") == 1, "not one sentence:", run)


def case_python(context):
    """mpi4py's wheel, as a user installs it."""
    if not context.python:
        raise Skipped("no mpi4py for this library")
    script = ("from mpi4py import MPI; c = MPI.COMM_WORLD\n"
              "for i in range(5):\n"
              "    b = bytearray(b'%d' % i * 50000 if c.rank == 0 else 50000); c.Bcast(b); assert b[-1] == 48 + i\n"
              "assert c.bcast({'a': c.size} if c.rank == 0 else None) == {'a': c.size}\n"
              "print('done') if c.rank == 0 else None\n")
    program = [context.python, "-c", script]
    for preload in (None, context.objects(), context.objects() + ":" + context.library):
        run = context.launch((2, program, preload, {"PROBE_TAKE": "all"}))
        expect(run.code == 0 and "done" in run.out, preload, run)
        print(preload, run.count("seen"), run.count("taken"))
    # The library itself behind ours (what `thalweg run` does): the calls reach us, 5 and two for the pickle.
    expect(run.count("taken") == ["7", "7"], run)


def case_children(context):
    """What a program starts inherits our objects and the user's own, and not the MPI that `thalweg run` preloaded."""
    if not context.python:
        raise Skipped("no mpi4py for this library")
    script = ("import os, subprocess\nfrom mpi4py import MPI\nc = MPI.COMM_WORLD\n"
              "b = bytearray(50000); c.Bcast(b)\n"
              "maps = subprocess.run(['cat', '/proc/self/maps'], capture_output=True, text=True, check=True).stdout\n"
              "seen = [name in maps for name in ('libthalweg-', 'libm.so.6', 'libmpi')]\n"
              "if c.rank == 0: print('inherited', *seen)\n")
    own = "/lib/x86_64-linux-gnu/libm.so.6"
    preload = ":".join([context.objects(), own, context.library])
    for preloaded, libmpi in ((context.library, False), ("", True)):  # or the user preloads it
        variables = {"PROBE_TAKE": "all", "THALWEG_PRELOADED_MPI": preloaded}
        run = context.launch((2, [context.python, "-c", script], preload, variables))
        expect(run.code == 0 and f"inherited True True {libmpi}" in run.out, preloaded, run)
        expect(run.count("taken") == ["1", "1"], run)


def case_requests(context):
    """Every call that makes, completes, starts, frees or cancels a request asks us, as often as it was made."""
    plain = context.program("requests", 2, preload=None)
    expect(plain.code == 0, "without us:", plain)
    said = dict(re.findall(r"^(\w+) (\d+)$", plain.out, re.M))
    for take in ("none", "all"):
        run = context.program("requests", 2, take=take)
        expect(run.code == 0 and run.out == plain.out, take, run, plain)
        for counter in ("nonblocking", "completed", "started", "released", "created"):
            expect(run.count(counter) == [said[counter]] * 2, take, counter, run)
        expect(run.count("completions") == ["1", "1"], "the wrappers were not found to be reached:", run)


def case_overhead(context):
    """A declined 8-byte broadcast on one rank costs at most 150 ns over the native one (about 10 on an idle core)."""
    best = 1e9
    for _ in range(20):  # a busy machine can only make it look worse
        run = context.program("overhead", 1)
        expect(run.code == 0, run)
        best = min(best, float(re.search(r"overhead_ns (\S+)", run.out)[1]))
        if best <= 30:
            break
    print("over native:", best, "ns")
    expect(best <= 150, best)


def main():
    context = Context(sys.argv[1])
    context.mpiexec = sys.argv[3:] or context.mpiexec
    try:
        {**vars(presence), **globals()}["case_" + sys.argv[2]](context)
    except Skipped as why:
        print("skipped:", why)
        return SKIP
    except Failure as failure:
        print("failed:", failure)
        return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
