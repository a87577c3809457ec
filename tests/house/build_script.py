"""scripts/build says in one line which presets there are where it is given none of them, before it sets anything up.

    build_script.py SOURCE_ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory(prefix="tw") as folder:
    tree = pathlib.Path(folder)
    (tree / "scripts").mkdir()
    for name in ("scripts/build", "CMakePresets.json"):
        shutil.copy(root / name, tree / name)
    set_up = tree / "scripts/setup"
    set_up.write_text("#!/bin/sh\ntouch set-up\nexit 9\n", encoding="utf-8")
    set_up.chmod(0o755)
    for words in ([], [""], ["relase"], ["release debug"], ["*", "thalweg"], ["test_tools"]):
        done = subprocess.run([tree / "scripts/build", *words], capture_output=True, text=True, check=False)
        preset = words[0] if words else ""
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (words, done)
        assert done.stderr.startswith(f'build: there is no preset "{preset}": ') and "release" in done.stderr, (words, done)
        assert not (tree / "set-up").exists(), words
    for preset in ("release", "debug", "tsan", "fuzz"):
        done = subprocess.run([tree / "scripts/build", preset], capture_output=True, text=True, check=False)
        assert done.returncode == 9 and (tree / "set-up").exists(), (preset, done)
print("presets that there are not are told of")
