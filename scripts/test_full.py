"""The long jobs of `make test-full`, part by part: a test, a sanitized suite, a fuzz harness, a table.

A part that has passed is not repeated while the files are the same (but for results, which the jobs write themselves);
one that failed or was skipped is tried again, after those that have not run yet. The record is
bench/results/test-full.log (test_full_log.py), which is kept with the results.

    test-full                       all jobs
    test-full JOB...                only these; --list shows them
    test-full --only REGEX JOB      only parts whose name matches
    test-full --limit SECONDS       begins no part after that time: what is left waits for the next call
    test-full --parallel N          tests of `full` side by side, as ctest would begin them with N (twice the cores, as
                                    `make test`). What failed beside others is repeated alone; the log says that it did
    test-full --since COMMIT        what passed on COMMIT or later counts as well; the log says which commit it was
    test-full --show                writes the log anew and prints its summary, without running anything

Several runs may go on at a time in one checkout, with different --only: they share the log.

Exit status: 0 all passed or skipped, 1 something failed (the rest still ran), 2 wrong arguments, 3 stopped at --limit,
or by a signal, with parts left.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import test_full_log
from test_full_commands import Ended, Processors, run, running, text_of

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parent.parent
CTEST = ROOT / ".venv/bin/ctest"
OUTPUTS = pathlib.Path(".setup/test-full")
SET_UP = "set-up and build"


def skipped_in(output):
    """Of a run of ctest: how many tests could not run here."""
    skipped = len(re.findall(r"^ *\d+/\d+ Test +#.*\*\*\*(?:Skipped|Not Run)", text_of(output), re.M))
    return [f"{skipped} of them skipped"] if skipped else []


class Whole:
    """A job in one piece."""

    def __init__(self, command, summary=r"tests (?:passed|failed)"):
        self.command, self.pattern = command, summary

    def parts(self, _output):
        return [" ".join(self.command)]

    def run(self, _part, output):
        run(self.command, output)
        said = [line.strip() for line in text_of(output).splitlines() if re.search(self.pattern, line)]
        return ", ".join(said + skipped_in(output))


def tests_of(folder, output, *filters):
    """ctest's tests, as it lists them."""
    listing = OUTPUTS / f"listing.{os.getpid()}"
    listing.unlink(missing_ok=True)
    run([CTEST, "--test-dir", folder, "--show-only=json-v1", *filters], listing)
    shown = text_of(listing)
    listing.unlink()
    try:
        tests = json.loads(shown[shown.index("{"):])["tests"]
    except ValueError:
        pathlib.Path(output).write_text(shown, encoding="utf-8")
        raise Ended(1) from None
    return tests


def share_of(test):
    """How many of ctest's processors a test is to have; None: all of them, nothing may run beside it."""
    properties = {each["name"]: each["value"] for each in test.get("properties", [])}
    return None if properties.get("RUN_SERIAL") else int(properties.get("PROCESSORS", 1))


def run_tests(folder, names, output, prefix=(), parallel=1, **environment):
    """Runs the named tests; what the log says of them. A single test that could not run here is skipped."""
    chosen = output.with_suffix(".chosen")
    chosen.write_text("\n".join(names) + "\n", encoding="utf-8")
    verbose = "--verbose" if len(names) == 1 else "--output-on-failure"
    run([*prefix, CTEST, "--test-dir", folder, "--tests-from-file", chosen.resolve(), verbose, "--no-tests=error",
         "--timeout", "7200", "--parallel", str(parallel)], output, **environment)
    skipped = skipped_in(output)
    if skipped and len(names) == 1:
        raise Ended(SKIPPED)
    return ", ".join([f"{len(names)} tests", *skipped]) if len(names) > 1 else ""


class Labelled:
    """The tests that carry the label `full`, each a part of its own: matrices and soaks."""

    def parts(self, output):
        run(["scripts/build", "release"], output)
        self.shares = {test["name"]: share_of(test) for test in tests_of("build", output, "--label-regex", "^full$")}
        if not self.shares:
            with open(output, "a", encoding="utf-8") as file:
                file.write("no test is labelled full\n")
            raise Ended(SKIPPED)
        return list(self.shares)

    def run(self, part, output):
        return run_tests("build", [part], output)


