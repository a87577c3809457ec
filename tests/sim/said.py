"""What docs/simulation.md says beside its tables is what their rows say, whatever these are."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "sim"))
import document  # noqa: E402
import lab_tables  # noqa: E402
import onehost_tables  # noqa: E402
import tables  # noqa: E402


def default(column, seconds, reason="cost model", count=1 << 20):
    return {"collective": "bcast", "machine": "dane", "mapping": "block", "bytes": count, "column": column, "seconds": seconds, "reason": reason}


# A choice that loses is named as one, and what is left to the library is counted apart.
made = [default("auto", 4.0), default("mpich", 3.0), default("openmpi", 5.0),
        *(default(column, seconds, "left to mpich: small message", 4096) for column, seconds in (("auto", 4.0), ("mpich", 4.0), ("openmpi", 1.0)))]
document.rows = lambda name: made
assert "2 of 4 comparisons. At 1 of them" in document.losses() and "down to 0.25 of its time" in document.losses(), document.losses()
assert "- bcast of 1 MiB on `dane`, block mapping: MPICH's default takes 0.75 of its time" in document.losses(), document.losses()
made = [default("auto", 4.0), default("mpich", 4.0), default("openmpi", 5.0)]
assert document.losses() == "By more than 5 % it does at 0 of 2 comparisons.", document.losses()
# Reductions of Open MPI's hierarchical component, and rates of a message on one host.
points = [{"mpi": "openmpi", "collective": "allreduce", "shape": shape, "measured_seconds": seconds, "simulated_seconds": 1.0}
          for shape, seconds in (("4x2", 3.0), ("3x3", 5.0), ("4x1", 9.0))]
assert lab_tables.reductions(points) == "3.0 to 5.0 times"
points = [{"mpi": "impi", "algorithm": "linear", "bytes": 1 << 20, "measured_seconds": 1e-4}]
assert onehost_tables.rates(points) == "- under Intel MPI: 10 GB/s (1 MiB)"
assert tables.span([-0.2, 3.1]) == "0 to 3 %" and tables.span([-0.6, -0.2]) == "-1 to 0 %"
print("the page says what its rows say")
