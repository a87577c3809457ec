"""What the jobs of test_full.py are: of which parts each consists, and how one runs."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from test_full_commands import Ended, run, text_of

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parent.parent
CTEST = ROOT / ".venv/bin/ctest"
OUTPUTS = pathlib.Path(".setup/test-full")
SET_UP = "set-up and build"


def skipped_tests(output):
    """Of a run of ctest: the names of the tests that could not run here."""
    return re.findall(r"^ *\d+/\d+ Test +#\d+: +(\S+).*\*\*\*(?:Skipped|Not Run)", text_of(output), re.M)


def skipped_in(output):
    """The same: how many they are."""
    skipped = len(skipped_tests(output))
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


def ctest(folder, names, output, verbose, parallel):
    """The command that runs the named tests."""
    chosen = output.with_suffix(".chosen")
    chosen.write_text("\n".join(names) + "\n", encoding="utf-8")
    return [CTEST, "--test-dir", folder, "--tests-from-file", chosen.resolve(), verbose, "--no-tests=error",
            "--timeout", "7200", "--parallel", str(parallel)]


def run_tests(folder, names, output, prefix=(), parallel=1, **environment):
    """Runs the named tests; what the log says of them. A single test that could not run here is skipped."""
    verbose = "--verbose" if len(names) == 1 else "--output-on-failure"
    run([*prefix, *ctest(folder, names, output, verbose, parallel)], output, **environment)
    skipped = skipped_in(output)
    if skipped and len(names) == 1:
        raise Ended(SKIPPED)
    return ", ".join([f"{len(names)} tests", *skipped]) if len(names) > 1 else ""


def run_together(folder, names, output, parallel, tell, **environment):
    """Runs the named tests by one ctest, whose lines `tell` reads while it runs: the outcome of each is there."""
    try:
        run(ctest(folder, names, output, "--verbose", parallel), output, tell, **environment)
    except Ended:
        pass  # some have failed


class Labelled:
    """The tests that carry the label `full`, each a part of its own: matrices and soaks. One ctest may run several of
    them together, but for those that measure times: nothing is to be written or looked at meanwhile."""

    def parts(self, output):
        run(["scripts/build", "release"], output)
        tests = {test["name"]: test for test in tests_of("build", output, "--label-regex", "^full$")}
        self.shares = {name: share_of(test) for name, test in tests.items()}
        self.together = {name: test for name, test in tests.items() if self.shares[name] is not None}
        if not self.shares:
            with open(output, "a", encoding="utf-8") as file:
                file.write("no test is labelled full\n")
            raise Ended(SKIPPED)
        return list(self.shares)

    def run(self, part, output):
        return run_tests("build", [part], output)

    def run_together(self, names, output, processors, tell):
        run_together("build", names, output, processors, tell)


class Sanitized:
    """The unit tests and those of the transports between processes under one checking preset, suite by suite: some programs
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
                         # That of GCC 12 takes memory that libucs has for a thread's for the loader's, and ends there.
                         ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0",
                         LSAN_OPTIONS=f"suppressions={pathlib.Path('tests/leaks.supp').resolve()}",
                         UBSAN_OPTIONS="print_stacktrace=1", TSAN_OPTIONS="halt_on_error=1")


class SanitizedObjects:
    """Programs of MPICH with AddressSanitizer in the preload objects: collectives of every kind, requests, trials and what
    becomes of communicators. Left out is what measures memory or time, or has an allocator of its own."""

    CHOSEN = re.compile(
        r"plan\.mpich5\.(?!tried_unseen)(matrix|types|nonblocking|persistent|collectives|alltoall|neighbour|halo|grid|tried"
        r"|one_host|repeated|again|spawned|communicators|arguments|edges|uneven|unequal|sized|reductions|blocking|threads"
        r"|self_driven|statuses|waitall|asked|many_tested|inside_hosts|forms|shapes|deleting|ends|answered)")

    def parts(self, output):
        run(["scripts/build", "debug", "thalweg_core"], output)
        tests = [test for test in tests_of("build-debug", output, "--label-regex", "^mpi$")
                 if self.CHOSEN.match(test["name"])]
        words = " ".join(word for test in tests for word in test.get("command", []))
        targets = {*re.findall(r"/lib((?:thalweg-|plan_faults_|plan_gate)[a-z0-9-]*)\.so", words),
                   *re.findall(r"/(plan_\w+_mpich5)\b", words)}
        run(["scripts/build", "debug", *sorted(targets)], output)
        self.together = {test["name"]: test for test in tests}
        return list(self.together)

    def run(self, part, output):
        return run_tests("build-debug", [part], output, UBSAN_OPTIONS="print_stacktrace=1")

    def run_together(self, names, output, _processors, tell):
        run_together("build-debug", names, output, 1, tell, UBSAN_OPTIONS="print_stacktrace=1")


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
    "asan": ("unit tests, and every protocol inside and between hosts, under AddressSanitizer and UndefinedBehaviorSanitizer",
             lambda: Sanitized("debug")),
    "tsan": ("the same under ThreadSanitizer", lambda: Sanitized("tsan")),
    "asan-mpi": ("programs of MPICH whose preload objects AddressSanitizer and UndefinedBehaviorSanitizer check",
                 SanitizedObjects),
    "fuzz": ("each harness of tests/fuzz under libFuzzer, for THALWEG_FUZZ_SECONDS (60)", Fuzz),
    "fresh": ("make demo and make test in a bare Debian 12 made for it", Fresh),
    "lab-tables": ("the measured tables on the lab (hours, and wants a quiet machine)", Tables),
}
