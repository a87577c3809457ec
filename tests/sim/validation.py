"""sim/validate.py: every table where none is named, from rows as the bench writes them; what it says of a table that is none.

    validation.py THALWEG_SIM
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "sim"))
import validate  # noqa: E402

LAB = {"shape": "2x1", "hosts": 2, "ranks": 2, "rate": "100mbit", "rails": 1, "mpi_name": "mpich",
       "settings": {"THALWEG_LAB_RATE_BYTES_PER_S": "11900000"}}
TWO_LINKS = {**LAB, "rails": 2}
CHANGED = {**LAB, "environment": "I_MPI_ADJUST_ALLGATHER=1"}
HOST = {"shape": "1x2", "hosts": 1, "ranks": 2, "mpi_name": "mpich"}


def row(collective, column, seconds, context, algorithm="", **more):
    return {"collective": collective, "column": column, "algorithm": algorithm, "bytes": 65536, "seconds": seconds,
            "context": context, "tx_bytes": 70000, "all_tx_bytes": 75000, **more}


def beside(column, total, context=LAB, algorithm="", compute="sleep"):
    """An allgather that takes 5 and 6 ms by itself, and so long together with 5 and 6 ms of computation."""
    return row("iallgather", column, [6e-3, 7e-3], context, algorithm, phase="overlap", overlap={
        "compute": compute, "pure_mean": [5e-3, 6e-3], "computed": [5e-3, 6e-3], "total": total})


def gradient(column, seconds, computed):
    return row("conjugate_gradient", column, seconds, LAB, phase="apps",
               app={"parameters": {"outer": 1, "steps": 2}, "samples": [{"compute": one} for one in computed]})


ROWS = [row("bcast", "thalweg binomial", [7e-3, 6e-3] * 8, LAB, "binomial"), row("bcast", "native", [6e-3, 7e-3, 8e-3], LAB),
        row("bcast", "native smp", [5e-3], LAB), row("bcast", "native tree", [5e-3], LAB, tx_bytes=90000),
        row("bcast", "native (A/A)", [9e-3, 8e-3, 7e-3], LAB), row("bcast", "thalweg binomial", [5e-5], HOST, "binomial"),
        *(row("alltoallv", column, [seconds], LAB, exchange={"pattern": "dense"})
          for column, seconds in (("window per call", 3e-3), ("window kept", 2e-3), ("native", 1e-3))),
        row("alltoallv", "thalweg init", [8e-3, 7e-3], LAB, "spread", exchange={"pattern": "banded"}),
        *(row("alltoallv", column, [9e-3], LAB, exchange={"pattern": "poisson-4x4x4.mtx"}, bytes=1 << 14)
          for column in ("native", "native (A/A)", "native init", "window kept")),
        row("bcast", "thalweg chain", [8e-3, 7e-3], TWO_LINKS, "chain:chunk_bytes=32K", bytes=1 << 17),
        row("bcast", "native", [12e-3, 11e-3, 13e-3], TWO_LINKS, bytes=1 << 17),
        *(row("halo", column, [1e-2, 9e-3], LAB, algorithm, phase=phase, late_samples=1, bytes=1 << 16,
              halo={"grid": [2, 1, 1], "cells": [4, 64, 128], "corners": False, "periodic": False})
          for column, algorithm, phase in (("native", "", "halo"), ("thalweg init [transport=shm]", "spread", "halo"),
                                           ("thalweg", "", "halo"), ("isend packed waitall", "", "halo"),
                                           ("native", "", "halo_overlap"))),
        beside("thalweg", [6.05e-3, 5.05e-3], algorithm="ring"), beside("native", [10e-3, 12e-3]),
        beside("native MPI_Test", [1e-3, 1e-3]), beside("thalweg", [1e-3, 1e-3], CHANGED, "ring"),
        beside("thalweg", [1e-3, 1e-3], algorithm="ring", compute="arithmetic"),
        *(row("iallgather", "thalweg", [4e-3, 3e-3], LAB, "ring", bytes=1 << 15, phase="apart", overlap=seen)
          for seen in ({}, {"pure_from_instant": [5e-3, 6e-3]}, {"compute": "sleep"})),
        gradient("native/blocking", [0.3, 0.33], [0.15, 0.12]),
        gradient("thalweg/nonblocking", [0.24, 0.21], [0.15, 0.18]),
        gradient("thalweg/manual/16", [1e-3], [1e-3])]

with tempfile.TemporaryDirectory() as folder:
    measured, out = pathlib.Path(folder, "measured"), pathlib.Path(folder, "out")
    measured.mkdir()
    out.mkdir()
    (measured / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n", encoding="utf-8")
    published = json.loads(validate.PUBLISHED.read_text(encoding="utf-8"))
    few = [{**table, "microseconds": dict([table["microseconds"].popitem()])} for table in published[:2]]
    validate.PUBLISHED = pathlib.Path(folder, "published.json")
    validate.PUBLISHED.write_text(json.dumps(few), encoding="utf-8")
    validate.EXCHANGE = pathlib.Path(folder, "exchange.jsonl")
    plain = {"shape": "4x1", "last_begins_seconds": [1e-4, 2e-4], "whole_seconds": [4.5e-3, 5e-3]}
    validate.EXCHANGE.write_text("".join(json.dumps({**plain, "mpi": mpi, "bytes": count}) + "\n" for mpi, count in
                                         (("impi", 16384), ("impi", 65536), ("openmpi", 65536))), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        validate.main(["--sim", sys.argv[1], "--out", str(out), "--results", str(measured)])
    found = {name: [json.loads(line) for line in (out / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
             for name in validate.TABLES}
assert said.getvalue().splitlines() == ["lab: 3 points", "faces: 2 points", "natives: 2 points", "rails: 2 points", "sparse: 2 points", "plain: 2 points",
                                        "onehost: 1 points", "published: 2 points", "overlap: 2 points",
                                        "programs: 2 points", "samples: 1 points", "kept: 1 points"], said.getvalue()
point, whole, started = found["lab"]
assert (point["samples"], point["measured_seconds"], point["algorithm"]) == (16, 6e-3, "binomial"), point
assert abs(point["native_spread"] - (8e-3 / 7e-3 - 1)) < 1e-12, point
# 64 KiB over a link of 11.9 MB/s, less what the shaper lets through at once.
assert 0.7 * 65536 / 11.9e6 < point["simulated_seconds"] < 1.5 * 65536 / 11.9e6, point
assert found["natives"][1]["algorithm"] == "binomial" and found["natives"][1]["samples"] == 3, found["natives"]
assert found["natives"][1]["alike_seconds"] == {"smp": 5e-3}, found["natives"]
# Pieces go over both links, a whole message over one; none of them is a point of hosts of one link.
assert [(row["way"], row["mpi"], row["rails"], row["samples"], row["measured_seconds"]) for row in found["rails"]] == [
    ("chain:chunk_bytes=32K", "mpich", 2, 2, 7e-3), ("mpich", "mpich", 2, 3, 11e-3)], found["rails"]
pieces, one = (row["simulated_seconds"] / ((1 << 17) / 11.9e6) for row in found["rails"])
assert 0.3 < pieces < 0.75 < one < 1.5 and found["rails"][1]["algorithm"] == "binomial", found["rails"]
# Schedules of ours and the library's own way; what ran natively under our name, packs or computes is none of these.
assert [(row["pattern"], row["way"], row["samples"], row["measured_seconds"]) for row in found["sparse"]] == [
    ("banded", "spread", 2, 7e-3), ("poisson-4x4x4.mtx", "mpich", 2, 9e-3)], found["sparse"]
# What the shaper lets through at once is not in the limit.
assert all(0.7 < row["simulated_seconds"] / row["limit_seconds"] < 1.3 for row in found["sparse"]), found["sparse"]
assert [(face["way"], face["column"], face["samples"], face["late"]) for face in found["faces"]] == [
    ("mpich", "native", 2, 1), ("spread", "thalweg init [transport=shm]", 2, 1)], found["faces"]
for face in found["faces"]:
    assert face["measured_seconds"] == 9e-3 and face["median_seconds"] == 9.5e-3, face
    assert 0.7 * 65536 / 11.9e6 < face["simulated_seconds"] < 1.5 * 65536 / 11.9e6, face
# Everybody begins with rank 0: four times what a message takes, less what the shapers let through at once.
assert [(row["mpi"], row["bytes"]) for row in found["plain"]] == [("impi", 16384), ("openmpi", 65536)], found["plain"]
assert found["plain"][0]["measured_seconds"] == 4.5e-3 and found["plain"][0]["last_begins_seconds"] == 1e-4, found["plain"]
assert 2.7 * 16384 / 11.96e6 < found["plain"][0]["simulated_seconds"] < 3.5 * 16384 / 11.96e6, found["plain"]
# Where a call is known from the instant at which all were to begin, nothing else of it counts.
assert (whole["bytes"], whole["samples"], whole["measured_seconds"]) == (1 << 15, 2, 5e-3), whole
# A nonblocking one is waited for at once there, and stands beside computation here: by OSU's definition 99 and
# 0 % of it hide, by the middles. Both take the longer of them at least, and their sum at most, and a little.
assert (started["collective"], started["samples"], started["measured_seconds"]) == ("iallgather", 6, 6e-3), started
assert [(row["way"], row["samples"], row["measured_seconds"], row["pure_seconds"], round(row["hidden_percent"]))
        for row in found["overlap"]] == [("mpich", 2, 10e-3, 5e-3, 0), ("ring", 2, 5.05e-3, 5e-3, 99)], found["overlap"]
for one in found["overlap"]:
    pure, both = one["simulated_pure_seconds"], one["simulated_seconds"]
    assert 0.7 * 65536 / 11.9e6 < pure < 1.5 * 65536 / 11.9e6 and 0.98 * pure < both < 2.1 * pure, one
    assert abs(one["simulated_percent"] - max(0, 100 * (2 - both / pure))) < 1, one
# Three products in a run, each with 50 ms of computation as measured, and with an allgather that our agent hides.
assert [(row["column"], row["samples"], round(row["measured_seconds"], 9), round(row["computed_seconds"], 9))
        for row in found["programs"]] == [("native/blocking", 2, 0.1, 0.05),
                                       ("thalweg/nonblocking", 2, 0.07, 0.05)], found["programs"]
blocking, hidden = (row["simulated_seconds"] for row in found["programs"])
assert 0.05 < hidden < blocking - 2e-3 < 0.065, found["programs"]
(spread,) = found["samples"]
assert (spread["shape"], spread["rate"]) == (LAB["shape"], LAB["rate"]), spread  # links of two rates have samples of their own
assert [round(spread[f"{which}_seconds"], 9) for which in ("least", "median", "greatest")] == [6e-3, 6.5e-3, 7e-3], spread
assert found["kept"][0]["per_call_seconds"] == 3e-3, found["kept"]
assert all(0 < row["star_seconds"] <= row["simulated_seconds"] * 1.001 for row in found["published"]), found["published"]
with contextlib.redirect_stderr(io.StringIO()) as said:
    try:
        validate.main(["--sim", sys.argv[1], "rings"])
        sys.exit("a table that there is not was taken")
    except SystemExit as refused:
        assert refused.code == 2 and "there is no table rings; there are lab, faces, natives" in said.getvalue(), said.getvalue()
print("sim/validate.py writes its tables")
