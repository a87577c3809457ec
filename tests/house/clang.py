"""The older Clang of CMakePresets.json takes all sources of what is installed, as GCC does: only their syntax is checked.

    clang.py SOURCE_ROOT BUILD_ROOT
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

WITH_A_VALUE = {"-o", "-MT", "-MF", "-include"}  # the output, and what GCC has precompiled
GCC_ONLY = {"-c", "-MD", "-Winvalid-pch", "-fpch-preprocess"}


def words_of(command, compilers):
    """The same for Clang, without an output and without warnings."""
    words = shlex.split(command)
    while re.search(r"=|(^|/)(env|ccache)$", words[0]):
        words.pop(0)
    kept = [compilers["CXX" if "++" in words[0] else "C"]]
    given = iter(words[1:])
    for word in given:
        if word in WITH_A_VALUE:
            next(given)
        elif word not in GCC_ONLY:
            kept.append(word)
    return kept + ["-w", "-fsyntax-only"]


def main(source, build):
    presets = (source / "CMakePresets.json").read_text()
    compilers = dict(re.findall(r'"CMAKE_(C|CXX)_COMPILER": "(\S+)"', presets))
    if not all(map(shutil.which, compilers.values())):
        print(f"SKIPPED: no {' and '.join(compilers.values())}")
        return 77
    rooms = tuple(str(source / room) + os.sep for room in ("src", "tools", "sim"))
    commands = {entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())
                if entry["file"].startswith(rooms)}

    def check(entry):
        return subprocess.run(words_of(entry["command"], compilers), cwd=entry["directory"], capture_output=True,
                              text=True, check=False)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [done.stderr for done in pool.map(check, commands.values()) if done.returncode]
    print("".join(refused) or f"{len(commands)} files")
    return 1 if refused or len(commands) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument) for argument in sys.argv[1:3])))
