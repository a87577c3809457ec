"""Measures in the lab, at 100 Mbit/s, by plain programs:

    wire      what a library does with two messages at once and an answer to the first of them
              (tests/sim/programs/wire.c), on two hosts of one rank
    exchange  what an exchange of all pairs takes whose ranks have slept, and what posting takes of a core
              (tests/sim/programs/exchange.c), on four hosts of one rank and of two
    costs     what an operation and each of its messages take of a core (tests/sim/programs/costs.c), by the library
              itself and planned by Thalweg over libucp, on eight hosts of one rank and on one of eight; and on the
              eight what each put takes

    sim/wire.py --thalweg build/bin/thalweg [--out FOLDER] [wire] [exchange] [costs]     into sim/results/NAME.jsonl
"""
import argparse
import itertools
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("mpich", "openmpi", "impi")


LAUNCHES = 6  # of costs, which other work on the machine raises: the middle one counts
SHAPES = {"wire": ((2, 1),), "exchange": ((4, 1), (4, 2)), "costs": ((8, 1), (1, 8))}


def compiled(program, library, folder):
    home, out = ROOT / f".venv-{library}", pathlib.Path(folder, f"{program}-{library}")
    # Intel's wheel finds its own parts by this variable alone.
    subprocess.run([home / "bin/mpicc", "-O1", "-I", home / "include", "-I", ROOT / "include", "-L", home / "lib",
                    ROOT / f"tests/sim/programs/{program}.c", "-o", out, "-ldl"], check=True, env={**os.environ, "I_MPI_ROOT": str(home)})
    return out


def measured(thalweg, program, folder):
    for library in LIBRARIES:
        binary = compiled(program, library, folder)
        run = [thalweg, "run", "--transport", "ucx", "--alltoallv"]
        ways = {"native": [binary], "plan": [*run, "spread", binary, "plan"],
                "puts": [*run, "notify", binary, "plan", "puts"]} if program == "costs" else {"": [binary]}
        for _, (hosts, per_host), way in itertools.product(range(LAUNCHES if program == "costs" else 1), SHAPES[program], ways):
            if way == "puts" and hosts == 1:  # whoever puts copies
                continue
            done = subprocess.run([thalweg, "lab", "run", "--hosts", str(hosts), "--ppn", str(per_host), "--rate", "100mbit", "--quiet",
                                   "--mpi", library, "--mpi-root", ROOT / f".venv-{library}", "--", *ways[way]],
                                  check=True, capture_output=True, text=True, timeout=120)
            shape = {} if program == "wire" else {"shape": f"{hosts}x{per_host}"}
            shape.update({"way": way} if way else {})
            for line in done.stdout.splitlines():
                if line.startswith("{"):
                    yield {"mpi": library, **shape, **json.loads(line)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thalweg", required=True, help="the program thalweg")
    parser.add_argument("--out", default=ROOT / "sim/results", type=pathlib.Path, help="a folder")
    parser.add_argument("programs", nargs="*", metavar="NAME", help="of wire, exchange and costs; all where none is named")
    arguments = parser.parse_args()
    for program in arguments.programs or SHAPES:
        if program not in SHAPES:
            parser.error(f"there is no program {program}")
        with tempfile.TemporaryDirectory() as folder:
            lines = [json.dumps(row) for row in measured(arguments.thalweg, program, folder)]
        (arguments.out / f"{program}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        print(f"{program}: {len(lines)} lines")


if __name__ == "__main__":
    main()
