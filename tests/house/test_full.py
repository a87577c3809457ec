"""scripts/test-full in a small git checkout whose jobs are stand-ins: what passed is not repeated for the same files,
what was cut off goes on, what cannot run is SKIPPED, what fails fails, and the log says of which commit each of it is.

    test_full.py SOURCE_ROOT CTEST
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

from test_full_checkout import expect, main


def one_piece(checkout):
    """Jobs that are one command: passed once, skipped with a reason, failed with their output."""
    skipped = [f"plan.some-mpi.part_{number}.2" for number in range(20)]
    said = [f"{number:>2}/22 Test {'#' + str(number):>4}: {name} ....***Skipped   0.10 sec"
            for number, name in enumerate(skipped, 1)]
    said += ["21/22 Test #21: lab.check ....   Passed    0.10 sec", "22/22 Test #22: gone ....***Not Run (Disabled)   0.00 sec"]
    checkout.script("test", "\n".join(f"echo '{line}'" for line in [*said, "100% tests passed, 0 tests failed out of 22"]))
    checkout.script("lab-tables", "[ $1 = --list ] && echo 'table bcast' && exit\necho 'no namespaces here'; exit 77")
    checkout.commit("second")
    done = checkout.full("test", "lab-tables")
    expect(done.returncode == 0, "a skipped job is no failure", done.stdout + done.stderr)
    expect(checkout.line("scripts/test")[:2] == ["passed", checkout.head()], "the log names the commit", checkout.log())
    expect("100% tests passed" in checkout.log(), "the log says how many tests passed", checkout.log())
    expect("21 of them skipped" in checkout.note("scripts/test"), "and how many were skipped", checkout.log())
    expect(checkout.beneath("scripts/test") == ["skipped:", *skipped, "gone"], "each by its name", checkout.log())
    expect(max(map(len, checkout.log().splitlines())) < 240, "in lines that can be read", checkout.log())
    expect(checkout.line("bcast")[0] == "SKIPPED" and checkout.note("bcast") == "no namespaces here",
           "a skip is shown with its reason", checkout.log())
    expect("lab-tables  SKIPPED" in done.stdout, "the summary says what was skipped", done.stdout)

    checkout.full("test", "lab-tables")
    expect(checkout.runs("test") == 1, "what passed is not repeated", checkout.log())
    expect(checkout.beneath("scripts/test") == ["skipped:", *skipped, "gone"], "nor forgotten", checkout.log())
    expect(checkout.runs("lab-tables") == 4, "what was skipped is tried again", checkout.log())

    # What the long jobs write themselves is no change of what is tested; anything else is.
    (checkout.tree / "docs/measurements.md").write_text("a table\n")
    checkout.commit("A table")
    checkout.full("test")
    expect(checkout.runs("test") == 1, "a new table does not repeat the tests", checkout.log())
    checkout.script("test", "echo 'something broke'; exit 8")
    failed = checkout.full("test")
    expect(failed.returncode == 1, "a failure is the exit status", failed.stdout)
    expect(checkout.line("scripts/test")[0] == "FAILED (exit 8)" and "| something broke" in checkout.log(),
           "a failure is shown with its output", checkout.log())
    expect(checkout.line("scripts/test")[1].startswith(checkout.head() + "+"), "so are changes that are not committed",
           checkout.log())
    for wrong in (["tset"], ["--only", "[", "full"], ["--since", "nothing", "full"], ["--parallel", "0"]):
        refused = checkout.full(*wrong)
        expect(refused.returncode == 2 and "Traceback" not in refused.stderr, f"{wrong} is refused", refused)

    # A job that ends in the middle does not pass because its last command would.
    checkout.script("build", "exit 3")
    expect("lab-tables: FAILED (exit 3)" in checkout.full("lab-tables").stdout, "a job ends at its first error",
           checkout.log())
    expect("set-up and build" in checkout.log(), "what failed was the build", checkout.log())


def pieces(checkout):
    """Tests one by one: a run that is cut off goes on; the parts' commits stand beside them."""
    checkout.commit("Tests")
    old, one, names = checkout.head(), ("--parallel", "1"), ["first", "second", "third"]
    for limit in (0.5, 1, 2, 4, 8, 16, 32, 64):  # a busy machine may take longer to come to the first part
        checkout.ctest(names, names, first=f"sleep {limit + 0.1}", second="exit 8",
                       third="echo skipped: no such thing; echo -----; exit 77")
        cut = checkout.full("--limit", str(limit), *one, "full")
        if checkout.runs("first") != 0:
            break
    expect(cut.returncode == 3 and "more to run: full" in cut.stderr, "a limit ends it with its own status", cut.stderr)
    expect([checkout.runs(name) for name in ("first", "second")] == [1, 0], "the running part is completed", cut.stdout)
    expect("full        not complete: 1 of 3 passed, 2 not run" in checkout.log(), "the log does not call it passed",
           checkout.log())
    expect(checkout.line("third")[:2] == ["not run", "-"], "what has not run has a line", checkout.log())
    rest = checkout.full(*one, "full")
    expect(rest.returncode == 1 and [checkout.runs(name) for name in ("first", "second", "third")] == [1, 1, 1],
           "it goes on where it was", rest.stdout)
    expect(checkout.note("third") == "skipped: no such thing", "why is told by what says so", checkout.log())
    head = checkout.log().partition("\n\n")[0]
    expect("full        FAILED: 1 of 3 passed, 1 failed, 1 skipped" in head, "each verdict is counted", head)
    days = sorted({checkout.line(name)[2][:10] for name in ("first", "second", "third")})
    expect(f"commit {old} (newest); {' to '.join(days)}" in head, "with the commit and the day", head)
    expect("failed: second" in head and "failed: first" not in head, "what failed is named", head)

    # Another commit begins anew, unless older passes shall count; they keep the name of theirs.
    (checkout.tree / "source").write_text("changed\n")
    checkout.commit("Change")
    checkout.ctest(["first", "second", "third"])
    checkout.full("--since", old, *one, "full")
    expect([checkout.runs(name) for name in ("first", "second", "third")] == [1, 2, 2], "older passes count if told",
           checkout.log())
    expect([checkout.line(name)[1] for name in ("first", "second")] == [old, checkout.head()], "each with its commit",
           checkout.log())
    expect(f"2 commits, {checkout.head()} (newest) to {old} (1 behind)" in checkout.log(), "and how old that is",
           checkout.log())
    checkout.full("--only", "^(first|second)$", *one, "full")
    expect([checkout.runs(name) for name in ("first", "second", "third")] == [2, 2, 2],
           "by default only what passed with these files does", checkout.log())

    # Nobody knows what a part was run on whose files were edited meanwhile.
    checkout.ctest(["first"], first="echo more >>source")
    (checkout.tree / "source").write_text("changed once more\n")
    for _ in range(2):
        checkout.full(*one, "full")
    expect(checkout.line("first")[1].endswith("+changing") and checkout.runs("first") == 4,
           "what was edited meanwhile never counts", checkout.log())

    # What passes after it has failed on the same files is not told as if it always had.
    (checkout.tree / "source").write_text("changed again\n")
    checkout.ctest(["first", "fourth"], fourth="exit 1")
    checkout.full(*one, "full")
    expect(not checkout.line("third"), "tests that are no more are forgotten", checkout.log())
    checkout.ctest(["first", "fourth"])
    checkout.full(*one, "full")
    expect(checkout.note("fourth") == "failed 1 time before", "a failure before is kept in sight", checkout.log())


