"""What the report says of faces that change in mid-run: of programs/halo.c.

    report_halo.py FOLDER COMMAND…      COMMAND runs halo.c on two hosts of two ranks; phases are added here
"""

import json
import os
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
path = os.path.join(folder, f"report-halo-{os.getpid()}.json")
WIRE = "the wire takes longest"
RUNS = 3  # of what measured times decide


def check(condition, what):
    if not condition:
        sys.exit(f"report_halo.py: {what}")


def halo_of(phases, *variables):
    """A run of these phases: what was said, and its report."""
    at = command.index("env") + 1
    result = subprocess.run([*command[:at], f"THALWEG_REPORT={path}", *variables, *command[at:], phases],
                            capture_output=True, text=True, errors="replace", timeout=280)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    os.remove(path)
    return result.stdout, report


def followed(phases):
    """Of the one peer inside the host, in a run of these phases: what the report says of it."""
    memory = halo_of(phases)[1]["agent"]["inside_hosts"]
    peers = [peer for peer in memory["peers"] if sum(peer["bytes"].values()) > 0]
    check(len(peers) == 1, f"rank 0 has one neighbour on its host: {memory}")
    check(sum(peers[0]["messages_because"].values()) > 0, f"{phases}: {memory}")
    wire = any(letter in phases for letter in "waA")
    check((memory["seconds_on_wire"] > 0) == wire, f"{phases}: {memory}")
    return peers[0]


def by_wire(peer):
    """How many messages were copied as they were because the wire took longest."""
    return peer["messages_because"].get(WIRE, 0)


def shows(phases, seen):
    """A run of which that is seen: by measured times, which others on this machine may spoil in one run, and not in all."""
    for _ in range(RUNS):
        peer = followed(phases)
        if seen(peer):
            return peer
    return check(False, f"{phases}: {peer}")


def finds_wire(phases):
    """At some time the wire takes longest."""
    shows(phases, lambda peer: by_wire(peer) > 0)


def comes_to_wire(phases):
    """The wire takes longest later on, and not from the beginning."""
    shows(phases, lambda peer: 0 < by_wire(peer) < sum(peer["messages_because"].values()))


def leaves_wire(phases, size):
    """The wire takes longest, and no longer does in the end; so many bytes or more lay between."""
    peer = shows(phases, lambda peer: by_wire(peer) > 0 and peer["because"] != WIRE)
    check(sum(peer["bytes"].values()) >= size, f"{phases}: {peer}")


def check_mix():
    """What is large decides how faces inside the host are copied, and the choice follows when that changes. It follows
    measured times: how often, is left to them. What is small between hosts is never waited for."""
    peer = followed("c")
    check(WIRE not in peer["messages_because"], f"c: {peer}")
    finds_wire("w")
    # 8 exchanges of 512 KiB while copies take longest, 8 while the wire does, before the last of either.
    leaves_wire("wc", 16 << 19)
    comes_to_wire("cw")


def check_grids():
    """The grid changes in mid-run: each is told of with its own neighbours and what they have sent. Where the faces are
    the same, which of them lie inside the host decides, and the choice follows."""
    told = {each["name"]: each for each in halo_of("cg")[1]["neighbourhoods"]}
    for name, beyond, faces in (("square", 2, {1: 512 << 10, 2: 64}), ("ring", 3, {1: 48 << 10, 3: 48 << 10})):
        grid = told.get(name)
        check(grid and grid["topology"] == "grid" and grid["accelerated"] > 0, f"{name}: {told}")
        peers = {peer["rank"]: peer for peer in grid["peers"]}
        where = {rank: peer["where"] for rank, peer in peers.items()}
        check(where == {1: "inside", beyond: "between"}, f"{name}: {grid}")
        for rank, peer in peers.items():
            for side in ("sent", "received"):
                messages, size = (sum(way[key] for way in peer[side].values()) for key in ("messages", "bytes"))
                calls = grid["accelerated"]
                check((messages, size) == (calls, calls * faces[rank]), f"{name}, {side}: {grid}")
    # 2 exchanges or more of 8 MiB, which lay between the hosts before.
    leaves_wire("aA", 2 << 23)
    comes_to_wire("Aa")


def check_asked():
    """What is asked for runs, all through the same changes."""
    report = halo_of("cwc", "THALWEG_INSIDE=cma_put", "THALWEG_BETWEEN=get")[1]
    peers = [peer for peer in report["agent"]["inside_hosts"]["peers"] if sum(peer["bytes"].values()) > 0]
    check([list(peer["bytes"]) for peer in peers] == [["cma_put"]], f"asked for cma_put: {peers}")
    check(peers[0]["because"] == "it was asked for" and peers[0]["switches"] == 0, f"asked for: {peers}")


def check_shared():
    """Starts of a plan with faces of 64 KiB out of a shared window, and out of what MPI_Alloc_mem gives where that is
    mapped by all. A library without plans is not given their object."""
    plans = any("-persistent" in word for word in command)
    for letter in "dm":
        said, report = halo_of(letter)
        mapped = letter == "d" or "MPI_Alloc_mem gives is mapped by all" in said
        check(mapped or "MPI_Alloc_mem gives is mapped by one" in said, f"said: {said}")
        direct = sum(peer["bytes"].get("direct", 0) for peer in report["agent"]["inside_hosts"]["peers"])
        check((direct > 0) == (mapped and plans), f"{letter}, mapped by all: {mapped}: {report['agent']}")


for each in (check_mix, check_grids, check_asked, check_shared):
    each()
print("ok")
