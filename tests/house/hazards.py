"""Every hazard of docs/hazards.md has tests, every test that it names is one of ctest's, and a reader finds the page.

    hazards.py SOURCE_ROOT BUILD_ROOT CTEST
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

HEADER = ["hazard", "what Thalweg does", "tests"]
LEADS_THERE = ("README.md", "docs/conformance.md")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """(line, hazard, names) of each row of the tables."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        row = cells(line)
        if not line.startswith("|") or row == HEADER or set("".join(row)) == {"-"}:
            continue
        found.append((number, row[0], re.findall(r"`([^`]+)`", row[-1]) if len(row) == len(HEADER) else None))
    return found


def tests_of(build, ctest):
    """What ctest would run: {name: its command}."""
    listing = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True,
                             timeout=120).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(listing[listing.index("{"):])["tests"]}


def matched(pattern, names):
    # Names of parametrised tests hold brackets; a pattern's only special sign is *.
    return fnmatch.filter(names, pattern.replace("[", "[[]"))


def stand_ins(tests):
    """Tests that stand for all those of a library that is not here: plan.impi, transport.ucx."""
    return [name for name, command in tests.items() if any("skipped: " in str(word) for word in command)]


def check(root, tests):
    """What is wrong, how many names were found, and which belong to a library that is not here."""
    page = root / "docs/hazards.md"
    errors, found, absent = [], 0, []
    missing = stand_ins(tests)
    table = rows(page.read_text(encoding="utf-8"))
    if not table:
        errors.append("docs/hazards.md: no row")
    for number, hazard, names in table:
        where = f"docs/hazards.md:{number}"
        if names is None:
            errors.append(f"{where}: a row has {len(HEADER)} cells: {', '.join(HEADER)}")
        elif not names:
            errors.append(f"{where}: no test: {hazard}")
        for name in names or []:
            if matched(name, tests):
                found += 1
            elif matched(".".join(name.split(".")[:2]), missing):
                absent.append(name)
            else:
                errors.append(f"{where}: ctest has no test {name}")
    if not any(re.search(r"\]\((docs/)?hazards\.md\)", (root / name).read_text(encoding="utf-8")) for name in LEADS_THERE):
        errors.append(f"docs/hazards.md: neither of {', '.join(LEADS_THERE)} leads there")
    return errors, found, absent


def main(root, build, ctest):
    errors, found, absent = check(pathlib.Path(root), tests_of(build, ctest))
    print("\n".join(errors + [f"not here: {name}" for name in absent]))
    print(f"{found} names of tests, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
