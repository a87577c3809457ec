"""Where SimGrid is missing everything else is configured, and, in full, built and tested: what reads machines and
command lines, and the command that says what to install.

    no_simgrid.py SOURCE BUILD CMAKE NINJA [build]
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def kept(build):
    """Who compiles, and through what, as in that build."""
    cache = pathlib.Path(build, "CMakeCache.txt").read_text(encoding="utf-8")
    wanted = r"CMAKE_(?:C|CXX)_COMPILER(?:_LAUNCHER)?|CMAKE_BUILD_TYPE"
    return [f"-D{name}={value}" for name, value in re.findall(rf"^({wanted}):\w+=(.+)$", cache, flags=re.MULTILINE)]


def main(source, build, cmake, ninja, how=""):
    with tempfile.TemporaryDirectory() as folder:
        said = run(cmake, "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
                   "-DTHALWEG_SIMGRID_LIBRARY=OFF", *kept(build))
        assert "no SimGrid (Debian: libsimgrid-dev), thalweg-sim is not built" in said, said[-2000:]
        assert "no SimGrid, the simulator's replays are not tested" in said, said[-2000:]
        targets = {line.split(":")[0] for line in run(ninja, "-C", folder, "-t", "targets", "all").splitlines()}
        assert {"bin/thalweg", "bin/test_sim"} <= targets, "the command and its tests are to be built without SimGrid"
        assert "bin/thalweg-sim" not in targets
        assert not any("/thalweg_sim.dir/" in name for name in targets)
        if how != "build":
            print(f"configured without SimGrid: {len(targets)} targets")
            return
        run(ninja, "-C", folder, "bin/thalweg", "bin/test_sim")
        print(run(pathlib.Path(folder, "bin/test_sim")).splitlines()[-1])
        asked = [pathlib.Path(folder, "bin/thalweg"), *"sim bcast --ranks 8 --bytes 1M --machine gbe8".split()]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "built without SimGrid: install it" in done.stderr, done


if __name__ == "__main__":
    main(*sys.argv[1:])
