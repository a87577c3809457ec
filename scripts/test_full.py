"""The long jobs of `make test-full`, part by part: a test, a sanitized suite, a fuzz harness, a table.

A part that has passed is not repeated while the files are the same (but for results, which the jobs write themselves);
one that failed or was skipped is tried again, after those that have not run yet. The record is
bench/results/test-full.log (test_full_log.py), which is kept with the results.

    test-full                       all jobs
    test-full JOB...                only these; --list shows them
    test-full --only REGEX JOB      only parts whose name matches
    test-full --limit SECONDS       counts no part that begins after that time: what is left waits for the next call
    test-full --parallel N          tests of `full` side by side, as ctest would begin them with N (twice the cores; `make
                                    test` takes four times). What failed beside others is repeated alone; the log says so
    test-full --since COMMIT        what passed on COMMIT or later counts as well; the log says which commit it was
    test-full --show                writes the log anew and prints its summary, without running anything

Several runs may go on at a time in one checkout, with different --only: they share the log.

Exit status: 0 all passed or skipped, 1 something failed (the rest still ran), 2 wrong arguments, 3 stopped at --limit,
or by a signal, with parts left.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import test_full_batch
import test_full_log
from test_full_commands import Ended, Processors, running, text_of
from test_full_jobs import JOBS, OUTPUTS, ROOT, SET_UP, SKIPPED, skipped_tests

class Runner:
    def __init__(self, options):
        self.since, self.limit, self.only = options.since, options.limit, re.compile(options.only or "")
        self.processors = options.parallel
        self.begun = time.monotonic()
        self.log = test_full_log.Log(pathlib.Path("bench/results/test-full.log"), JOBS, test_full_log.Tree(),
                                     OUTPUTS / "lock")
        self.lock = threading.Lock()  # of the log, and of what is printed
        self.failed, self.left = [], []

    def room(self):
        """Seconds in which parts may begin."""
        return float("inf") if self.limit is None else self.limit - (time.monotonic() - self.begun)

    def late(self):
        return self.room() <= 0

    def record(self, job, ends):
        """Writes what became of parts to the log, and prints it."""
        with self.lock:
            self.log.put(job, ends)
            for end in ends:
                note = f" ({end.note})" if end.note else ""
                print(f"{job}: {end.verdict}, {end.seconds:.0f} s: {end.name}{note}", flush=True)
                if end.excerpt:
                    print("\n".join(test_full_log.EXCERPT + line for line in end.excerpt), flush=True)

    def attempt(self, job, part, work):
        """Runs one part, or the building before the parts, and writes what became of it. Returns what `work` gives."""
        output = output_of(job, part)
        with self.lock:
            tree = self.log.tree = self.log.tree.now()
        start, result, note, excerpt = time.monotonic(), None, "", []
        try:
            result = work(output)
            verdict = "passed"
            note = result if isinstance(result, str) else ""
            if names := skipped_tests(output):
                excerpt = textwrap.wrap("skipped: " + " ".join(names), 110, break_on_hyphens=False)
        except Ended as error:
            verdict = "SKIPPED" if error.status == SKIPPED else f"FAILED (exit {error.status})"
            note, excerpt = why(verdict, text_of(output).splitlines())
        scarce = running.processors.pop(str(output), Processors()).scarce()
        note = ", ".join(filter(None, (note, scarce)))
        if part != SET_UP or verdict != "passed":
            self.record(job, [test_full_log.End(part, tree, verdict, time.monotonic() - start, note, excerpt)])
        return verdict, result

    def attempt_together(self, job, parts, work, beside):
        """Runs parts by one ctest, and writes what became of each as it ends. Returns their verdicts; None of what has
        not ended. Those that ran beside others come to `beside`."""
        output = output_of(job, "together " + parts[0])
        with self.lock:
            self.log.tree = self.log.tree.now()
        batch = test_full_batch.Batch(output, work.together)
        verdicts, trees, awaited = dict.fromkeys(parts), {}, None

        def tell(process):
            nonlocal awaited
            # What begins between two looks does so on the files of the last look, or their change is seen.
            tree = self.log.tree
            ended = batch.read(running.said.get(str(output)))
            for name in batch.running:
                trees.setdefault(name, tree)
            ends = []
            for end in ended:
                if awaited is not None and end.name not in awaited:
                    continue
                output_of(job, end.name).write_text("\n".join(end.lines) + "\n", encoding="utf-8")
                note, excerpt = why(end.verdict, end.lines)
                note = ", ".join(filter(None, (note, end.scarce)))
                ends.append(test_full_log.End(end.name, trees.get(end.name, tree), end.verdict, end.seconds, note,
                                              excerpt))
                verdicts[end.name] = end.verdict
            beside.update(batch.beside)
            if ends:
                self.record(job, ends)
            # At the limit those are awaited that run; what ctest begins then is begun in vain.
            if awaited is None and self.late():
                awaited = set(batch.running)
            if process:
                batch.look(process)
            return awaited is None or not awaited.isdisjoint(batch.running)

        work.run_together(parts, output, self.processors, tell)
        if all(verdicts.values()):
            for path in (output, output.with_suffix(".chosen")):
                path.unlink()  # each part has its own
        return verdicts

    def side_by_side(self, job, work, parts):
        """Attempts parts in their order, as many at a time as their shares allow; short ones many by one ctest, which
        knows the shares itself. What failed beside others is repeated alone, behind them. Returns whether any is left
        for the next call."""
        shares, waiting, again = getattr(work, "shares", dict.fromkeys(parts)), list(parts), []
        seconds = test_full_batch.expected(getattr(work, "together", ()), self.log.of(job), shares, self.processors)
        going, beside = {}, set()

        def share(part):
            own = None if part in seconds else shares.get(part)
            return self.processors if own is None else min(own, self.processors)

        def fits():
            return not going or waiting and sum(share(chosen[0]) for chosen in going.values()) + share(waiting[0]) \
                <= self.processors

        def alone(part):
            return {part: self.attempt(job, part, lambda output: work.run(part, output))[0]}

        pool = concurrent.futures.ThreadPoolExecutor(self.processors)
        try:
            while going or (waiting or again) and not self.late():
                while (waiting or again) and not self.late() and fits():
                    chosen = test_full_batch.take(waiting, seconds, self.room()) if waiting else [again.pop(0)]
                    if len(chosen) == 1:
                        future = pool.submit(alone, chosen[0])
                    else:
                        future = pool.submit(self.attempt_together, job, chosen, work, beside)
                    going[future] = chosen
                    if len(going) > 1:
                        beside.update(*going.values())
                for future in concurrent.futures.wait(going, return_when=concurrent.futures.FIRST_COMPLETED).done:
                    going.pop(future)
                    for part, verdict in future.result().items():
                        failed = verdict and verdict.startswith("FAILED")
                        if not verdict:  # its ctest was ended, or ended itself: it gets one of its own
                            seconds.pop(part)
                            waiting.insert(0, part)
                        elif failed and part in beside:
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
        # Those that have not run yet first; what runs alone behind what does not; what one ctest may run together.
        shares, together, tree = getattr(work, "shares", {}), getattr(work, "together", ()), self.log.tree
        wanted.sort(key=lambda part: (tree.counts(known[part], self.since), shares.get(part) is None,
                                      part in together and not test_full_batch.short(known[part])))
        if self.side_by_side(name, work, wanted):
            self.left.append(name)
        print(f"test-full: {name}: {self.log.summary(name)}", flush=True)

    def done(self, part):
        return part.verdict == "passed" and self.log.tree.counts(part, self.since)


def output_of(job, part):
    """The file for what a part says, which is not there yet."""
    output = OUTPUTS / job / (re.sub(r"[^A-Za-z0-9_.-]", "_", part) + ".output")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    return output


def at_home(line):
    """A line of output with the names of this checkout's folders as seen from it: the log is kept elsewhere too."""
    for link in (path for path in ROOT.glob(".venv*") if path.is_symlink()):
        line = line.replace(str(link.resolve()), link.name)
    return line.replace(str(ROOT), ".")