def beside(checkout):
    """Tests side by side, as many as their processors allow; what fails in company is repeated alone."""
    names = ["timed", "first", "second", "third"]
    # Each says who is there when it begins. The first and the second wait for each other; the second fails then.
    says, ends = "echo $name: $(ls | sed -n s/^runs-//p) >>seen; touch runs-$name; ", "; rm runs-$name"
    wait = "for i in $(seq 4000); do [ ! -e {} ] || break; sleep 0.05; done"
    checkout.ctest(names, serial=("timed",), timed=says + "sleep 0.1" + ends, third=says + "sleep 0.1" + ends,
                   first=says + wait.format("tried") + ends,
                   second=says + "[ ! -e tried ] || {{ rm runs-second; exit 0; }}; {}; [ ! -e runs-first ] || echo >met; touch tried; sleep 0.1{}; exit 8"
                   .format(wait.format("runs-first"), ends))
    (checkout.tree / ".gitignore").open("a").write("/seen\n/met\n/tried\n/runs-*\n")
    checkout.commit("Tests")
    done = checkout.full("--parallel", "4", "full")
    seen = (checkout.tree / "seen").read_text().splitlines()
    expect(done.returncode == 0 and "second:" in seen, "what failed beside others passes alone", done.stdout)
    expect((checkout.tree / "met").exists(), "two of two processors each run at once", seen)
    expect(all(len(line.split()) <= 2 for line in seen), "no more at a time than their processors allow", seen)
    expect("timed:" in seen, "what measures times runs alone", seen)
    expect(checkout.note("second") == "failed 1 time before", "that it failed is kept in sight", checkout.log())
    expect("full        passed: 4 of 4 passed" in checkout.log(), "each has a line of its own", checkout.log())


def shared(checkout):
    """Two runs at a time keep one log: each finds the other's lines when it writes its own."""
    checkout.ctest(["first", "second"], first="for i in $(seq 8000); do [ ! -e through ] || break; sleep 0.05; done")
    (checkout.tree / ".gitignore").open("a").write("/through\n")
    checkout.commit("Tests")
    slow = checkout.begin("--only", "first", "full")
    for _ in range(10000):
        if "first" in checkout.ran():
            break
        time.sleep(0.02)
    checkout.full("--only", "second", "full")
    expect(slow.poll() is None and checkout.line("second")[0] == "passed", "one ends beside the other", checkout.log())
    (checkout.tree / "through").touch()
    expect(slow.wait(timeout=280) == 0 and checkout.line("first")[0] == "passed", "so does the other", checkout.log())
    expect(checkout.line("second")[0] == "passed", "neither forgets the other's", checkout.log())


