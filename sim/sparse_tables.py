"""The section of docs/simulation.md about exchanges whose pairs differ."""
import lab_tables
from tables import rows, size, table, time

NATIVES = ("mpich", "openmpi")


def points(native):
    """Plans of ours, or the libraries' own calls."""
    return [row for row in rows("sparse") if (row["way"] in NATIVES) == native]


def by_wire(row):
    """Whether the link decides: where it is busy for a millisecond and more, what cores do is little beside that."""
    return row["limit_seconds"] >= 1e-3


def lab():
    ours, natives = points(False), points(True)
    if not ours or not natives:
        return ""
    lines = []
    for whose, found in (("ours", ours), ("the library's", natives)):
        for (pattern, shape), group in lab_tables.groups(found, "pattern", "shape"):
            wide = [row for row in group if by_wire(row)]
            worst = max(group, key=lambda row: abs(lab_tables.error(row)))
            lines.append([whose, pattern, shape, *lab_tables.summary(group)[:3], len(wide),
                          lab_tables.summary(wide)[1] if wide else "-", f"{100 * lab_tables.error(worst):+.0f} %",
                          f"{size(worst['bytes'])}, {worst['algorithm']} on {worst['mpi']}, {time(worst['measured_seconds'])}"])
    def said(found):
        return f"{lab_tables.summary(found)[1]} in the median of {len(found)} points, {lab_tables.summary(found)[2]} within 20 %"
    def both(found):
        wide, short = ([row for row in found if row["samples"] >= 15 and by_wire(row) == wanted] for wanted in (True, False))
        return f"{said(wide) if wide else 'not measured'}; elsewhere {said(short) if short else 'not measured'}"
    return f"""## Sparse and uneven exchanges against the lab

Alltoallvs in which pairs differ, or most have no message, as `thalweg sim alltoallv --pattern` simulates them: the same matrix as in
`thalweg bench alltoallv`, of a name or of a Matrix Market file. Compared are plans of ours (`MPI_Alltoallv_init`), by the schedule that
ran, and the libraries' `MPI_Alltoallv`. Of points with at least 15 samples whose busiest link needs a millisecond and more (**by wire**),
plans are {both(ours)}. The libraries' calls are {both(natives)}.

""" + table(["whose", "pattern", "hosts x ranks", "points", "error", "within 20 %", "by wire", "error", "worst", "which"], lines)
