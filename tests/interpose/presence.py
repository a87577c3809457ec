"""Ranks of which some lack us: cases of run.py."""

import os

from launches import expect

# Ranks before and after the place where those with us begin or end, and whether it is the first that have us. They
# speak in one circle, or in a tree of circles of two: each place is tried in one of these, in the full run in both.
PLACES = [(before, after, first) for before, after in ((2, 2), (4, 1), (1, 4)) for first in (True, False)]
CIRCLE, TREE = 32, 2


def presence(context, width, places):
    ours, program = context.objects(), [context.programs["program"], "bcast"]
    with_us = {"PROBE_TAKE": "all", "PROBE_WIDTH": width}
    run = context.launch((5, program, ours, with_us))
    expect(run.code == 0 and run.count("presence") == ["all"] * 5, width, run)
    for before, after, first in places:
        run = context.launch((before, program, ours if first else None, with_us),
                             (after, program, None if first else ours, with_us))
        expect(run.code == 0, width, before, after, first, run)
        expect(run.count("presence") == ["some"] * (before if first else after), width, before, after, run)
        expect(all(n == "0" for n in run.count("taken")), run)
        spoken = run.err.count("probe: passes through")
        expect(spoken == 1 if width == CIRCLE else 1 <= spoken <= 3, width, before, after, run)


def case_presence(context):
    """Ranks without us, in every place of a job: no hang, every byte, one answer."""
    presence(context, CIRCLE, PLACES[0::3])
    presence(context, TREE, PLACES[2::3] + PLACES[1::3])


def case_presence_everywhere(context):
    """The same, every place in either."""
    presence(context, CIRCLE, PLACES)
    presence(context, TREE, PLACES)


def case_presence_assumed(context):
    """A launcher whose store is closed to us: calls pass through, unless the user says that all ranks have us."""
    ours, program = context.objects(), [context.programs["program"], "bcast"]
    for assumed, wanted in (({}, "unknown"), ({"PROBE_ASSUME": 1}, "all")):
        run = context.launch((3, program, ours, {"PROBE_TAKE": "all", **assumed}))
        expect(run.code == 0 and run.count("presence") == [wanted] * 3, assumed, run)
        expect(all((int(n) > 0) == bool(assumed) for n in run.count("taken")), assumed, run)
        expect(run.err.count("THALWEG_PRESENCE=assume") == (0 if assumed else 1), assumed, run)


def ends_with_an_error(context, sentence, limit, **variables):
    run = context.launch((3, [context.programs["program"], "bcast"], context.objects(), variables))
    expect(run.code != 0, "went on:", run)
    expect(1 <= run.err.count(sentence + " in MPI_Init; the ranks cannot agree") <= 3, sentence, run)
    expect(run.seconds < limit, "took", run.seconds, run)


def case_presence_silent(context):
    """A launcher that stops to answer one rank, which has left its word: after 10 s MPI's error, and no hang."""
    ends_with_an_error(context, "the launcher's store failed", 120)


def case_presence_forgotten(context):
    """One rank is told that another lacks us, and goes its way; those that wait for it end with MPI's error after 30 s,
    here after one."""
    ends_with_an_error(context, "a rank that has Thalweg did not answer", 29, PROBE_SECONDS=1)


def case_presence_cost(context):
    """8 ranks that all have us: milliseconds, where the cores are not shared by more ranks than they can run; a busy
    machine is given three launches for less than a second."""
    for _ in range(3):
        run = context.program("names", 8)
        expect(run.code == 0 and run.count("presence") == ["all"] * 8, run)
        slowest = max(float(us) for us in run.count("us"))
        if slowest < 1e6:
            break
    print("slowest rank:", slowest, "us on", os.cpu_count(), "cores")
    expect(slowest < 1e6, "the slowest rank took", slowest, "us:", run)
