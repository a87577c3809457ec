"""What the README and docs/ tell a reader to type or to open must exist.

Commands are read from the ```sh blocks: make targets, scripts, the verbs of `thalweg` and their flags (asked from
its own --help), tuning tables from ```json blocks. Paths are read from `code spans` and from relative links. The guide
says of every reason for which calls are declined what to do.

    docs.py SOURCE_ROOT BUILD_ROOT
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A path with one of these is a pattern, not a path.
PLACEHOLDER = re.compile(r"[<>*{}$ …]|\b(NAME|ROOM|COLLECTIVE|PRESET)\b")
# Commands that belong to the reader's system, not to this project.
FOREIGN = {"git", "cd", "cmake", "ctest", "mpicc", "cc", "export", "sudo", "apt-get", "cat", "echo", "python3",
           "pkg-config"}
LAUNCHERS = {"mpiexec", "mpirun", "srun"}


class Docs:
    def __init__(self, root, build):
        self.root, self.build = root, build
        self.errors, self.commands, self.paths, self.help_of = [], 0, 0, {}
        self.targets = set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.MULTILINE))
        listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout.split("\n")
        # In a release without .git the folders themselves tell.
        self.top = {name.split("/")[0] for name in listed if "/" in name} or {p.name for p in root.iterdir()}

    def help_text(self, verb):
        """Output of `thalweg VERB --help`, or None where there is no such verb."""
        if verb not in self.help_of:
            tool = self.build / "bin/thalweg"
            if not tool.is_file():
                self.help_of[verb] = None
            else:
                result = subprocess.run([tool, *verb.split(), "--help"], capture_output=True, text=True, timeout=280)
                self.help_of[verb] = result.stdout + result.stderr if result.returncode == 0 else None
        return self.help_of[verb]

    def thalweg(self, where, words):
        if not words or words[0].startswith("-"):
            return
        verb, rest = words[0], words[1:]
        text = self.help_text(verb)
        if text is None:
            self.errors.append(f"{where}: `thalweg {verb} --help` fails")
            return
        if verb == "run":
            return
        while rest and re.fullmatch(r"[a-z]+", rest[0]) and self.help_text(f"{verb} {rest[0]}") is not None:
            verb += " " + rest.pop(0)
        for word in rest:
            if word == "--":
                break
            flag = word.split("=")[0]
            if flag.startswith("--") and not re.search(re.escape(flag) + r"\b", self.help_text(verb) + text):
                self.errors.append(f"{where}: `thalweg {verb}` does not know {flag}")

    def command(self, where, line):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            self.errors.append(f"{where}: cannot be parsed: {line}")
            return
        while words and re.fullmatch(r"[A-Z][A-Z0-9_]*=.*", words[0]):
            words.pop(0)
        if not words:
            return
        self.commands += 1
        name = words[0]
        if name in LAUNCHERS:
            if "thalweg" in words:
                self.thalweg(where, words[words.index("thalweg") + 1:])
        elif name == "make":
            for word in words[1:]:
                if "=" not in word and not word.startswith("-") and word not in self.targets:
                    self.errors.append(f"{where}: the Makefile has no target {word}")
        elif name == "thalweg" or name.endswith("bin/thalweg"):
            self.thalweg(where, words[1:])
        elif "/" in name:
            self.path(where, name)
        elif name not in FOREIGN:
            self.errors.append(f"{where}: unknown command {name}")

    def table(self, where, text):
        """A tuning table that a page shows is one, and so are those of a list."""
        try:
            tables = json.loads(text)
            collectives = [table["collective"] for table in (tables if isinstance(tables, list) else [tables])]
        except (ValueError, KeyError, TypeError) as error:
            self.errors.append(f"{where}: no tuning table: {error}")
            return
        for collective in dict.fromkeys(collectives):
            size = [] if collective == "barrier" else ["--bytes", "64K"]
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                result = subprocess.run([self.build / "bin/thalweg", "explain", collective, *size, "--topology",
                                         "node:2 core:1", "--tuning", file.name], capture_output=True, text=True, timeout=280)
            if result.returncode != 0:
                self.errors.append(f"{where}: no tuning table: {result.stderr.strip()}")

    def reasons(self, source, page):
        """Every reason for which calls are declined stands in the guide."""
        body = source.read_text().partition("text_of(Reason ")[2].partition("\n}\n")[0]
        reasons = [reason for reason in re.findall(r'return "(.*)";', body) if reason != "unknown"]
        told = page.read_text()
        for reason in reasons:
            if re.sub(r" \(THALWEG_\w+\)$", "", reason) not in told:
                self.errors.append(f"{page.name}: nothing about calls that are declined because of: {reason}")
        if not reasons:
            self.errors.append(f"{source.name}: no reasons found")

    def path(self, where, text):
        text = text.split("#")[0].split(":")[0]
        if not text or PLACEHOLDER.search(text) or text.startswith("build"):
            return
        self.paths += 1
        if not (self.root / text).exists():
            self.errors.append(f"{where}: {text} does not exist")

    def page(self, page):
        name = page.relative_to(self.root).as_posix()
        text = page.read_text()
        for match in FENCE.finditer(text):
            first = text.count("\n", 0, match.start(2)) + 1
            if match.group(1) in ("sh", "bash", "console"):
                joined = match.group(2).replace("\\\n", "  ")
                for offset, line in enumerate(joined.split("\n")):
                    self.command(f"{name}:{first + offset}", line.removeprefix("$ "))
            elif match.group(1) == "json" and '"rows"' in match.group(2):
                self.table(f"{name}:{first}", match.group(2))
        prose = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
        for match in SPAN.finditer(prose):
            span = match.group(1)
            # A path of ours begins with one of our folders; anything else with a slash is somebody else's.
            if "/" in span and span.split("/")[0] in self.top:
                self.path(f"{name}:{prose.count(chr(10), 0, match.start()) + 1}", span)
        for match in LINK.finditer(prose):
            target = match.group(1)
            if "://" not in target and not target.startswith(("#", "mailto:")):
                self.paths += 1
                if not (page.parent / target.split("#")[0]).exists():
                    self.errors.append(f"{name}: broken link {target}")

    def decisions(self, pages):
        """A decision's number is its file's, and nobody else's."""
        owners = {}
        for page in sorted(pages):
            number = page.name[:4]
            other = owners.setdefault(number, page.name)
            if other != page.name:
                self.errors.append(f"{page.name}: the number {number} is that of {other}")
            if not page.read_text().startswith(f"# {int(number)}. "):
                self.errors.append(f"{page.name}: its title does not begin with # {int(number)}.")


def check(root, build):
    docs = Docs(root, build)
    docs.decisions((root / "docs/decisions").glob("[0-9]*.md"))
    if (root / "src/plan/statistics.cpp").exists():
        docs.reasons(root / "src/plan/statistics.cpp", root / "docs/guide/running.md")
    pages = sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md"))
    for page in pages:
        docs.page(page)
    if docs.commands == 0 or docs.paths == 0:
        docs.errors.append(f"{len(pages)} pages with {docs.commands} commands and {docs.paths} paths: nothing checked")
    return docs


if __name__ == "__main__":
    result = check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
    print("\n".join(result.errors))
    print(f"{result.commands} commands, {result.paths} paths, {len(result.errors)} errors")
    sys.exit(1 if result.errors else 0)
