"""What the links of a lab carry, and how much of it this machine can have. Run as real_lab.py says."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from real_lab import THALWEG, Others, check, equal, lab, good, NothingLeft, measured, share_of_rate, shell, main

OFF = 0.03  # that a rate may be


def test_rate():
    others = Others()
    for rate in ("100mbit", "50mbit"):
        for attempt in range(5):  # other users of the machine may spoil some
            facts = measured("--rate", rate)
            carried, latency_s = share_of_rate(facts), facts["latency_s"]
            check(carried < 1 + OFF, f"{rate}: {facts['rate_bytes_per_s'] * 8e-6:.1f} Mbit/s payload")
            check(0 < facts["cpu_s_per_byte"] < 1e-6, f"CPU seconds per byte {facts['cpu_s_per_byte']}")
            if carried > 1 - OFF and 0 < latency_s < 0.002:
                break
        check(latency_s > 0, f"latency {latency_s}")
        others.in_time(carried > 1 - OFF, f"{rate}: {facts['rate_bytes_per_s'] * 8e-6:.1f} Mbit/s payload")
        others.in_time(latency_s < 0.002, f"latency {latency_s}")


def test_two_labs():
    command = [THALWEG, "lab", "run", "--quiet", "--calibrate", "--mpi", "none", "--force", "--rate", "50mbit", "--hosts",
               "2"]
    others = Others()
    with tempfile.TemporaryDirectory() as folder, NothingLeft() as nothing:
        for attempt in range(5):
            labs = [subprocess.Popen([*command, "--json", f"{folder}/{i}", "--", "sleep", "1"],
                                     env=nothing.environment) for i in range(2)]
            statuses = [process.wait(timeout=200) for process in labs]
            equal(statuses, [0, 0], "exit statuses")
            carried = [share_of_rate(json.loads(pathlib.Path(f"{folder}/{i}").read_text(encoding="utf-8"))) for i in range(2)]
            check(max(carried) < 1 + OFF, f"two labs at once, of the rate of each: {carried}")
            if min(carried) > 1 - OFF:
                break
    others.in_time(min(carried) > 1 - OFF, f"two labs at once disturb each other: of the rate of each, {carried}")


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
            return lab("run", "--mpi", "none", "--rate", "100mbit", *options, "--", "true", env=environment, roomy=False)

        for options in (["--hosts", "5"], ["--hosts", "3", "--rails", "2"], ["--hosts", "2", "--rate", "241mbit"]):
            done = ends(*options)
            equal(done.returncode, 2, f"{options} is too much")
            equal(len(done.stderr.splitlines()), 1, "sentences")
            check("60 %" in done.stderr and "--rate" in done.stderr, done.stderr)
        good(ends("--hosts", "4"))
        good(ends("--hosts", "2", "--rails", "2"))
        good(ends("--hosts", "5", "--force"))
        good(ends("--hosts", "1", "--rate", "100gbit"))  # a single host has no links to fill


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
            "for _ in range(10000):\n"
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
    equal(seen["THALWEG_LAB_TCP"], facts["tcp"], "THALWEG_LAB_TCP")
    known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
    check("cubic" not in known or facts["tcp"] == "cubic", f"TCP runs {facts['tcp']}, though the machine has {known}")
    equal(float(seen["THALWEG_LAB_CAPACITY_BYTES_PER_S"]), float(f"{facts['capacity']['bytes_per_s']:.9g}"), "capacity")


def test_set_up_time():
    others, took = Others(), []
    for _ in range(8):
        took.append(measured("--hosts", "8", "--rate", "10mbit", "--force")["set_up_s"])
        if took[-1] <= 1.5:
            return
    others.in_time(False, f"8 hosts took {min(took):.2f} s")


def test_capacity():
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        good(lab("capacity", env=environment))
        rows = json.loads(pathlib.Path(f"{cache}/thalweg/lab.json").read_text(encoding="utf-8"))["capacity"]
        equal(len(rows), 1, "machines in the cache")
        (row,) = rows.values()
        equal(len(row["samples"]), 3, "rounds")
        equal(sorted(row["samples"])[1], row["bytes_per_s"], "the median")
        others, start = Others(), time.monotonic()
        good(lab("capacity", env=environment))
        if row["foreign_load"] < Others.MOST:
            others.in_time(time.monotonic() - start < 2, "the second time it comes from the cache")


if __name__ == "__main__":
    main(globals())
