"""What the report says of neighbourhood collectives: by communicator and peer, of programs/patterns.c.

    report_neighbours.py FOLDER COMMAND…   COMMAND runs patterns.c on two hosts of two ranks, set up early, by `spread`
"""

import json
import os
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
path = os.path.join(folder, f"report-neighbours-{os.getpid()}.json")
LARGE, SMALL, MIDDLING = 512 << 10, 1 << 10, 256 << 10
INSIDE = {"direct", "cma_get", "cma_put", "coop", "eager"}
REASONS = {"nothing else can be used", "copies take longest", "the wire takes longest", "measured to be faster"}


def check(condition, what):
    if not condition:
        sys.exit(f"report_neighbours.py: {what}")


def run(target, *variables, arguments=()):
    at = next(i for i in range(command.index("env") + 1, len(command)) if "=" not in command[i])
    result = subprocess.run([*command[:at], f"THALWEG_REPORT={target}", *variables, *command[at:], *arguments],
                            capture_output=True, text=True, errors="replace", timeout=280)
    if result.returncode == 77:
        print(result.stdout)
        sys.exit(77)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    return result


def report_of(*variables, arguments=()):
    run(path, *variables, arguments=arguments)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    os.remove(path)
    return report


def both(*variables):
    """Of the two communicators: what is said of each, and of its peers by their ranks."""
    report = report_of(*variables)
    if "no_libucp" in report["agent"]:
        print(f"skipped: no libucp here: {report['agent']['no_libucp']}")
        sys.exit(77)
    told = report["neighbourhoods"]
    check([(n["name"], n["topology"]) for n in told] == [("faces", "grid"), ("", "distributed graph")], f"{told}")
    check(told[0]["communicator"] != told[1]["communicator"], f"numbers: {told}")
    for each, calls in zip(told, (10, 5)):
        check(each["size"] == 4 and each["hosts"] == 2 and each["communicators"] == 1, f"{each}")
        check(each["calls"] == each["accelerated"] == calls and each["algorithms"] == ["spread"], f"{each}")
        check(0 <= each["seconds_waiting"] <= each["seconds_in_calls"] > 0, f"{each}")
        check({p["rank"]: p["where"] for p in each["peers"]} == {1: "inside", 2: "between"}, f"{each['peers']}")
    return [(each, {p["rank"]: p for p in each["peers"]}) for each in told]


def total(counts):
    return tuple(sum(count[key] for count in counts.values()) for key in ("messages", "bytes"))


def check_totals(faces, graph):
    """Both directions are alike; every message is one of the program's."""
    for side in ("sent", "received"):
        check(total(faces[1][side]) == (10, 10 * LARGE), f"{side}: {faces[1]}")
        check(total(faces[2][side]) == (10, 10 * SMALL), f"{side}: {faces[2]}")
        check(total(graph[1][side]) == total(graph[2][side]) == (5, 5 * MIDDLING), f"{side}: {graph}")


def check_chosen():
    (grid, faces), (blocks, graph) = both()
    check_totals(faces, graph)
    for peers in (faces, graph):
        check(set(peers[1]["received"]) <= INSIDE and set(peers[1]["sent"]) == {"receivers_choice"}, f"{peers[1]}")
        check(peers[1]["protocol"] in INSIDE and peers[1]["because"] in REASONS, f"{peers[1]}")
        # Whatever it was, the sender may have done it.
        check(peers[1]["seconds_copying"] > 0 or set(peers[1]["received"]) <= {"cma_put", "eager"}, f"{peers[1]}")
        check(peers[1]["seconds_under_way"] > 0, f"{peers[1]}")
    check(grid["seconds_waiting"] + blocks["seconds_waiting"] > 0, f"others came late: {grid} {blocks}")
    # Only what lies in rows is packed on its way between hosts, and unpacked.
    check(faces[2]["packed"] == 20 and graph[2]["packed"] == 0, f"packed: {faces[2]} {graph[2]}")
    small, middling = faces[2], graph[2]
    if not os.path.isdir("/sys/class/infiniband"):
        check(set(small["received"]) == set(small["sent"]) == {"eager"}, f"{small}")
        # Over TCP nothing is announced.
        at_once = ("eager", "a handshake would wait behind other bytes")
        told = (small["protocol"], small["because"]), (middling["protocol"], middling["because"])
        check(told == (at_once, at_once), f"{small} {middling}")
        check(set(middling["received"]) == set(middling["sent"]) == {middling["protocol"]}, f"{middling}")
    check(small["switches"] == middling["switches"] == 0, f"{small} {middling}")
    # The wire is busy with 4 KiB and more.
    check(grid["seconds_on_wire"] == 0 and blocks["seconds_on_wire"] > 0, f"on the wire: {grid} {blocks}")
    check(grid["seconds_copying"] == faces[1]["seconds_copying"], f"copying: {grid}")