class Sanitized:
    """The unit tests and those of the transport inside hosts under one checking preset, suite by suite: some programs
    take minutes in all. Leaks are errors; so is anything UBSan finds."""

    def __init__(self, preset):
        self.preset, self.folder, self.only, self.suites = preset, "build-" + preset, re.compile(""), {}
        # ThreadSanitizer of GCC 12 cannot place its shadow where the kernel spreads addresses widely.
        plain = shutil.which("setarch") and subprocess.run(["setarch", "-R", "true"], capture_output=True,
                                                           check=False).returncode == 0
        self.plain = ["setarch", "-R"] if plain else []

    def build(self, programs, output):
        """Builds test programs, and finds their suites."""
        run([*self.plain, "scripts/build", self.preset, *programs], output)
        for test in tests_of(self.folder, output, "--label-regex", "^(unit|sanitized)$"):
            name, command = test["name"], test.get("command", [])
            found = [match[1] for word in command if (match := re.search(r"/bin/((?:test|fuzz)_\w+)", word))]
            program = found[0] if found else ""
            if program in programs:
                self.suites.setdefault(f"{program} {'.'.join(name.split('.')[:2])}", []).append(name)

    def parts(self, output):
        # Only the test programs: a preload object cannot carry a sanitizer into a foreign process. Those over MPI
        # libraries run none of the unit tests.
        run(["scripts/build", self.preset, "thalweg_core"], output)
        shown = subprocess.run([".venv/bin/ninja", "-C", self.folder, "-t", "targets", "all"], check=True, text=True,
                               capture_output=True).stdout
        programs = [name for name in sorted(set(re.findall(r"^bin/((?:test|fuzz)_[a-z0-9_]*): ", shown, re.M)))
                    if not re.match(r"test_(mpi_transport|rma)_", name)]
        # With --only no more is built than it names; a program that is not stands for all of its suites.
        chosen = [name for name in programs if self.only.search(name)] or programs
        self.build(chosen, output)
        return [*self.suites, *(name for name in programs if name not in chosen)]

    def run(self, part, output):
        if part not in self.suites:
            self.build([part], output)
        names = [name for suite, tests in self.suites.items() if part in (suite, suite.split()[0]) for name in tests]
        if not names:
            return "no unit test"
        return run_tests(self.folder, names, output, self.plain, len(os.sched_getaffinity(0)),
                         ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1", UBSAN_OPTIONS="print_stacktrace=1",
                         TSAN_OPTIONS="halt_on_error=1")


class Fuzz:
    """Every harness under libFuzzer. The corpora stay in build-fuzz/corpus: a run starts from what the last found."""

    seconds = os.environ.get("THALWEG_FUZZ_SECONDS", "60")

    def parts(self, output):
        try:
            run(["scripts/setup", "--full"], output)
        except Ended as error:
            raise error if shutil.which("clang++-14") else Ended(SKIPPED) from None
        run(["scripts/build", "fuzz", "fuzz"], output)
        return sorted(path.name.removeprefix("fuzz_") for path in pathlib.Path("build-fuzz/bin").glob("fuzz_*"))

    def run(self, part, output):
        program, corpus = f"build-fuzz/bin/fuzz_{part}", pathlib.Path("build-fuzz/corpus") / part
        corpus.mkdir(parents=True, exist_ok=True)
        run([program, "--seeds", corpus], output)
        # libFuzzer would say 77 for a fault; here that means skipped.
        run([program, f"-max_total_time={self.seconds}", "-max_len=4096", "-timeout=30", "-rss_limit_mb=4096",
             "-error_exitcode=1", "-timeout_exitcode=1", f"-artifact_prefix=build-fuzz/{part}-", "-print_final_stats=1",
             corpus], output)
        inputs = re.search(r"^stat::number_of_executed_units: *(\d+)", text_of(output), re.M)
        return f"{inputs[1] if inputs else '?'} inputs, {len(list(corpus.iterdir()))} in the corpus"


class Tables:
    """The measured tables, one by one. Each goes on at the row where it was cut off."""

    def parts(self, output):
        run(["scripts/build", "release"], output)
        run(["scripts/lab-tables", "--list"], output)
        return [line.removeprefix("table ") for line in text_of(output).splitlines() if line.startswith("table ")]

    def run(self, part, output):
        run(["scripts/lab-tables", *part.split()], output)
        return ""


