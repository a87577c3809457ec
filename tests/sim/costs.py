"""The lab's machine files say of a core what has been measured of it (sim/costs.py)."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sim"))
import costs  # noqa: E402


def figures(value):
    """Every figure with a source, by its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict) and "is" in inner:
                yield name, inner["is"]
            else:
                yield from figures(inner)


derived = costs.stored()
assert len(derived) in (11, 13), derived
derived.update(costs.posted(costs.of_file("exchange")))
wrong = []
for machine in ("lab-50", "lab-100"):
    said = dict(figures(json.loads((ROOT / f"sim/machines/{machine}.json").read_text(encoding="utf-8"))))
    wrong += [f"{machine}: {name} is {said.get(name)}, measured {value:.2f}"
              for name, value in derived.items() if abs(said.get(name, -1) - value) > 0.06]
assert not wrong, "\n".join(wrong)
