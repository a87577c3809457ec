"""bench/matrices/scale-free-384.mtx is what scale_free.py prints, and small enough to lie beside it.

    matrices.py SOURCE_ROOT
"""
import pathlib
import subprocess
import sys

from common import expect

folder = pathlib.Path(sys.argv[1]) / "bench/matrices"
kept = (folder / "scale-free-384.mtx").read_text(encoding="utf-8")
made = subprocess.run([sys.executable, "-B", folder / "scale_free.py"], check=True, capture_output=True,
                      text=True).stdout
expect(made == kept, "scale_free.py prints", len(made), "bytes, the file has", len(kept))
expect("scale_free.py" in kept.split("\n")[1] and len(kept) < 60_000, kept[:200])