def reason(said):
    """Why something was skipped: the last line that says so, or else that has words and is not ctest's own."""
    own = r"^\d+: (Test |Working Directory|Environment variables| )|^\d+: *$"
    lines = [line for line in said if re.match(r"\d+: ", line) and not re.match(own, line)] or said
    told = [line for line in lines if "skipped: " in line] or [line for line in lines if re.search("[A-Za-z]", line)] or lines
    return re.sub(r"^\d+: ", "", told[-1]).strip()[:160] if told else "no reason given"


def why(verdict, lines):
    """Of what did not pass: the note for its line in the log, and the lines beneath that."""
    said = [line.rstrip() for line in lines if line.strip()]
    if verdict == "SKIPPED":
        return at_home(reason(said)), []
    if verdict.startswith("FAILED"):
        return "", [re.sub(r"[^\x20-\x7e]", "?", at_home(line))[:200] for line in said[-30:]]
    return "", []


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
    try:
        re.compile(options.only or "")
        if options.since:
            options.since = test_full_log.git("rev-parse", "--verify", options.since + "^{commit}").strip()
    except re.error as error:
        parser.error(f"--only {options.only} is no regular expression: {error}")
    except subprocess.CalledProcessError:
        parser.error(f"--since {options.since} is no commit of this checkout")
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
