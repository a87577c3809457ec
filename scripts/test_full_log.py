"""bench/results/test-full.log: what became of every part of the long jobs last, and on which commit.

The log is the record: it is read, one part's line is replaced, and it is written anew, so that what several evenings
and several commits brought about stands side by side. Lines of a part have columns that two or more spaces separate:

    VERDICT  COMMIT[+CHANGES]  UTC  SECONDS s  PART  NOTE

VERDICT is `passed`, `SKIPPED`, `FAILED (exit N)` or `not run`; CHANGES is a hash of what was not committed. Lines that
begin with `    | ` are the end of the output of the part above them, or name the tests in it that were skipped. A job
lists its parts before it runs any, so what has not run has a line too. The head has the whole picture: for each job how
many parts are in which state, on which commits and days they ran, and the names of those that failed.
"""
import contextlib
import dataclasses
import datetime
import fcntl
import hashlib
import os
import platform
import re
import subprocess

# What the jobs write themselves is no change of what they test.
OWN = (":!bench/results", ":!docs/measurements.md")
EXCERPT = "    | "
NOT_RUN = "not run"


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, errors="replace").stdout


@dataclasses.dataclass
class End:
    """What became of a part just now, on the files that were there before it, `tree`."""
    name: str
    tree: "Tree"
    verdict: str
    seconds: float
    note: str = ""
    excerpt: tuple = ()


@dataclasses.dataclass
class Part:
    verdict: str
    state: str = "-"  # commit, and the hash of uncommitted changes
    when: str = "-"
    seconds: float = 0.0
    note: str = ""
    excerpt: tuple = ()

    @property
    def commit(self):
        return self.state.split("+")[0]

    def line(self, name):
        columns = [f"{self.verdict:<8}", f"{self.state:<12}", f"{self.when:<17}", f"{self.seconds:>8.1f} s", name]
        return "\n".join(["  ".join([*columns, self.note]).rstrip(), *(EXCERPT + line for line in self.excerpt)])


class Tree:
    """What is tested: the commit, and the changes that are not committed."""

    def __init__(self):
        self.head = git("rev-parse", "--short=12", "HEAD").strip()
        changes = git("diff", "HEAD", "--", ".", *OWN)
        for name in git("ls-files", "-z", "--others", "--exclude-standard", "--", ".", *OWN).split("\0"):
            if name and os.path.isfile(name):
                with open(name, "rb") as file:
                    changes += f"{name} {hashlib.sha256(file.read()).hexdigest()}\n"
        self.changes = hashlib.sha256(changes.encode(errors="replace")).hexdigest()[:8] if changes else ""
        self.state = self.head + ("+" + self.changes if changes else "")
        self._contents, self._ages = {}, {}

    def now(self):
        """That of the files as they are now; this one where they are the same: it knows the history by then, which takes
        longer to ask for than a short test."""
        tree = Tree()
        return self if tree.state == self.state else tree

    def _content(self, commit):
        """A commit's files but for those that the jobs write; None for a commit that is not here."""
        if commit not in self._contents:
            try:
                files = git("ls-tree", "-r", commit).splitlines()
            except subprocess.CalledProcessError:
                files = None
            self._contents[commit] = files and [line for line in files if "\tbench/results/" not in line and
                                                not line.endswith("\tdocs/measurements.md")]
        return self._contents[commit]

    def age(self, commit):
        """How many commits that changed something lie between this one and the newest; None: it is none of them."""
        if commit not in self._ages:
            try:
                git("merge-base", "--is-ancestor", commit, "HEAD")
                self._ages[commit] = int(git("rev-list", "--count", f"{commit}..HEAD", "--", ".", *OWN))
            except subprocess.CalledProcessError:
                self._ages[commit] = None
        return self._ages[commit]

    def counts(self, part, since):
        """Whether what a part's line says holds for what is here: the same files, or a commit not older than `since`."""
        if part.state == "-":
            return False
        changes = part.state.partition("+")[2]
        content = self._content(part.commit)
        if changes == self.changes and content is not None and content == self._content("HEAD"):
            return True
        if not since or changes or self.age(part.commit) is None:
            return False
        return subprocess.run(["git", "merge-base", "--is-ancestor", since, part.commit], check=False,
                              capture_output=True).returncode == 0


