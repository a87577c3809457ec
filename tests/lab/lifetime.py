"""The life of a lab: its command line, how it ends, and that nothing is left behind. Run as real_lab.py says."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from real_lab import (
    THALWEG, Others, skip, check, equal, lab, good, build, NothingLeft, start_waiting, first_process_of, main,
)


def test_check():
    others, start = Others(), time.monotonic()
    done = lab("check")
    took = time.monotonic() - start
    good(done)
    equal(len(done.stdout.splitlines()), 1, "lines of `lab check`")
    took = min([took] + [timed_check() for _ in range(5 if took > 1 else 0)])
    others.in_time(took < 1, f"`lab check` took {took:.2f} s")


def timed_check():
    start = time.monotonic()
    good(lab("check"))
    return time.monotonic() - start


def test_usage():
    check("--hosts" in good(lab("run", "--help", roomy=False)), "run --help shows the options")
    check("exec" in good(lab("--help")), "--help shows the verbs")
    for arguments in (["run", "--hots", "2", "--", "true"], ["run"], ["run", "--", "no-such-program"], ["nonsense"], [],
                      ["exec"], ["run", "--mpi", "mpich", "--mpi-root", "/nowhere", "--", "true"]):
        done = subprocess.run([THALWEG, "lab", *arguments], capture_output=True, text=True, timeout=200)
        equal(done.returncode, 2, f"exit status of lab {arguments}")
        check(done.stderr, f"lab {arguments} says why")
        check(not done.stdout, f"lab {arguments} keeps stdout clean")


def test_statuses():
    for command, wanted in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        done = lab("run", "--mpi", "none", "--hosts", "2", "--", "sh", "-c", command)
        equal(done.returncode, wanted, command)
    equal(good(lab("run", "--mpi", "none", "--hosts", "1", "--quiet", "--", "cat", input="through\n")), "through\n",
          "standard input")
    # On busy cores the lab warns that its own traffic would need them, which is no part of --quiet; and beside other
    # tests it takes their work for its own, however slow the links are.
    said = lab("run", "--mpi", "none", "--rate", "1mbit", "--quiet", "--", "true").stderr.splitlines()
    equal([line for line in said if "the kernel alone needs" not in line], [], "--quiet")


def test_names():
    """An argument that is no UTF-8, and a lab whose own path has a space and an apostrophe."""
    with tempfile.TemporaryDirectory() as folder:
        facts, moved = pathlib.Path(folder, "facts.json"), pathlib.Path(folder, "Bob's labs")
        done = lab("run", "--mpi", "none", "--hosts", "2", "--json", facts, "--", "sh", "-c", "exit 7", b"caf\xe9")
        equal(done.returncode, 7, f"the program's status, in spite of its argument; {done.stderr}")
        equal(json.loads(facts.read_text(encoding="utf-8"))["program"][-1], "caf\ufffd", "the argument as it was noted")
        (moved / "bin").mkdir(parents=True)
        (moved / "lib").mkdir()
        shutil.copy(THALWEG, moved / "bin/thalweg")
        shutil.copy(pathlib.Path(THALWEG).parent.parent / "lib/liblabwait.so", moved / "lib")
        done = subprocess.run([str(moved / "bin/thalweg"), "lab", "run", "--force", "--quiet", "--rate", "10mbit", "--hosts", "2",
                               "--ppn", "2", "--", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True, timeout=280)
        equal(good(done).split(), ["/dev/shm/.liblabwait.so"] * 4, "what helps MPICH's ranks to wait")
        check("cannot be preloaded" not in done.stderr, done.stderr)


def test_without_a_cache():
    """What was measured cannot be kept: the lab runs, and says what to do."""
    done = lab("run", "--mpi", "none", "--hosts", "2", "--", "echo", "through", env={**os.environ, "XDG_CACHE_HOME": "/proc/none"})
    equal(good(done), "through\n", "the program's output")
    check("what was measured is not kept: set XDG_CACHE_HOME" in done.stderr, done.stderr)


def end_and_look(environment, how, *command):
    process = start_waiting(environment, *command)
    how(process)
    status = process.wait(timeout=200)
    process.stdout.close()
    return status


ENDINGS = {
    "SIGTERM": (lambda process: process.send_signal(signal.SIGTERM), (143,)),
    "SIGINT": (lambda process: process.send_signal(signal.SIGINT), (130,)),
    "Ctrl-C": (lambda process: os.killpg(process.pid, signal.SIGINT), (130,)),
    "kill -9 of the owner": (lambda process: process.kill(), (-9,)),
    "kill -9 of the first process": (lambda process: os.kill(first_process_of(process.pid), signal.SIGKILL), (2,)),
}


def test_signals():
    program = ["--mpi", "none", "--", "sh", "-c", "sleep 1000 & echo hanging; wait"]
    stubborn = ["--mpi", "none", "--", "sh", "-c", "trap '' TERM INT; echo hanging; while :; do sleep 1; done"]
    for name, (how, wanted) in ENDINGS.items():
        with NothingLeft() as nothing:
            status = end_and_look(nothing.environment, how, *program)
            check(status in wanted, f"{name}: exit status {status}")

    insisted = []

    def twice(process):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        check(process.poll() is None, "one SIGTERM is passed on, and this program ignores it")
        process.send_signal(signal.SIGTERM)
        insisted.append(time.monotonic())

    with NothingLeft() as nothing:
        others = Others()
        equal(end_and_look(nothing.environment, twice, *stubborn), 143, "a second SIGTERM insists")
        others.in_time(time.monotonic() - insisted[0] < 8, "a second SIGTERM ends the lab at once")


def test_killed(mpi):
    """Every ending, with an MPI program that holds shared memory."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder)
        for name, (how, _) in ENDINGS.items():
            with NothingLeft() as nothing:
                status = end_and_look(nothing.environment, how, "--mpi", mpi, "--", program, "hang")
                check(status != 0, f"{name}: exit status {status}")


