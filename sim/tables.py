"""What the pages' parts share: rows of sim/results, and tables, sizes and times as text."""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20


def rows(name):
    path = ROOT / f"sim/results/{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def size(count):
    for unit, step in (("MiB", MIB), ("KiB", 1024)):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def time(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def table(head, body):
    body = [[str(cell) for cell in line] for line in body]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    def drawn(line):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
    return "\n".join([drawn(head), "| " + " | ".join("-" * width for width in widths) + " |", *map(drawn, body)]) + "\n"


def span(values, unit=" %", digits=0):
    """The least and the greatest, or one number where both look alike."""
    low, high = (f"{round(value, digits) + 0:.{digits}f}" for value in (min(values), max(values)))  # no -0
    return (low if low == high else f"{low} to {high}") + unit
