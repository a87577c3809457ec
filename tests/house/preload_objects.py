"""The preload objects: all are there, export only what their version script lists, need no MPI and no libstdc++,
leave nothing unresolved, run no dynamic initialiser of ours, and can be preloaded into any program.

Per ABI family one object that is always preloaded, and one for each set of functions that not every MPI exports.

    preload_objects.py LIB_FOLDER VERSION_SCRIPT_FOLDER
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

FAMILIES = ("mpich", "ompi", "abi")
# Part of every process already; anything else that we NEEDED would be loaded before the program's own libraries.
MAY_NEED = re.compile(r"^(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[\w-]*)\.so\.\d+$")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, **options)


def told(*command):
    """What a tool says of an object; one that says nothing has looked at nothing."""
    result = run(*command)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {result.returncode} {result.stderr.strip()}")
    return result.stdout


def listed_exports(path):
    """The patterns in the global part of a version script."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", " ", path.read_text(), flags=re.DOTALL)
    patterns = []
    for part in re.findall(r"global\s*:(.*?)(?:local\s*:|\})", text, re.DOTALL):
        patterns += [name.strip() for name in part.split(";") if name.strip()]
    return patterns


def defined(path):
    """Exported symbols, without their versions and without the names of versions."""
    lines = [line.split() for line in told("nm", "-D", "--defined-only", path).splitlines()]
    return {words[-1].split("@")[0] for words in lines if words[-2] != "A"}


def check_object(path, patterns, core):
    """`core` is the family's always preloaded object: the others may lean on it."""
    errors = []
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", told("readelf", "-dW", path))
    errors += [f"NEEDED {name}" for name in needed
               if not MAY_NEED.match(name) and not (name == core.name and path != core)]

    exported = defined(path)
    errors += [f"exports {name}, which its version script does not list" for name in sorted(exported)
               if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]

    from_core = defined(core) if path != core else set()
    for line in told("nm", "-D", "--undefined-only", path).splitlines():
        kind, name = line.split()[-2:]
        # A strong symbol that libc does not give kills every program that is started with the object.
        if kind == "U" and "@" not in name and name not in from_core:
            errors.append(f"strong unresolved symbol {name}")

    symbols = told("nm", "--defined-only", path).splitlines()
    if not symbols:
        errors.append("stripped: nobody can tell whether it has a dynamic initialiser")
    for line in symbols:
        if re.search(r"_GLOBAL__sub_I_.*(thalweg|\.cpp$)", line):
            errors.append(f"dynamic initialiser {line.split()[-1]}")

    environment = dict(os.environ, LD_PRELOAD=str(path), LD_BIND_NOW="1")
    result = run("/bin/true", env=environment)
    if result.returncode != 0 or result.stderr:
        errors.append(f"/bin/true with it preloaded: exit {result.returncode} {result.stderr.strip()}")
    return [f"{path.name}: {error}" for error in errors]


def check(folder, scripts):
    """Every version script belongs to one object per family: core.map to libthalweg-<family>.so itself."""
    maps = {path.stem: listed_exports(path) for path in sorted(scripts.glob("*.map"))}
    if "MPI_Bcast" not in maps.get("core", []):
        return [f"{scripts}/core.map lists no MPI_Bcast"]
    expected = {}
    for family in FAMILIES:
        for part, patterns in maps.items():
            expected[f"libthalweg-{family}" + ("" if part == "core" else f"-{part}") + ".so"] = family, patterns
    # libthalweg-probe-*.so are the wrappers with a test's stand-in behind them; they are not installed.
    errors = [f"{path.name}: no version script names it" for path in sorted(folder.glob("libthalweg-*.so"))
              if path.name not in expected and "-probe-" not in path.name]
    for name, (family, patterns) in expected.items():
        path, core = folder / name, folder / f"libthalweg-{family}.so"
        errors += check_object(path, patterns, core) if path.is_file() and core.is_file() else [f"{path} was not built"]
    # An ABI may lack a function of the list, but not all three.
    for part, patterns in maps.items():
        objects = [folder / name for name, (_, listed) in expected.items() if listed is patterns]
        found = set().union(*(defined(path) for path in objects if path.is_file()))
        errors += [f"{part}.map lists {name}, which no object exports" for name in patterns
                   if not re.search(r"[*?\[]", name) and name not in found]
    return errors


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    print("\n".join(found) or "nothing to object to")
    sys.exit(1 if found else 0)
