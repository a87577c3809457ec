"""The exchange of the refined mesh writes a JSON line per version that was asked for, and each agrees with itself.

    amr.py COMMAND…     the program with its launcher; --version and --json are added
"""
import json
import pathlib
import subprocess
import sys
import tempfile


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def launch(*options):
    result = subprocess.run([*sys.argv[1:], *options], capture_output=True, text=True, timeout=280,
                            stdin=subprocess.DEVNULL)
    result.about = f"exit status {result.returncode}\n{result.stdout}{result.stderr}"
    return result


with tempfile.TemporaryDirectory(prefix="tw") as folder:
    path = pathlib.Path(folder) / "lines.jsonl"
    for versions in ("isend,persistent,init", "waitall"):
        path.unlink(missing_ok=True)
        result = launch("--repeat", "2", "--version", versions, "--json", path)
        expect(result.returncode == 0 and "\nright\n" in result.stdout, result.about)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        expect([line["version"] for line in lines] == versions.split(","), result.about)
        for line in lines:
            parameters, exchanges = line["parameters"], line["parameters"]["steps"] + 1
            expect(line["wrong"] == "" and line["library"] and len(line["samples"]) == 2, line)
            expect(len(line["meshes"]) == parameters["steps"] // parameters["refine-every"] + 1, line)
            expect(sum(mesh["exchanges"] for mesh in line["meshes"]) == exchanges, line)
            # All ranks are on this host.
            stages = [stage for mesh in line["meshes"] for stage in mesh["stages"]]
            expect(len(stages) == 3 * len(line["meshes"]), line)
            expect(all(stage["crossing"] == stage["busiest"] == 0 for stage in stages), line)
            for sample in line["samples"]:
                expect(len(sample["steps"]) == exchanges and min(sample["steps"]) > 0, line)
                expect(abs(sum(sample["steps"]) - sample["communication"]) <= 1e-6 * sample["communication"], line)
                # The rank that takes longest over all takes no longer than the slowest in each step.
                expect(sample["slowest"] <= sample["communication"] * 1.000001, line)
                expect(sample["inside"] <= sample["exchanging"] <= sample["slowest"] * 1.000001, line)
                expect(sample["making"] > 0 and sample["slowest"] <= sample["total"], line)
    for options in (["--version", "isend,fast"], ["--version", "isend,"], ["--version"]):
        result = launch(*options)
        expect(result.returncode == 2 and "usage: amr" in result.stderr + result.stdout, options, result.about)
    missing = str(pathlib.Path(folder) / "no" / "such")
    result = launch("--version", "isend", "--repeat", "1", "--json", missing)
    expect(result.returncode == 2 and f"amr: {missing} cannot be written" in result.about, result.about)
print("passed")
