"""scripts/test-full where one ctest runs many tests: each has its line in the log when it ends, whatever becomes of the
others, and its own output, reason, and time of waiting for processors.

    test_full_together.py SOURCE_ROOT CTEST
"""
import os
import re
import signal
import subprocess
import sys
import time

from test_full_checkout import expect, main


def together(checkout):
    """Short tests by one ctest: each has its line when it ends, and the run goes on where it was cut off."""
    names = ["passes", "skips", "fails", "hangs"]
    checkout.ctest(names, passes="echo hello", skips="echo skipped: no such thing; exit 77", hangs="sleep 500",
                   fails="echo '1/4 Test #1: passes ...   Passed    0.10 sec'; echo something broke; exit 3")
    checkout.commit("Tests")
    run = checkout.begin("--parallel", "8", "full")
    for _ in range(10000):
        time.sleep(0.02)
        if "hangs" in checkout.ran() and "full        FAILED: 1 of 4 passed, 1 failed, 1 skipped, 1 not run" in checkout.log():
            break
    expect(run.poll() is None, "each is told of when it ends", checkout.log())
    run.terminate()
    expect(run.wait(timeout=280) == 3, "its status says that something is left", run.returncode)
    expect(checkout.asked() == 1, "one ctest runs them", checkout.asked())
    expect(checkout.line("passes")[:2] == ["passed", checkout.head()], "what passed has its line", checkout.log())
    expect(checkout.line("skips")[0] == "SKIPPED" and checkout.note("skips") == "skipped: no such thing",
           "a skip has its reason", checkout.log())
    expect(checkout.line("fails")[0] == "FAILED (exit 8)" and "broke" in checkout.beneath("fails"),
           "a failure has its output", checkout.log())
    expect(checkout.line("hangs")[:2] == ["not run", "-"], "what was cut off has not run", checkout.log())
    said = (checkout.tree / ".setup/test-full/full/passes.output").read_text()
    expect("hello" in said and "broke" not in said, "all that a test says is kept apart", said)

    # What failed has a ctest of its own then; what has not is still short.
    checkout.ctest(names, skips="exit 77")
    done = checkout.full("--parallel", "8", "full")
    expect(done.returncode == 0 and [checkout.runs(name) for name in names] == [1, 2, 2, 2], "it goes on", checkout.log())
    expect(checkout.asked() == 3, "what failed has a ctest of its own", checkout.asked())
    expect(checkout.note("fails") == "failed 1 time before", "a failure before is kept in sight", checkout.log())
    log = checkout.log()
    (checkout.tree / "source").write_text("changed\n")
    checkout.commit("Change")
    number = float(checkout.line("passes")[3].split()[0])
    (checkout.tree / "bench/results/test-full.log").write_text(
        re.sub(rf" {number:.1f} s  passes", " 20.5 s  passes", log))
    checkout.ctest(names)
    checkout.full("--parallel", "8", "full")
    expect(checkout.asked() == 6, "so has what takes long", checkout.asked())
    expect("full        passed: 4 of 4 passed" in checkout.log(), "each has a line of its own", checkout.log())


def limit(checkout):
    """A limit in the middle of what one ctest runs: what runs then is completed, what begins later does not count."""
    names = ["first", "second", "third"]
    checkout.ctest(names, first="sleep 0.3")
    checkout.commit("Tests")
    checkout.full("--parallel", "1", "full")
    old = checkout.head()
    for seconds in (2, 4, 8, 16, 32, 64):  # a busy machine may take longer to come to the first
        (checkout.tree / "source").write_text(f"changed before {seconds}\n")
        checkout.commit("Change")
        before = checkout.runs("first"), checkout.asked()
        checkout.ctest(names, first=f"sleep {seconds + 3}", second="exit 8", third="sleep 20; exit 8")
        cut = checkout.full("--limit", str(seconds), "--parallel", "1", "full")
        if checkout.runs("first") > before[0]:
            break
    expect(cut.returncode == 3 and "more to run: full" in cut.stderr, "a limit ends it with its own status", cut)
    expect(checkout.asked() == before[1] + 1, "one ctest was to run all", checkout.asked())
    expect(checkout.line("first")[:2] == ["passed", checkout.head()], "what ran then is completed", checkout.log())
    expect(all(checkout.line(name)[:2] == ["passed", old] for name in names[1:]), "what began later is not counted",
           checkout.log())


