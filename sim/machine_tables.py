"""The sections of docs/simulation.md about the machines: their numbers, and what routing can matter on them."""
import json
import re

from tables import ROOT, rows, size, table, time

GUESS = re.compile(r"\b(assumed|remembered|guess|guessed)\b")


def sources(machine):
    """Where each number is from, and what the fabric looks like."""
    return [machine["fabric_from"], *(value["from"] for value in machine.values() if isinstance(value, dict))]


def machines():
    lines = []
    for path in sorted((ROOT / "sim/machines").glob("*.json")):
        machine = json.loads(path.read_text(encoding="utf-8"))
        said = sources(machine)
        guesses = sum(GUESS.search(source) is not None for source in said)
        def number(field, machine=machine):
            return f"{machine[field]['is']:g}"
        lines.append([machine["name"], machine["text"], machine["fabric"].replace("_", " "), number("cores_per_host"),
                      number("link_GBps"), number("inter_latency_us"), number("copy_GBps"), number("host_copy_GBps"),
                      f"{guesses} of {len(said)}"])
    return f"""## Machines

`sim/machines/NAME.json` holds every number with its source; `--machine FILE.json` reads another. Sources that say
*assumed* are guesses of the right size, those that say *remembered* are published figures that were not found
again; how many, the fabric's among them, the last column says. Where a publication says something else than a guess, its source says what.
Rates in GB/s: of a link in one direction, of one core that copies, of all cores of a host together.

""" + table(["name", "what", "fabric", "cores", "link", "latency (us)", "copy", "host copies", "without source"], lines)


def routes():
    """The same with a fabric's links between switches and without them."""
    points = {}
    for row in rows("routes") + rows("squares"):
        key = tuple(row[field] for field in ("collective", "machine", "ranks", "hosts", "bytes", "column"))
        points.setdefault(key, {})["star" if row.get("fabric") == "star" else "own"] = row
    lines, worst = [], {"pairs": [], "halo": [], "others": [], "fat_tree": []}
    for (collective, machine, ranks, hosts, count, column), both in points.items():
        if len(both) < 2:
            continue
        own, star = both["own"], both["star"]
        fabric = json.loads((ROOT / f"sim/machines/{machine}.json").read_text(encoding="utf-8"))["fabric"]
        ratio = own["seconds"] / star["seconds"]
        kind = collective if collective == "halo" else "pairs" if column == "spread" else "others"
        worst[fabric if fabric == "fat_tree" else kind].append(ratio)
        lines.append([collective, machine, fabric.replace("_", " "), ranks, hosts, size(count), own["algorithm"],
                      time(own["seconds"]), time(star["seconds"]), f"{ratio:.2f}"])
    if not lines:
        return ""
    return f"""## What routing can matter

SimGrid's Dragonfly routes statically and along the shortest way, takes parallel links for one, and ties all links between
groups to one chassis (its header `DragonflyZone.hpp` says so); its fat tree routes statically too, as InfiniBand's
subnet managers do by default. The real Dragonflies do not: an Aries and a Slingshot switch choose for every packet
between the shortest ways and detours over a third switch or group, by how full the queues are. A detour costs a hop
and takes links from others, so that adaptive routing lies between two figures which can be had: the machine's fabric
with shortest ways alone, and the same hosts on one switch that never blocks (`--star`). Where both agree, routing does
not matter; where they do not, the first is too slow for such a machine and the second too fast:

""" + table(["operation", "machine", "fabric", "ranks", "hosts", "bytes", "algorithm", "its fabric", "one switch", "ratio"],
            lines) + f"""
Broadcasts and rings cross few links between switches: their figures depend on routing by at most {100 * (max(worst["others"]) - 1):.0f} %. Halos on
a Dragonfly do by up to {100 * (max(worst["halo"]) - 1):.0f} %, and an exchange of all pairs by up to {max(worst["pairs"]):.1f} times, as soon as it leaves one
switch: such figures of `slingshot` on this page are upper bounds. A measured one,
[Aurora's](#hosts-of-many-ranks-as-others-measured-them), lies between both. On the fat trees, which are a few hosts wide here, at most {100 * (max(worst["fat_tree"]) - 1):.0f} % depend on it.
"""