class Fresh(Whole):
    """`make demo` and `make test` in a bare system; of the last commit, whatever is not committed."""

    def __init__(self):
        super().__init__(["scripts/prove-fresh", "demo", "test"], r"tests (?:passed|failed)|set-up and build")

    def run(self, part, output):
        if os.geteuid() != 0:
            pathlib.Path(output).write_text("needs root, for chroot\n", encoding="utf-8")
            raise Ended(SKIPPED)
        run(["scripts/setup", "--full"], output)
        return super().run(part, output)


JOBS = {
    "test": ("every test of make test", lambda: Whole(["scripts/test"])),
    "full": ("the tests labelled full: matrices and soaks", Labelled),
    "asan": ("unit tests, and every protocol inside hosts, under AddressSanitizer and UndefinedBehaviorSanitizer",
             lambda: Sanitized("debug")),
    "tsan": ("the same under ThreadSanitizer", lambda: Sanitized("tsan")),
    "fuzz": ("each harness of tests/fuzz under libFuzzer, for THALWEG_FUZZ_SECONDS (60)", Fuzz),
    "fresh": ("make demo and make test in a bare Debian 12 made for it", Fresh),
    "lab-tables": ("the measured tables on the lab (hours, and wants a quiet machine)", Tables),
}


class Runner:
    def __init__(self, options):
        self.since, self.limit, self.only = options.since, options.limit, re.compile(options.only or "")
        self.processors = options.parallel
        self.begun = time.monotonic()
        self.tree = test_full_log.Tree()
        self.log = test_full_log.Log(pathlib.Path("bench/results/test-full.log"), JOBS, self.tree, OUTPUTS / "lock")
        self.lock = threading.Lock()  # of the log, and of what is printed
        self.failed, self.left = [], []

    def late(self):
        return self.limit is not None and time.monotonic() - self.begun >= self.limit

    def attempt(self, job, part, work):
        """Runs one part, or the building before the parts, and writes what became of it. Returns what `work` gives."""
        output = OUTPUTS / job / (re.sub(r"[^A-Za-z0-9_.-]", "_", part) + ".output")
        output.parent.mkdir(parents=True, exist_ok=True)
        output.unlink(missing_ok=True)
        with self.lock:
            tree = self.tree = self.log.tree = test_full_log.Tree()
        start, result, note, excerpt = time.monotonic(), None, "", []
        try:
            result = work(output)
            verdict = "passed"
            note = result if isinstance(result, str) else ""
        except Ended as error:
            verdict = "SKIPPED" if error.status == SKIPPED else f"FAILED (exit {error.status})"
            said = [line.rstrip() for line in text_of(output).splitlines() if line.strip()]
            if verdict == "SKIPPED":
                note = at_home(reason(said))
            else:
                excerpt = [re.sub(r"[^\x20-\x7e]", "?", at_home(line))[:200] for line in said[-30:]]
        scarce = running.processors.pop(str(output), Processors()).scarce()
        note = ", ".join(filter(None, (note, scarce)))
        if part != SET_UP or verdict != "passed":
            seconds = time.monotonic() - start
            with self.lock:
                self.log.put(job, part, tree, verdict, seconds, note, excerpt)
                print(f"{job}: {verdict}, {seconds:.0f} s: {part}{' (' + note + ')' if note else ''}", flush=True)
                if excerpt:
                    print("\n".join(test_full_log.EXCERPT + line for line in excerpt), flush=True)
        return verdict, result

    def side_by_side(self, job, work, parts):
        """Attempts parts in their order, as many at a time as their shares allow. What failed beside others is repeated
        alone, behind them. Returns whether any is left for the next call."""
        shares, waiting, again = getattr(work, "shares", dict.fromkeys(parts)), list(parts), []
        going, beside = {}, set()

        def share(part):
            own = shares.get(part)
            return self.processors if own is None else min(own, self.processors)

        def fits():
            return not going or waiting and sum(map(share, going.values())) + share(waiting[0]) <= self.processors

        pool = concurrent.futures.ThreadPoolExecutor(self.processors)
        try:
            while going or (waiting or again) and not self.late():
                while (waiting or again) and not self.late() and fits():
                    part = (waiting or again).pop(0)
                    going[pool.submit(self.attempt, job, part, lambda output, part=part: work.run(part, output))] = part
                    if len(going) > 1:
                        beside.update(going.values())
                for future in concurrent.futures.wait(going, return_when=concurrent.futures.FIRST_COMPLETED).done:
                    part = going.pop(future)
                    failed = future.result()[0].startswith("FAILED")
                    if failed and part in beside:
                        beside.remove(part)
                        again.append(part)
                    elif failed and job not in self.failed:
                        self.failed.append(job)
        except BaseException:
            running.stop()
            raise
        finally:
            pool.shutdown()
        if again and job not in self.failed:
            self.failed.append(job)
        return bool(waiting or again)

    def job(self, name):
        known = self.log.of(name)
        # What is complete needs no build to say so.
        if known and all(self.done(part) for part in known.values()):
            print(f"test-full: {name} passed before ({self.log.summary(name)})")
            return
        if self.late():
            self.left.append(name)
            return
        work = JOBS[name][1]()
        work.only = self.only
        # Of several runs at a time one builds.
        with test_full_log.alone(OUTPUTS / "building"):
            verdict, parts = self.attempt(name, SET_UP, work.parts)
        if verdict != "passed":
            if verdict != "SKIPPED":
                self.failed.append(name)
            return
        self.log.list(name, parts)
        known = self.log.of(name)
        wanted = [part for part in known if self.only.search(part) and not self.done(known[part])]
        print(f"test-full: {name}, {len(wanted)} of {len(known)} parts to run", flush=True)
        # Those that have not run yet first; what runs alone behind what does not.
        shares = getattr(work, "shares", {})
        wanted.sort(key=lambda part: (self.tree.counts(known[part], self.since), shares.get(part) is None))
        if self.side_by_side(name, work, wanted):
            self.left.append(name)
        print(f"test-full: {name}: {self.log.summary(name)}", flush=True)

    def done(self, part):
        return part.verdict == "passed" and self.tree.counts(part, self.since)


