"""The preload objects: all three are there, export only what exports.map lists, need no MPI and no libstdc++, leave
nothing unresolved, run no dynamic initialiser of ours, and can be preloaded into any program.

    preload_objects.py LIB_FOLDER EXPORTS_MAP
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
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)


def listed_exports(path):
    """The patterns in the global part of a version script."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", " ", path.read_text(), flags=re.DOTALL)
    patterns = []
    for part in re.findall(r"global\s*:(.*?)(?:local\s*:|\})", text, re.DOTALL):
        patterns += [name.strip() for name in part.split(";") if name.strip()]
    return patterns


def check_object(path, patterns):
    errors = []
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", run("readelf", "-dW", path).stdout)
    errors += [f"NEEDED {name}" for name in needed if not MAY_NEED.match(name)]

    exported = set()
    for line in run("nm", "-D", "--defined-only", path).stdout.splitlines():
        name = line.split()[-1].split("@")[0]
        exported.add(name)
        if line.split()[-2] != "A" and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            errors.append(f"exports {name}, which exports.map does not list")
    if "MPI_Bcast" not in exported or "thalweg_version" not in exported:
        errors.append("exports no MPI_Bcast or no thalweg_version: is it our object?")

    for line in run("nm", "-D", "--undefined-only", path).stdout.splitlines():
        kind, name = line.split()[-2:]
        # A strong symbol that libc does not give kills every program that is started with the object.
        if kind == "U" and "@" not in name:
            errors.append(f"strong unresolved symbol {name}")

    for line in run("nm", "-C", "--defined-only", path).stdout.splitlines():
        if re.search(r"_GLOBAL__sub_I_.*(thalweg|src/)", line):
            errors.append(f"dynamic initialiser {line.split()[-1]}")

    environment = dict(os.environ, LD_PRELOAD=str(path), LD_BIND_NOW="1")
    result = run("/bin/true", env=environment)
    if result.returncode != 0 or result.stderr:
        errors.append(f"/bin/true with it preloaded: exit {result.returncode} {result.stderr.strip()}")
    return [f"{path.name}: {error}" for error in errors]


def check(folder, exports):
    if not exports.is_file():
        return [f"{exports} is missing"]
    patterns = listed_exports(exports)
    errors = []
    for family in FAMILIES:
        path = folder / f"libthalweg-{family}.so"
        errors += check_object(path, patterns) if path.is_file() else [f"{path} was not built"]
    return errors


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    print("\n".join(found) or "three objects, nothing to object to")
    sys.exit(1 if found else 0)
