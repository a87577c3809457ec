"""File length, line length, stray whitespace and .clang-format, over the tracked files.

Files about 400 lines: longer ones are listed, from 600 on it is an error. Files that differ from .clang-format are
listed; `make format` mends them. They are looked for in what the last commit changed and what is not committed: the
formatter takes a third of a minute over everything. With `everything` they are errors.

    style.py SOURCE_ROOT [everything]
"""
import pathlib
import shutil
import subprocess
import sys

LONG, TOO_LONG, COLUMNS = 400, 600, 110
CODE = {".c", ".h", ".cpp", ".hpp"}
TEXT = CODE | {".py", ".def", ".cmake", ".txt", ".sh", ".f", ".f90"}


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
    return [root / name for name in listed.decode().split("\0") if name and (root / name).is_file()]


def changed(root):
    """The tracked files that the last commit or the working tree changed."""
    compared = subprocess.run(["git", "-C", root, "diff", "--name-only", "-z", "HEAD~1"], capture_output=True, check=False)
    return {str(root / name) for name in compared.stdout.decode().split("\0")}


def check_text(path, root):
    """Errors and remarks of one file."""
    errors, remarks = [], []
    name = path.relative_to(root).as_posix()
    lines = path.read_text().split("\n")
    if len(lines) - 1 > TOO_LONG:
        errors.append(f"{name}: {len(lines) - 1} lines; it is more than one file")
    elif len(lines) - 1 > LONG:
        remarks.append(f"{name}: {len(lines) - 1} lines")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            errors.append(f"{name}:{number}: trailing whitespace")
        if "\t" in line:
            errors.append(f"{name}:{number}: tab")
        if path.suffix in CODE and len(line) > COLUMNS + 10:
            errors.append(f"{name}:{number}: {len(line)} columns")
    if lines[-1] != "":
        errors.append(f"{name}: no newline at the end")
    return errors, remarks


def formatter(root):
    own = root / ".venv/bin/clang-format"
    return str(own) if own.is_file() else shutil.which("clang-format")


def misformatted(tool, names, root):
    """Which of these files the formatter would change, and what keeps it from telling."""
    result = subprocess.run([tool, "--dry-run", *names], capture_output=True, text=True, cwd=root)
    differing = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "-Wclang-format" in line})
    errors = [] if result.returncode == 0 else [f"{tool}: exit {result.returncode}: {result.stderr.strip()[-300:]}"]
    return differing, errors


def check(root, everything=False):
    errors, remarks = [], []
    files = tracked(root)
    for path in files:
        if path.suffix in TEXT or path.name == "CMakeLists.txt":
            found, noted = check_text(path, root)
            errors += found
            remarks += noted
    tool = formatter(root)
    code = [str(path) for path in files if path.suffix in CODE]
    if not everything:
        touched = changed(root)
        code = [name for name in code if name in touched]
    if tool and code:
        differing, failed = misformatted(tool, code, root)
        errors += failed
        (errors if everything else remarks).extend(
            f"{pathlib.Path(name).relative_to(root)}: not as .clang-format; run make format" for name in differing)
    return errors, remarks


if __name__ == "__main__":
    if not (pathlib.Path(sys.argv[1]) / ".git").exists():
        print("no git checkout: cannot tell which files are the project's")
        sys.exit(77)
    if "everything" in sys.argv[2:] and not formatter(pathlib.Path(sys.argv[1]).resolve()):
        print("no clang-format here")
        sys.exit(77)
    wrong, noted = check(pathlib.Path(sys.argv[1]).resolve(), "everything" in sys.argv[2:])
    for line in noted:
        print("remark:", line)
    for line in wrong:
        print("error:", line)
    print(f"{len(wrong)} errors, {len(noted)} remarks")
    sys.exit(1 if wrong else 0)