def edited(checkout):
    """A change of the files is seen between two tests of one ctest."""
    checkout.ctest(["edits", "waits", "after"], edits="echo more >>source",
                   waits="for i in $(seq 1000); do grep -q changing bench/results/test-full.log && break; sleep 0.1; done")
    checkout.full("--parallel", "1", "full")
    expect(checkout.line("edits")[1].endswith("+changing"), "what was edited meanwhile never counts", checkout.log())
    expect(re.fullmatch(r"[0-9a-f]{12}\+[0-9a-f]{8}", checkout.line("after")[1]), "what ran later does", checkout.log())


def ended(checkout):
    """A ctest that ends early leaves none without a verdict."""
    checkout.ctest(["first", "second", "third"], second="[ -e once ] || { echo >once; kill -9 $PPID; }")
    (checkout.tree / ".gitignore").open("a").write("/once\n")
    done = checkout.full("--parallel", "1", "full")
    expect(done.returncode == 0 and "full        passed: 3 of 3 passed" in checkout.log(), "all are run", checkout.log())


def whose(checkout):
    """Of the processes that one ctest started, each is counted for its test: by its command and environment."""
    sys.path.insert(0, str(checkout.tree / "scripts"))
    import test_full_batch
    (checkout.tree / "wait.sh").write_text("sleep 500 & echo $! >>started; wait\n")

    def test(*arguments, **environment):
        return {"command": ["/bin/sh", "wait.sh", *arguments],
                "properties": [{"name": "ENVIRONMENT", "value": [f"{name}={value}" for name, value in environment.items()]}]}

    tests = {"plain": test("all"), "more": test("all", WHO="more"), "other": test("other", WHO="more")}
    output = checkout.tree / "said"
    output.write_text("".join(f"test {number}\n      Start {number:>2}: {name}\n\n" for number, name in enumerate(tests, 1)))
    batch = test_full_batch.Batch(output, tests)
    expect(batch.read() == [] and list(batch.running) == list(tests), "those that began are known", batch.running)
    started = {}
    for name, each in tests.items():
        own = dict(word.split("=") for word in each["properties"][0]["value"])
        started[name] = subprocess.Popen(["/usr/bin/env", *each["command"]], cwd=checkout.tree, start_new_session=True,
                                         env=dict(os.environ, **own))
    for _ in range(10000):
        time.sleep(0.02)
        path = checkout.tree / "started"
        if path.exists() and len(path.read_text().splitlines()) == 3:
            break
    batch.look(os.getpid())
    expect(not any(began.processors.threads for began in batch.running.values()), "at first none is looked at", "")
    for began in batch.running.values():
        began.look = 0
    batch.look(os.getpid())
    for child in started.values():
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    seen = {name: set(began.processors.threads) for name, began in batch.running.items()}
    expect(all(len(threads) == 2 and str(started[name].pid) in threads for name, threads in seen.items()),
           "each has its own two processes", (seen, started))
    batch.running["more"].processors.threads = {"1": [3.0, 471.0]}
    with output.open("a") as file:
        file.write("1/3 Test  #2: more .........   Passed    0.25 sec\n2/3 Test  #1: pl")
    ended = batch.read()
    expect([(end.name, end.verdict, end.seconds, end.scarce) for end in ended] ==
           [("more", "passed", 0.25, "had 3 s of processors, waited 471 s for them")], "what waited most says so", ended)
    with output.open("a") as file:
        file.write("ain ..........***Failed  Required regular expression not found. Regex=[a\nb\n]  0.00 sec\n"
                   "Unable to find executable: /none\n3/3 Test  #3: other ..........***Not Run   0.00 sec\n")
    ended = batch.read()
    expect([(end.name, end.verdict) for end in ended] == [("plain", "FAILED (exit 8)"), ("other", "FAILED (exit 8)")],
           "failures of every kind are such", ended)
    expect("Unable to find executable: /none" in ended[1].lines, "and say why", ended)


if __name__ == "__main__":
    main(together, limit, edited, ended, whose)
    print("test-full: short tests run together, and each is told of by itself")
