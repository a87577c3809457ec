#!/usr/bin/env python3
"""The preload objects as files and in processes that have no MPI: objects.py GENERATED-FOLDER OBJECT..."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ALLOWED = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so(\.\d+)*$|^libthalweg-(mpich|ompi|abi)\.so$")

# What a process is, as far as an object that must not act can change it.
STATE = """
import os, json, signal
status = open('/proc/self/status').read()
field = lambda name: [l for l in status.splitlines() if l.startswith(name)][0]
maps = {l.split()[-1] for l in open('/proc/self/maps') if '.so' in l}
print(json.dumps({'threads': field('Threads'), 'caught': field('SigCgt'), 'ignored': field('SigIgn'),
                  'files': sorted(os.listdir('/proc/self/fd')),
                  'libraries': sorted(m for m in maps if 'thalweg' not in m),
                  'environment': sorted(k for k in os.environ if k != 'LD_PRELOAD')}))
"""


def output(*command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **environment))
    assert result.returncode == 0, (command, environment, result)
    return result


def check_file(path, generated):
    name = os.path.basename(path)
    part = re.fullmatch(r"libthalweg-(?:mpich|ompi|abi)(?:-(\w+))?\.so", name)[1] or "core"
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path).stdout)
    for library in needed:
        assert ALLOWED.match(library), f"{name} needs {library}"
    listed = set(re.findall(r"^\s+(\w+);", open(f"{generated}/{part}.map").read(), re.M))
    rows = [line.split() for line in output("nm", "-D", path).stdout.splitlines()]
    exported = {row[-1] for row in rows if row[-2] not in "UwvV"}
    assert exported and exported <= listed, f"{name} exports {sorted(exported - listed)}"
    # A library in C may have a function of its own by such a name, which ours would come before.
    plain = [n for n in exported if re.fullmatch(r"mpi_\w*(?<!_)|MPI_[A-Z_]*", n) and not n.endswith("_f08")]
    assert not plain, f"{name} exports {plain}"
    foreign = [row[-1] for row in rows if row[-2] in "Uwv" and re.match(r"P?MPI_|ompi_|PMPI", row[-1])]
    assert not foreign, f"{name} refers to {foreign}"
    return exported


def check_processes(objects):
    preload = ":".join(objects)
    python = sys.executable
    for program in (["/bin/true"], ["/bin/sh", "-c", "exit 0"], [python, "-c", "import ssl, ctypes"]):
        result = output(*program, LD_PRELOAD=preload)
        assert result.stdout == result.stderr == "", (program, result)
    plain = json.loads(output(python, "-c", STATE).stdout)
    with_us = json.loads(output(python, "-c", STATE, LD_PRELOAD=preload).stdout)
    assert plain == with_us, (plain, with_us)
    # Lazily bound programs too, and every symbol at once.
    output("/bin/true", LD_PRELOAD=preload, LD_BIND_NOW="1")


def check_address_sanitizer(objects, page):
    """What the guide's module file has for programs of GCC's lets them start; false where there is no such compiler."""
    options = re.findall(r"^prepend-path ASAN_OPTIONS (\S+)$", page.read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        command = ["gcc", "-fsanitize=address", "-x", "c", "-", "-o", program]
        source = "int main(void) { return 0; }\n"
        if not shutil.which("gcc") or subprocess.run(command, input=source, text=True, capture_output=True).returncode:
            return False
        result = output(program, LD_PRELOAD=":".join(objects), ASAN_OPTIONS=":".join(options + ["detect_leaks=0"]))
        assert result.stdout == result.stderr == "", result
    return True


def main():
    generated, objects = sys.argv[1], sys.argv[2:]
    assert objects, "no object"
    names = {}
    for path in objects:
        names[os.path.basename(path)] = check_file(path, generated)
    for name, exported in names.items():
        if re.fullmatch(r"libthalweg-\w+\.so", name):
            missing = {"MPI_Init", "MPI_Bcast", "mpi_bcast_", "thalweg_version"} - exported
            assert not missing, f"{name} lacks {missing}"
            assert "MPI_Bcast_c" not in exported and "MPI_Session_init" not in exported, name
    for family in sorted({re.match(r"libthalweg-(\w+)", name)[1] for name in names}):
        check_processes([path for path in objects if os.path.basename(path).startswith(f"libthalweg-{family}")])
    with_sanitizer = check_address_sanitizer(objects[:1], pathlib.Path(generated).parents[2] / "docs/guide/centres.md")
    print("passed:", ", ".join(names), "" if with_sanitizer else "(without a program of AddressSanitizer's)")


if __name__ == "__main__":
    main()
