"""Neighbours whose hosts have two links. Run as real_lab.py says.

What decision 69 says of rails: a plan whose sizes agree cuts each large face over both, other calls send each on one,
and those of two ranks of a host on different ones; other collectives keep strides of a ring apart.
"""
import json
import os
import pathlib
import tempfile

from real_lab import HERE, THALWEG, build, check, equal, facts_of, good, lab, main, skip


def launched(mpi, folder, hosts, ranks, *program, **settings):
    """A run on hosts of two links, and its report."""
    report = pathlib.Path(folder, "report.json")
    report.unlink(missing_ok=True)
    environment = {**os.environ, "THALWEG_SETUP": "early", "THALWEG_REPORT": str(report), **settings}
    done = lab("run", "--quiet", "--rate", "100mbit", "--rails", "2", "--mpi", mpi, "--hosts", str(hosts), "--ppn",
               str(ranks), "--", THALWEG, "run", *program, env=environment)
    said = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    if "no_libucp" in said.get("agent", {}):
        skip(f"no libucp under {mpi}: {said['agent']['no_libucp']}")
    return done, said


def exchanged(mpi, program, folder, form, ranks=1, **settings):
    """A run of striped.c: bytes that host 0 sent over each link, those of the faces, and the report's row of rank 0's
    peer."""
    done, said = launched(mpi, folder, 2, ranks, program, form, **settings)
    first, second, _, faces = facts_of(good(done))["bytes"]
    equal(len(said["neighbourhoods"]), 1, f"{form}: neighbourhoods in the report")
    (told,) = said["neighbourhoods"]
    between = [peer for peer in told["peers"] if peer["where"] == "between"]
    equal([peer["rank"] for peer in between], [ranks], f"{form}: peers")
    check(told["accelerated"] > 0, f"{form}: {told}")
    print(form, settings, first, second, "of", faces, told)
    return [int(first), int(second)], int(faces), between[0]


def messages(peer):
    return sum(way["messages"] for side in ("sent", "received") for way in peer[side].values())


def over_both(mpi, program, folder, **settings):
    rails, faces, peer = exchanged(mpi, program, folder, "planned", **settings)
    check(peer["over_rails"] == messages(peer) > 0, f"not all messages were cut over the rails: {peer}")
    # Payload, 66 bytes of headers per packet, and acknowledgements of as much that came.
    for rail in rails:
        check(0.95 * faces / 2 <= rail <= 1.2 * faces / 2, f"{rails} bytes over the links, {faces} of faces")


def test_striped(mpi):
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder, HERE / "striped.c")
        over_both(mpi, program, folder)
        for form in ("blocking", "nonblocking"):
            rails, faces, peer = exchanged(mpi, program, folder, form, THALWEG_ALLTOALLV="spread")
            check(peer["over_rails"] == 0 < messages(peer), f"{form}: {peer}")
            check(max(rails) >= 0.95 * faces and min(rails) <= 0.1 * faces, f"{form}: {rails} bytes, {faces} of faces")


def test_rows(mpi):
    """Two ranks on each host: what they send whole is on both links."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder, HERE / "striped.c")
        for form in ("blocking", "nonblocking"):
            rails, faces, peer = exchanged(mpi, program, folder, form, ranks=2, THALWEG_ALLTOALLV="spread")
            check(peer["over_rails"] == 0 < messages(peer), f"{form}: {peer}")
            for rail in rails:
                check(0.95 * faces / 2 <= rail <= 1.2 * faces / 2, f"{form}: {rails} bytes, {faces} of faces")


def test_rings(mpi):
    """On a grid of hosts an allgather's rings of two strides have a link each, as on other communicators."""
    with tempfile.TemporaryDirectory() as folder:
        done, _ = launched(mpi, folder, 4, 1, build(mpi, folder, HERE / "rings.c"),
                           THALWEG_ALLGATHER="kport_ring:ports=2:chunk_bytes=0")
        busiest, _, sent = facts_of(good(done))["busiest"]
        # Two of three blocks go to the next host, and one to the next but one.
        check(int(busiest) <= 0.85 * int(sent), f"one link of a host carried {busiest} of {sent} bytes")


def test_striped_puts(mpi):
    """The same by puts into the peer's memory, each of which is cut, and counted as that."""
    with tempfile.TemporaryDirectory() as folder:
        over_both(mpi, build(mpi, folder, HERE / "striped.c"), folder, THALWEG_ALLTOALLV="notify")


if __name__ == "__main__":
    main(globals())