def test_back_to_back():
    with NothingLeft() as nothing:
        for _ in range(5):
            good(lab("run", "--mpi", "none", "--hosts", "4", "--", "true", env=nothing.environment))


def test_exec():
    with NothingLeft() as nothing:
        process = start_waiting(nothing.environment, "--mpi", "none", "--", "sh", "-c", "echo hanging; sleep 1000")
        first = str(first_process_of(process.pid))
        equal(good(lab("exec", "--lab", first, "2", "--", "hostname")), "node2\n", "host 2, from outside")
        equal(lab("exec", "--lab", first, "node1", "sh", "-c", "exit 9").returncode, 9, "exit status")
        equal(good(lab("exec", "--lab", first, "0", "pwd", cwd="/usr")), "/usr\n", "working directory")
        equal(lab("exec", "--lab", first, "3", "true").returncode, 2, "there is no host 3")
        check(any(line.split("\t")[0] == first and f"owner {process.pid}" in line for line in good(lab("list")).splitlines()),
              "`lab list` shows it")
        process.terminate()
        process.wait(timeout=200)
        process.stdout.close()


def test_clean():
    """A lab whose owner is gone is removed; one that is alive, and other programs, are not. Other tests of this machine may
    leave labs and clean up meanwhile."""
    pretender = ("import ctypes, os, time\n"
                 "child = os.fork()\n"
                 "if child: print(child, flush=True); os._exit(0)\n"
                 "os.close(1)\n"
                 "ctypes.CDLL(None).prctl(15, b'thalweg-lab')\n"
                 "time.sleep(1000)\n")
    abandoned = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c",
                                  "import ctypes, time\nctypes.CDLL(None).prctl(15, b'thalweg-lab')\ntime.sleep(1000)"])
    impostor = int(subprocess.run([sys.executable, "-c", pretender], check=True, stdout=subprocess.PIPE).stdout)
    check(appeared(lambda pid: pid == impostor and is_pretender(pid)), "the pretender runs")
    # Until it has its name it is nobody's lab.
    appeared(lambda pid: has_name(pid) and parent_of(pid) == abandoned.pid)
    with NothingLeft() as nothing:
        process = start_waiting(nothing.environment, "--mpi", "none", "--", "sh", "-c", "echo hanging; sleep 1000")
        try:
            said = good(lab("clean"))
            check(re.fullmatch(r"removed (1 abandoned lab|\d+ abandoned labs)\n", said), f"clean says {said!r}")
            check(abandoned.wait(timeout=200) != 0, "the first process of the abandoned lab was ended")
            check(process.poll() is None, "the living lab goes on")
            os.kill(impostor, 0)  # not the first process of a pid namespace: not ours
        finally:
            os.kill(impostor, signal.SIGKILL)
            abandoned.kill()
            process.terminate()
            process.wait(timeout=200)
            process.stdout.close()


def appeared(wanted):
    """The processes that are wanted, as soon as there is one; after 100 s none."""
    give_up = time.monotonic() + 100
    found = []
    while not found and time.monotonic() < give_up:
        time.sleep(0.02)
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if wanted(pid)]
    return found


def status_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return ""


def has_name(pid):
    return status_of(pid).startswith("Name:\tthalweg-lab\n")


def is_pretender(pid):
    return has_name(pid) and f"\nNSpid:\t{pid}\n" in status_of(pid)


def parent_of(pid):
    return int(next((line.split()[1] for line in status_of(pid).splitlines() if line.startswith("PPid:")), 0))


def test_unprivileged():
    if os.geteuid() != 0:
        skip("the test drops root's rights, and has none")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(THALWEG, folder)  # the build folder may be closed to others
        done = subprocess.run([program, "lab", "check"], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
                              timeout=200, cwd="/")
    if done.returncode != 0:
        equal(len(done.stderr.splitlines()), 1, f"one sentence, not {done.stderr!r}")
        check("root" in done.stderr, done.stderr)
        skip("no unprivileged user namespaces here; it said so")
    check("work here" in done.stdout, done.stdout)


if __name__ == "__main__":
    main(globals())