def scarce(checkout):
    """How long processes waited for a processor is seen, and said where it was most of what they did."""
    sys.path.insert(0, str(checkout.tree / "scripts"))
    from test_full_commands import Processors
    own = pathlib.Path("/proc/self/schedstat")
    if not own.exists() or own.read_text().startswith("0 "):
        return  # this kernel does not count
    one = min(os.sched_getaffinity(0))
    rivals = [subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{one}}})\nwhile True: pass"])
              for _ in range(2)]
    seen = Processors()
    for _ in range(1000):
        time.sleep(0.1)
        seen.look([rival.pid for rival in rivals])
        if seen.threads and all(min(times) > 0.02 for times in seen.threads.values()):
            break
    for rival in rivals:
        rival.kill()
        rival.wait()
    expect(len(seen.threads) == 2 and all(min(times) > 0.02 for times in seen.threads.values()),
           "two that share a processor both use it and wait for it", seen.threads)
    seen.threads = {"1": [2.0, 400.0], "2": [1.0, 71.0]}
    expect(seen.scarce() == "had 3 s of processors, waited 471 s for them", "what waited most says so", seen.scarce())
    seen.threads = {"1": [500.0, 400.0]}
    expect(seen.scarce() == "", "what ran most does not", seen.scarce())


def cut_off(checkout):
    """A run that is killed leaves what had passed, and nothing that it started."""
    checkout.ctest(["first", "second"], first="sleep 0.2", second="setsid sleep 500 & echo $! >>runs; wait")
    checkout.commit("Tests")
    run = checkout.begin("--parallel", "1", "full")  # one behind the other, so that the first has passed
    for _ in range(10000):
        time.sleep(0.02)
        if checkout.ran() and checkout.ran()[-1].isdigit():
            break
    sleeper = checkout.ran()[-1]
    run.terminate()
    expect(run.wait(timeout=280) == 3, "its status says that something is left", run.returncode)
    # A process that has ended may still be a zombie.
    try:
        state = pathlib.Path(f"/proc/{sleeper}/stat").read_text().split()[2]
    except (FileNotFoundError, ProcessLookupError):
        state = "gone"
    expect(state in ("Z", "gone"), "what a test started ends with it, in a session of its own too", (sleeper, state))
    expect("not complete: 1 of 2 passed, 1 not run" in checkout.log(), "what had passed stands", checkout.log())


def history(checkout):
    """What the files and the history are is asked of git anew for each part; of what is known of a commit, only once."""
    names = ["first", "second", "third"]
    checkout.ctest(names, serial=names)
    commits = []
    for number in range(6):
        (checkout.tree / "source").write_text(f"{number}\n")
        checkout.commit("Change")
        commits.append(checkout.head())
    checkout.full("full")
    log = checkout.tree / "bench/results/test-full.log"
    lines = [line for line in checkout.log().splitlines() if line.endswith(" s  third")]
    log.write_text(checkout.log().replace(lines[0], lines[0].replace(commits[-1], commits[0])))
    (checkout.tree / ".venv/bin/git").write_text(f'#!/bin/sh\necho "$1" >>.setup/git\nexec {shutil.which("git")} "$@"\n')
    (checkout.tree / ".venv/bin/git").chmod(0o755)
    (checkout.tree / "source").write_text("changed\n")
    checkout.commit("Change")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{checkout.tree}/.venv/bin:{path}"
    done = checkout.full("--parallel", "1", "full")
    os.environ["PATH"] = path
    asked = (checkout.tree / ".setup/git").read_text().split()
    expect("full        passed: 3 of 3 passed" in checkout.log(), "all have run", done.stdout)
    expect(asked.count("rev-list") <= 3, "once for each commit of the log", asked)
    expect(asked.count("rev-parse") >= 6, "before and behind each part for the files", asked)


def fuzz(checkout):
    """Every harness gets its turn, also after one that broke."""
    harness = checkout.tree / "build-fuzz/bin"
    harness.mkdir(parents=True)
    for name, status in (("broken", 1), ("sound", 0)):
        (harness / f"fuzz_{name}").write_text(
            "#!/bin/sh\n[ $1 != --seeds ] || exit 0\n"
            f"echo 'stat::number_of_executed_units: 123'\necho '{name} ran'\nexit {status}\n")
        (harness / f"fuzz_{name}").chmod(0o755)
    output = checkout.full("fuzz").stdout
    expect("fuzz: FAILED (exit 1)" in output and "broken ran" in output, "a broken harness fails the job", output)
    expect(checkout.note("sound").startswith("123 inputs"), "the harness behind it runs too", checkout.log())
    (harness / "fuzz_broken").unlink()
    expect("fuzz        passed" in checkout.full("fuzz").stdout, "sound harnesses pass", checkout.log())


if __name__ == "__main__":
    main(one_piece, pieces, beside, shared, scarce, cut_off, history, fuzz)
    print("test-full: repeats, goes on, skips, fails and logs as it says")
