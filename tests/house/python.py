"""An older python3 that comes first on PATH is not the one that runs the tests.

    python.py SOURCE_ROOT CMAKE NINJA
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

OLDER = """#!/bin/sh
case "$*" in
*'version_info[:3]'*) printf 3.8.10 ;;
*) exec {python} "$@" ;;
esac
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(python NONE)
{include}
find_package(Python3 REQUIRED COMPONENTS Interpreter)
message(STATUS "found ${{Python3_VERSION}}")
"""


def found(cmake, ninja, folder, include):
    """Which version a project finds whose first python3 on PATH is 3.8."""
    (folder / "bin").mkdir(parents=True)
    for name in ("python3", "python"):
        older = folder / "bin" / name
        older.write_text(OLDER.format(python=shlex.quote(sys.executable)))
        older.chmod(0o755)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(include=include))
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([cmake, "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"],
                          capture_output=True, text=True, check=False, env=dict(os.environ, PATH=path))
    told = re.search(r"^-- found (\d+)\.(\d+)", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and told, done
    return int(told[1]), int(told[2])


def main(source, cmake, ninja):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        assert found(cmake, ninja, folder / "first", "") == (3, 8), "the older one does not come first"
        version = found(cmake, ninja, folder / "ours", f'include("{source}/tests/python.cmake")')
        assert version >= (3, 11), version
    print(f"tests have Python {version[0]}.{version[1]} behind one of 3.8")


if __name__ == "__main__":
    main(*sys.argv[1:])
