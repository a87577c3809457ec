"""Reads layers.txt and every #include under src/ and sim/: fails on an arrow that layers.txt does not draw.

Also: CONTRIBUTING.md has a row for each room, and for no other, in the order of layers.txt; <mpi.h> appears only from transport/mpi upward, and engine and transport name no collective operation.

    layers.py SOURCE_ROOT
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
MPI_HEADERS = {"mpi.h", "mpi_abi.h", "mpi-ext.h", "mpio.h"}
# transport/mpi/ speaks MPI, transport/rma/ its windows; above the transports everything may.
MPI_ROOMS = ("transport/mpi", "transport/rma", "plan", "api", "interpose")
# `reduce` and `scatter` alone are steps or plain English; these are names of operations.
COLLECTIVE = re.compile(
    r"bcast|broadcast|i?allgather|alltoall|allreduce|reduce_scatter|neighbou?r_|\bhalo|MPI_I?barrier", re.IGNORECASE)
# The table of the native library's functions must name them; it is no transport.
NATIVE_TABLE = "transport/mpi/host"
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".def", ".inc", ".in"}


def read_layers(path):
    """room -> rooms, or folders of rooms, it may include; an error where the arrows form a cycle or name an unknown room."""
    layers, errors = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        room, _, below = line.partition(":")
        layers[room.strip()] = set(below.split())
        for name in below.split():
            # Rooms are listed bottom up, so that no cycle can be written.
            if name.split("/")[0] not in layers or name == room.strip():
                errors.append(f"{path.name}:{number}: {name} must be listed above {room}")
    return layers, errors


def without_comments(text):
    """The text with comments blanked, line breaks kept."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)


def check_rooms(root):
    """Errors where the rooms of layers.txt, the folders of src/ and the table of CONTRIBUTING.md differ."""
    rooms = list(read_layers(root / "layers.txt")[0])
    named = re.findall(r"^\| `(?:src/)?([a-z]+)/` \|", (root / "CONTRIBUTING.md").read_text().partition("| room |")[2],
                       re.MULTILINE)
    folders = {path.name for path in (root / "src").iterdir() if path.is_dir()} | {"sim"}
    errors = [f"layers.txt: there is no room {name}" for name in rooms if name not in folders]
    errors += [f"layers.txt: the room {name} is missing" for name in sorted(folders - set(rooms))]
    if named != rooms:
        errors.append(f"CONTRIBUTING.md: its rooms are {', '.join(named)}; those of layers.txt are {', '.join(rooms)}")
    return errors


def check(root):
    layers, errors = read_layers(root / "layers.txt")
    seen = 0
    # The simulator is a room beside src/.
    src, beside = root / "src", root / "sim"
    for path in sorted(src.rglob("*")) + sorted(beside.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        inside = path.relative_to(src if path.is_relative_to(src) else root).as_posix()
        room = inside.split("/")[0]
        if room not in layers:
            errors.append(f"{path.relative_to(root)}: room {room} is not in layers.txt")
            continue
        code = without_comments(path.read_text())
        for match in INCLUDE.finditer(code):
            seen += 1
            target = match.group(2)
            where = f"{path.relative_to(root)}:{code.count(chr(10), 0, match.start()) + 1}"
            if target in MPI_HEADERS and not inside.startswith(tuple(r + "/" for r in MPI_ROOMS)):
                errors.append(f"{where}: includes <{target}> below transport/mpi")
            if match.group(1) == '"' and path.is_relative_to(src) and (path.parent / target).is_file():
                target = (path.parent / target).resolve().relative_to(src.resolve()).as_posix()
            other = target.split("/")[0]
            allowed = any(target.startswith(name + "/") for name in layers[room])
            if "/" in target and other in layers and other != room and not allowed:
                errors.append(f"{where}: {room} must not include {target}")
        if room in ("engine", "transport") and not inside.startswith(NATIVE_TABLE):
            for match in COLLECTIVE.finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                errors.append(f"src/{inside}:{line}: {room} names a collective: {match.group(0)}")
    if seen == 0:
        errors.append("no #include found under src/: is this the source tree?")
    return errors


if __name__ == "__main__":
    tree = pathlib.Path(sys.argv[1])
    found = check(tree) + check_rooms(tree)
    print("\n".join(found) or "every arrow points down")
    sys.exit(1 if found else 0)