@contextlib.contextmanager
def alone(path):
    """One process at a time, by a file that stands for what it does."""
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Log:
    """The parts of each job. A job that was run on another machine starts anew on this one. Several runs may keep it at a
    time: each change is made to what the file says then, under `lock`."""

    def __init__(self, path, jobs, tree, lock):
        self.path, self.jobs, self.tree, self.lock = path, jobs, tree, lock
        try:
            system = platform.freedesktop_os_release()["PRETTY_NAME"]
        except (OSError, KeyError):
            system = platform.release()
        self.machine = f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores, {system}"
        self._read()

    @contextlib.contextmanager
    def change(self):
        """What is changed inside stands in the file then, beside what others wrote."""
        with alone(self.lock):
            self._read()
            yield
            self._write()

    def _read(self):
        self.parts, self.machines = {}, {}
        if not self.path.exists():
            return
        job = part = None
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                job, part = line[3:].split(":")[0], None
                self.parts[job] = {}
            elif job and line.startswith("machine: "):
                self.machines[job] = line.removeprefix("machine: ")
            elif part and line.startswith(EXCERPT.rstrip()):
                part.excerpt += (line.removeprefix(EXCERPT.rstrip()).removeprefix(" "),)
            elif job and len(columns := re.split(r"\s{2,}", line.strip(), maxsplit=5)) >= 5:
                part = Part(columns[0], columns[1], columns[2], float(columns[3].removesuffix(" s")),
                            "".join(columns[5:]))
                self.parts[job][columns[4]] = part

    def of(self, job):
        """The parts of a job on this machine, by name."""
        if self.machines.get(job) != self.machine:
            self.parts[job], self.machines[job] = {}, self.machine
        return self.parts[job]

    def list(self, job, names):
        """The parts that the job has now; what it has no longer is forgotten."""
        with self.change():
            known = self.of(job)
            self.parts[job] = {name: known.get(name, Part(NOT_RUN)) for name in names}

    def put(self, job, ends):
        """What became of parts. Where the files changed while one ran, nobody knows what it was run on: that is said, and
        never counts."""
        with self.change():
            self.tree = self.tree.now()
            for end in ends:
                self._put(self.of(job), end)

    def _put(self, known, end):
        before, note = known.get(end.name), end.note
        # What passed only after it had failed on the same files says so.
        failures = 0
        if before and before.verdict != NOT_RUN and end.tree.counts(before, None):
            match = re.search(r"failed (\d+) times? before", before.note)
            failures = (int(match[1]) if match else 0) + before.verdict.startswith("FAILED")
        if failures:
            note = f"{note}{', ' if note else ''}failed {failures} time{'s' * (failures > 1)} before"
        state = end.tree.state
        if self.tree.state != state:
            state, note = end.tree.head + "+changing", f"{note}{', ' if note else ''}files changed while it ran"
        known[end.name] = Part(end.verdict, state, datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ"),
                               end.seconds, re.sub(r"\s+", " ", note), tuple(end.excerpt))

    def summary(self, job):
        """One line: the verdict of all parts together, and the commits that it is of."""
        parts = self.parts.get(job)
        if not parts:
            return "never run"
        run = [part for part in parts.values() if part.verdict != NOT_RUN]
        failed = sum(part.verdict.startswith("FAILED") for part in run)
        skipped = sum(part.verdict == "SKIPPED" for part in run)
        passed = len(run) - failed - skipped
        if failed:
            verdict = "FAILED"
        elif len(run) < len(parts):
            verdict = "not complete"
        else:
            verdict = "passed" if passed else "SKIPPED"
        counts = [f"{passed} of {len(parts)} passed"]
        counts += [f"{number} {what}" for number, what in ((failed, "failed"), (skipped, "skipped"),
                                                           (len(parts) - len(run), "not run")) if number]
        text = f"{verdict}: {', '.join(counts)}; {sum(part.seconds for part in run):.0f} s"
        days = sorted({part.when[:10] for part in run})
        return text + (f"; {self._commits(run)}; {' to '.join(dict.fromkeys((days[0], days[-1])))}" if run else "")

    def _commits(self, run):
        states = {part.state for part in run}
        ages = {state: self.tree.age(state.split("+")[0]) for state in states}
        order = sorted(states, key=lambda state: (ages[state] is None, ages[state] or 0, state))

        def named(state):
            age = ages[state]
            where = "of another history" if age is None else f"{age} behind" if age else "newest"
            return f"{state} ({where})"

        if len(order) == 1:
            return f"commit {named(order[0])}"
        return f"{len(order)} commits, {named(order[0])} to {named(order[-1])}"

    def _write(self):
        lines = ["# The long jobs (scripts/test-full): what became of each part last, and on which commit; `behind` counts",
                 f"# the commits from there to {self.tree.head}. What says `+` had changes that were not committed.", "#"]
        for job in self.jobs:
            lines.append(f"#   {job:<11} {self.summary(job)}")
            lines += [f"#     failed: {name}" for name, part in self.parts.get(job, {}).items()
                      if part.verdict.startswith("FAILED")]
        for job in self.jobs:
            if self.parts.get(job):
                lines += ["", f"## {job}: {self.summary(job)}", f"machine: {self.machines.get(job, 'unknown')}"]
                lines += [part.line(name) for name, part in self.parts[job].items()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: a run may be cut off at any moment.
        draft = self.path.with_suffix(".draft")
        draft.write_text("\n".join(line.rstrip() for line in "\n".join(lines).split("\n")) + "\n", encoding="utf-8")
        draft.replace(self.path)
