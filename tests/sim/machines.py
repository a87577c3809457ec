"""Machines are what they are to be like, and a source that says that it is a guess counts as one on the page."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "sim/machines").glob("*.json")}


def number(machine, name):
    return MACHINES[machine][name]["is"]


def fabric(machine):
    return MACHINES[machine]["fabric"]


def close(value, wanted):
    return abs(value / wanted - 1) <= 0.1


# A Dane-like cluster: 112 cores, and one adapter of 100 Gbit/s.
assert (number("dane", "cores_per_host"), number("dane", "rails"), fabric("dane")) == (112, 1, "fat_tree")
assert close(number("dane", "link_GBps"), 12.5)
# A Cray-XC40-like one.
assert (number("xc40", "cores_per_host"), fabric("xc40")) == (24, "dragonfly")
# 2304 ranks are 48 x 48, and hosts are left for 16 ranks on each.
assert (number("ib2304", "cores_per_host"), fabric("ib2304")) == (48, "fat_tree")
assert number("ib2304", "hosts") == 2304 // 16
assert fabric("slingshot") == "dragonfly" and number("slingshot", "hosts") * 32 >= 65536
assert close(number("slingshot", "link_GBps"), 25)
# Eight nodes of Gigabit Ethernet, behind one switch, whose kernels send.
assert (number("gbe8", "hosts"), fabric("gbe8")) == (8, "star") and close(number("gbe8", "link_GBps"), 0.125)
assert number("gbe8", "kernel_bytes") > 0 and number("gbe8", "network_moves_bytes") == 0
# The lab itself.
for name, rate in (("lab-100", 0.0125), ("lab-50", 0.00625)):
    assert fabric(name) == "star" and close(number(name, "link_GBps"), rate) and number(name, "shared_cores") == 2, name

# The page has a line for each, whose last cell says how many of its sources are guesses.
page = (ROOT / "docs/simulation.md").read_text(encoding="utf-8")
section = page[page.index("\n## Machines\n"):].split("\n## ")[1]
cells = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")]
lines = {line[1]: line[-2] for line in cells}
for name, machine in MACHINES.items():
    assert machine["name"] == name and machine["fabric_from"].strip(), name
    told = [machine["fabric_from"], *(value["from"] for value in machine.values() if isinstance(value, dict))]
    guesses = [source for source in told if re.search(r"\b(assumed|remembered|guess)", source)]
    assert lines.get(name) == f"{len(guesses)} of {len(told)}", (name, lines.get(name), guesses)
assert sum("assumed" in machine["fabric_from"] for machine in MACHINES.values()) >= 1
print(f"{len(MACHINES)} machines are what they should be")
