"""Version scripts list names that not every object has. Linkers that refuse that, as lld does from 16 on, are told not to:
an object is linked once more by a linker that was asked to refuse.

    strict_linker.py BUILD_ROOT NINJA
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

OBJECT = "lib/libthalweg-abi-status.so"  # has none of the names for Fortran


def main(build, ninja):
    cache = (build / "CMakeCache.txt").read_text()
    if not re.search(r"^THALWEG_UNDEFINED_VERSION:INTERNAL=1$", cache, re.MULTILINE) or not (build / OBJECT).is_file():
        print("SKIPPED: the linker does not refuse, or there is no object for the standard ABI")
        return 77
    commands = subprocess.run([ninja, "-C", build, "-t", "commands", OBJECT], capture_output=True, text=True, check=True)
    link = next(line for line in commands.stdout.splitlines() if f" -o {OBJECT} " in line)
    with tempfile.TemporaryDirectory() as folder:
        strict = link.replace(" -fPIC ", " -Wl,--no-undefined-version -fPIC ", 1)
        strict = strict.replace(f" -o {OBJECT} ", f" -o {shlex.quote(folder)}/object.so ", 1)
        result = subprocess.run(strict, shell=True, cwd=build, capture_output=True, text=True, check=False)
        assert "--no-undefined-version" in strict and result.returncode == 0, (strict, result.stderr[-2000:])
        assert pathlib.Path(folder, "object.so").is_file(), strict
    print(f"{OBJECT} is linked by a linker that refuses names without a symbol")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