def at_home(line):
    """A line of output with the names of this checkout's folders as seen from it: the log is kept elsewhere too."""
    for link in (path for path in ROOT.glob(".venv*") if path.is_symlink()):
        line = line.replace(str(link.resolve()), link.name)
    return line.replace(str(ROOT), ".")


def reason(said):
    """Why something was skipped: the last line that is not ctest's own."""
    own = r"^\d+: (Test |Working Directory|Environment variables| )|^\d+: *$"
    lines = [line for line in said if re.match(r"\d+: ", line) and not re.match(own, line)] or said
    return re.sub(r"^\d+: ", "", lines[-1]).strip()[:160] if lines else "no reason given"


def cut_off(*_):
    """An exception, so that what runs is ended; what has passed is in the log."""
    print("test-full: cut off; the next call goes on", file=sys.stderr)
    sys.exit(3)


def main():
    parser = argparse.ArgumentParser(prog="test-full", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", metavar="REGEX")
    parser.add_argument("--limit", type=float, metavar="SECONDS")
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--parallel", type=int, metavar="N", default=2 * len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.list:
        print("\n".join(f"{name:<11} {what}" for name, (what, _) in JOBS.items()))
        return 0
    for name in options.jobs:
        if name not in JOBS:
            parser.error(f"no job {name}; see test-full --list")
    if options.parallel < 1:
        parser.error("--parallel wants a number of processors, 1 or more")
    if options.since:
        options.since = test_full_log.git("rev-parse", "--verify", options.since + "^{commit}").strip()
    signal.signal(signal.SIGTERM, cut_off)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    runner = Runner(options)
    if not options.show:
        for name in options.jobs or JOBS:
            runner.job(name)
    with runner.log.change():
        pass
    for name in JOBS:
        print(f"{name:<11} {runner.log.summary(name)}")
    if runner.failed:
        print(f"test-full: failed: {' '.join(runner.failed)} (all of it in {OUTPUTS})", file=sys.stderr)
        return 1
    if runner.left:
        print(f"test-full: stopped after {options.limit:.0f} s; more to run: {' '.join(runner.left)}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