def check_asked():
    (_, faces), (_, graph) = both("THALWEG_INSIDE=cma_put", "THALWEG_BETWEEN=get")
    check_totals(faces, graph)
    for peers, number, size in ((faces, 10, LARGE), (graph, 5, MIDDLING)):
        check(peers[1]["received"] == {"cma_put": {"messages": number, "bytes": number * size}}, f"{peers[1]}")
        check((peers[1]["protocol"], peers[1]["because"]) == ("cma_put", "it was asked for"), f"{peers[1]}")
        check(peers[1]["switches"] == 0 and peers[1]["seconds_copying"] > 0, f"{peers[1]}")
    check(set(faces[2]["sent"]) == {"eager"} and set(graph[2]["sent"]) == {"rendezvous_get"}, f"{faces} {graph}")
    check((graph[2]["protocol"], graph[2]["because"]) == ("rendezvous_get", "it was asked for"), f"{graph[2]}")
    (_, faces), (_, graph) = both("THALWEG_INSIDE=eager", "THALWEG_BETWEEN=eager")
    check_totals(faces, graph)
    for peer in (faces[1], faces[2], graph[1], graph[2]):
        check((peer["protocol"], peer["because"]) == ("eager", "it was asked for") or peer is faces[2], f"{peer}")
        check(set(peer["received"]) == {"eager"}, f"{peer}")
    (_, faces), (_, graph) = both("THALWEG_UCX_RNDV_THRESH=1M")
    check_totals(faces, graph)
    for peers in (faces, graph):
        check(set(peers[2]["sent"]) == set(peers[2]["received"]) == {"libucps_choice"}, f"{peers[2]}")
        check("environment" in peers[2]["because"], f"{peers[2]}")


def check_mpi():
    """Over the MPI library nobody knows more than that it is it."""
    (grid, faces), (_, graph) = both("THALWEG_TRANSPORT=mpi", "THALWEG_TEST_LEVEL=multiple")
    check_totals(faces, graph)
    for peers in (faces, graph):
        for peer in peers.values():
            check(set(peer["sent"]) == set(peer["received"]) == {"mpis_choice"}, f"{peer}")
            check(peer["protocol"] == "mpis_choice" and peer["because"], f"{peer}")
    check("seconds_on_wire" not in grid and grid["seconds_copying"] == 0, f"{grid}")


def check_plan():
    """What a plan sends is the communicator's, too."""
    report = report_of(arguments=("plan",))
    graph = next(each for each in report["neighbourhoods"] if each["topology"] == "distributed graph")
    number = 5 + (3 if "neighbor_alltoall_init" in report["operations"] else 0)
    check(graph["calls"] == graph["accelerated"] == number, f"{graph}")
    for peer in graph["peers"]:
        check(total(peer["sent"]) == total(peer["received"]) == (number, number * MIDDLING), f"{number}: {peer}")


def check_many():
    """Freed communicators beyond the first are one row, whose peers have no ranks."""
    told = report_of(arguments=("many", "40"))["neighbourhoods"]
    apart = [each for each in told if each["name"] != "freed communicators"]
    merged = [each for each in told if each["name"] == "freed communicators"]
    check(len(merged) == 1 and len(apart) <= 16, f"{len(apart)} apart, {len(merged)} merged")
    check(len(apart) + merged[0]["communicators"] == 40, f"{len(apart)} and {merged[0]['communicators']}")
    number = merged[0]["communicators"]
    check(merged[0]["calls"] == number and merged[0]["topology"] == "grid", f"{merged[0]}")
    check(sorted((p["where"], p["ranks"]) for p in merged[0]["peers"]) == [("between", number), ("inside", number)],
          f"{merged[0]['peers']}")
    for peer in merged[0]["peers"]:
        check(total(peer["sent"]) == total(peer["received"]) == (number, number * SMALL), f"{peer}")
        check(set(peer["sent"]) == {"eager"} and "protocol" not in peer, f"{peer}")
    one = apart[0]["peers"]
    check(sorted((p["rank"], total(p["sent"])) for p in one) == [(1, (1, SMALL)), (2, (1, SMALL))], f"{one}")
    inside = next(p for p in one if p["rank"] == 1)
    check((inside["protocol"], inside["because"]) == ("eager", "short messages travel at once"), f"{inside}")


def check_kept():
    """Of those that are alive only so many are told of."""
    report = report_of(arguments=("kept", "66"))
    check(len(report["neighbourhoods"]) == 64, f"{len(report['neighbourhoods'])} are told of")
    left_out = {"communicators": 2, "calls": 2, "bytes": 2 * 4 * SMALL}
    check(report["neighbourhoods_left_out"] == left_out, f"{report['neighbourhoods_left_out']}")


def check_table():
    lines = run("-").stderr.splitlines()
    for words in (("neighbours of faces, grid of 4 ranks: 10 of 10 calls taken",),
                  ("neighbours of communicator ", "distributed graph of 4 ranks: 5 of 5 calls taken"),
                  ("rank 1 ", "inside", f" {10 * LARGE} "), ("rank 2 ", "between", f" {10 * SMALL} ", "20 packed"),
                  ("rank 1 ", "inside", f" {5 * MIDDLING} ")):
        check(any(all(word in line for word in words) for line in lines), f"{words}: {lines}")


for each in (check_chosen, check_asked, check_mpi, check_plan, check_many, check_kept, check_table):
    each()
print("ok")
