"""Runs a program under THALWEG_REPORT and checks that the report says what happened.

    report.py FOLDER COMMAND…          COMMAND runs programs/reported.c on at least two ranks; THALWEG_REPORT is added here
    report.py FOLDER mpi|ucx COMMAND…  COMMAND runs programs/counted.c, whose operations the MPI library or libucp carries
    report.py FOLDER addresses COMMAND…  COMMAND runs programs/counted.c over libucp on two hosts of two ranks in a test
                                       build; who keeps the ranks' addresses
    report.py FOLDER spawned COMMAND…  COMMAND runs programs/spawned.c: parent and children report side by side
    report.py FOLDER misspelt COMMAND…  COMMAND runs programs/one_host.c: a setting that does not exist is said, once
    report.py FOLDER wait COMMAND…      COMMAND runs programs/reported.c: who shares one core sleeps, others spin
    report.py FOLDER postings COMMAND…  COMMAND runs programs/self_driven.c: a rank with a core to spare leaves starts to its agent
    report.py FOLDER one_host COMMAND…  COMMAND runs programs/one_host.c: what was handed on unseen is said, not counted
    report.py FOLDER unasked COMMAND…   COMMAND runs programs/tried_exchanges.c few: what was passed on is counted all the same
    report.py FOLDER slow COMMAND…      COMMAND runs programs/tried.c slow: the same of broadcasts, and of their bytes
    report.py FOLDER broadcasts COMMAND…  COMMAND runs programs/unseen_broadcasts.c, which says itself how many it makes
    report.py FOLDER puts COMMAND…      COMMAND runs programs/steady.c with notify over a transport that has puts
    report.py FOLDER windows COMMAND…  COMMAND runs programs/windows.c with the way that THALWEG_ALLTOALLV names
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
CASES = ("spawned", "one_host", "unasked", "slow", "broadcasts", "windows", "puts", "mpi", "ucx", "shm", "misspelt",
         "wait", "postings", "addresses")
case = command[0] if command[0] in CASES else ""
command = command[case != "":]
# Of windows.c: how often its first plan is started.
starts = int(command[-1]) if case == "windows" and command[-1].isdigit() else 50
longest = 280 if starts <= 50 else 3000  # seconds
path = os.path.join(folder, f"report-{os.getpid()}.json")


def run(target, *variables, before=()):
    at = command.index("env") + 1
    return subprocess.run([*before, *command[:at], f"THALWEG_REPORT={target}", *variables, *command[at:]],
                          capture_output=True, text=True, errors="replace", timeout=longest)


def check(condition, what):
    if not condition:
        sys.exit(f"report.py: {what}")


def load(file_name):
    """Strictly: a report is UTF-8 whatever the program's names are."""
    with open(file_name, encoding="utf-8") as file:
        report = json.load(file)
    os.remove(file_name)
    return report


def check_spawned():
    """Children that were started with us are a world of their own: its report is not written over the parent's."""
    at = command.index("env")
    end = next(i for i in range(at + 1, len(command)) if "=" not in command[i])
    # Of the launcher's environment, because that is what spawned processes get.
    variables = dict(word.split("=", 1) for word in command[at + 1:end])
    result = subprocess.run(command[:at] + command[end:], capture_output=True, text=True, errors="replace", timeout=280,
                            env={**os.environ, **variables, "THALWEG_REPORT": path})
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    parent = load(path)
    check(not parent["spawned"] and parent["totals"]["accelerated"] > 0, f"the parent's: {parent}")
    others = glob.glob(path.replace(".json", ".spawned-*.json"))
    check(len(others) == 1, f"{others} beside {path}: {result.stderr}")
    child = load(others[0])
    check(child["spawned"] and child["ranks"] == 2 and child["totals"]["accelerated"] == 0, f"the children's: {child}")
    check(child["totals"]["declined"] == 12, f"what the children shared with the parent: {child}")
    print("ok")


def check_one_host():
    result = run(path)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    report = load(path)
    # one_host.c has 5 broadcasts run by linear and 3 natively, both asked for; all others were not looked at. Its 30
    # barriers that nothing would advance are counted.
    unseen = {row["operation"]: row["reason"] for row in report["unseen"]}
    handed_on = "one host: handed on unseen"
    # Built-in rows may take large exchanges of this library.
    check(list(unseen)[:3] == ["bcast", "allgather", "allreduce"] and set(unseen.values()) - {handed_on} <= {unseen["bcast"]}
          and list(unseen)[3:] in ([], ["alltoallv"]), f"unseen: {report}")
    # A built-in row may take large broadcasts of this library.
    check(re.fullmatch(handed_on + r"( below \d+[KM])?", unseen["bcast"]), f"unseen: {unseen}")
    check(unseen["allgather"] == unseen["allreduce"] == handed_on, f"unseen: {unseen}")
    check(report["totals"]["accelerated"] == 5 and report["totals"]["declined"] == 33, f"counted: {report['totals']}")
    table = run("-").stderr
    check("native: one host: handed on unseen" in table, f"the table: {table}")
    rows = os.path.join(os.path.dirname(os.path.abspath(__file__)), "one_host.json")
    table = run("-", f"THALWEG_TUNING={rows}").stderr
    check(re.search(r"bcast +native: one host: handed on unseen below 256K", table), f"the table with rows: {table}")
    print("ok")


def check_unasked():
    """tried_exchanges.c few makes 150 calls, and 40 times 15 on communicators that it frees, all the native library's."""
    result = run(path)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    calls = [row["calls"] for communicator in load(path)["communicators"] for row in communicator["rows"]
             if row["operation"] == "alltoallv"]
    check(calls[0] == 150 and sum(calls) == 750, f"150 and 600 calls were declined alike, but the report says {calls}")


def right_broadcasts(report):
    """The rows of those whose arguments were right; how many there were, and of how many bytes."""
    rows = [row for communicator in report["communicators"] for row in communicator["rows"]
            if row["operation"] == "bcast" and row.get("declined") != "arguments that the MPI library judges"]
    return rows, *(sum(row[key] for row in rows) for key in ("calls", "bytes"))


def check_broadcasts():
    """Whichever way they came, and on communicators that were freed."""
    result = run(path)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    said = re.search(r"made (\d+) broadcasts of (\d+) bytes", result.stdout)
    rows, *counted = right_broadcasts(load(path))
    check(said and counted == [int(number) for number in said.groups()],
          f"{result.stdout}, but the report says {counted}: {rows}")
    print(said[0])


def check_slow():
    """tried.c slow makes 560 broadcasts of 64 KiB and more on the world: 80 of 1 MiB, 96 of 8 bytes more than 64 KiB."""
    result = run(path)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    rows, calls, total = right_broadcasts(load(path))
    check(calls == 560, f"560 calls were made, but the report says {calls}: {rows}")
    check(total == 560 * 65536 + 80 * (2**20 - 2**16) + 96 * 8, f"they carried {total} bytes: {rows}")


def check_misspelt():
    result = run(path, "THALWEG_BCSAT=linear", "THALWEG_TEST_SOMETHING=1")
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    load(path)
    said = [line for line in result.stderr.splitlines() if "is not an option" in line]
    check(len(said) == 1 and "THALWEG_BCSAT is not an option; maybe THALWEG_BCAST?" in said[0], f"said: {said}")
    print("ok")


def check_wait():
    """Ranks that share a core sleep while they wait, those with one each spin, and both as they are told."""
    mine = sorted(os.sched_getaffinity(0))
    one, two = (["taskset", "-c", ",".join(map(str, mine[:cores]))] for cores in (1, 2))
    tried = [(one, (), "sleep"), (one, ("THALWEG_WAIT=spin",), "spin"), (two, ("THALWEG_WAIT=sleep",), "sleep")]
    if len(mine) > 1:
        tried.append((two, (), "spin"))
    for before, variables, wanted in tried:
        result = run(path, *variables, before=before)
        check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
        world = next(c for c in load(path)["communicators"] if c["name"] == "MPI_COMM_WORLD")
        check(world["wait"] == wanted, f"{before} {variables}: {world['wait']}, not {wanted}")
    print(f"ok: {len(tried)} ways")


def check_postings():
    """The first rank, which reports, has two hardware threads or one, the second rank one of them."""
    mine = [str(thread) for thread in sorted(os.sched_getaffinity(0))]
    if len(mine) < 2:
        print("skipped: one hardware thread")
        sys.exit(77)
    at = command.index("-n")
    program = command[at + 2:]
    second = ["-n", "1", "taskset", "-c", mine[1], *program]
    for threads in (mine[:2], mine[:1]):
        first = ["-n", "1", "taskset", "-c", ",".join(threads), *program[:1], f"THALWEG_REPORT={path}", *program[1:]]
        result = subprocess.run([*command[:at], *first, ":", *second], capture_output=True, text=True, errors="replace",
                                timeout=280, stdin=subprocess.DEVNULL)
        check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
        postings = load(path)["agent"]["postings"]
        check((postings > 0) == (len(threads) > 1), f"{len(threads)} hardware threads: {postings} starts left to the agent")
    print("ok")


def check_puts():
    """steady.c starts its one plan 40 times, and everybody sends something to everybody: those messages were put."""
    result = run(path)
    if result.returncode == 77:
        print(result.stdout)
        sys.exit(77)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    report = load(path)
    plan = report["plans"][0]
    check(plan["algorithm"] == "notify" and plan["starts"] == 40, f"the plan: {plan}")
    check(plan["puts"] == 40 * (plan["ranks"] - 1), f"puts: {plan}")
    print("ok")


def check_windows():
    """What windows.c does: 12 plans, and 67 more in a crowd, where two are beyond the 64 windows of a communicator."""
    result = run(path)
    if result.returncode == 77:
        print(result.stdout)
        sys.exit(77)
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    report = load(path)
    way = next(word.split("=")[1] for word in command if word.startswith("THALWEG_ALLTOALLV="))
    multiple = "THALWEG_TEST_LEVEL=single" not in command
    plans = report["plans"]
    over = [plan for plan in plans if plan["algorithm"] == way]
    other = {plan["algorithm"] for plan in plans if plan["algorithm"] != way}
    crowd = "crowd" in command
    if any(word.startswith(("THALWEG_TEST_FAULT=", "THALWEG_TEST_WINDOWS=")) for word in command):  # no window, or
        # none that the progress thread can use: every plan sends messages
        check(len(plans) == (79 if crowd else 12) and not over and other == {"spread"}, f"plans: {len(plans)}, {len(over)}, {other}")
        check(report["totals"]["errors"] == 0, f"errors: {report['totals']}")
        print("ok")
        return
    check(len(plans) == (79 if crowd else 12) and len(over) == (77 if crowd else 12) and
          other == ({"spread"} if crowd else set()), f"plans: {len(plans)}, {len(over)}, {other}")
    check([plan["starts"] for plan in plans[:3]] == [starts, starts // 5, starts // 5], f"starts: {plans[:3]}")
    shortcoming = {"rma_fence": "blocking synchronisation, not conforming",
                   "rma_lock": "blocking synchronisation, not conforming"}.get(
                       way, None if multiple else "only its completion calls advance it, not conforming")
    check({plan.get("shortcoming") for plan in over} == {shortcoming}, f"shortcomings: {over[0]}")
    operations = report["operations"]
    for kind, least in (("alltoallv_init", starts + 2 * (starts // 5) + 18), ("alltoall_init", 6), ("alltoallw_init", 3)):
        row = operations[kind]
        check(not row["declined"] and row["accelerated"] >= least, f"{kind}: {row}")
    check(report["totals"]["errors"] == 0, f"errors: {report['totals']}")
    # Three were in use when their communicator was freed; one belongs to a plan that never was.
    check(report["windows_left"] == 0, f"{report['windows_left']} windows are left to MPI_Finalize")
    print("ok")


def check_nonblocking():
    """What counted.c does: 6 barriers, the first before anything is set up, 4 broadcasts, 3 allgathers, and 2
    allreduces with an operation of the program."""
    # On a busy machine those that wait may have done everything before the agent got a core.
    for _ in range(5):
        result = run(path)
        check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
        report = load(path)
        if report["agent"]["wake_ups"] > 0:
            break
    early, unknown = "no blocking collective has set up the communicator", "only the MPI library can combine this"
    wanted = {"ibarrier": {"seen": 6, "accelerated": 5, "declined": {early: 1}},
              "ibcast": {"seen": 4, "accelerated": 4, "declined": {}},
              "iallgather": {"seen": 3, "accelerated": 3, "declined": {}},
              "iallreduce": {"seen": 2, "accelerated": 0, "declined": {unknown: 2}}}
    check(report["operations"] == wanted, f"operations: {report['operations']}")
    world = next(c for c in report["communicators"] if c["name"] == "MPI_COMM_WORLD")
    agent = report["agent"]
    check(agent["place"] in ("anywhere", "sibling", "core"), f"agent: {agent}")
    check(agent["wake_ups"] > 0 and agent["cpu_seconds"] > 0, f"agent: {agent}")
    if "no_libucp" in agent:
        print(f"no libucp here: {agent['no_libucp']}")
    else:
        check(world["nonblocking_over"] == case, f"carried by {world['nonblocking_over']}")
        check(("libucp" in agent) == (case == "ucx"), f"agent: {agent}")
        check(("inside_hosts" in agent) == (case == "shm"), f"agent: {agent}")
    table = run("-")
    for words in (("nonblocking over",), ("agent: ", "wake-ups"), ("ibarrier", "native: " + early)):
        check(any(all(word in line for word in words) for line in table.stderr.splitlines()), f"{words}: {table.stderr}")
    print("ok")


def check_addresses():
    """Few addresses are kept by each rank; many, which a test variable pretends, by one of each host for all, or by
    each where that memory is out of reach."""
    for at_once, kept in ((None, "kept by each rank"), (1, "once per host"), (3, "once per host")):
        result = run(path, *([f"THALWEG_TEST_ADDRESSES_AT_ONCE={at_once}"] if at_once else []))
        check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
        report = load(path)
        if "no_libucp" in report["agent"]:
            print(f"no libucp here: {report['agent']['no_libucp']}")
            sys.exit(77)
        addresses = report["agent"].get("addresses", "")
        check(re.fullmatch(rf"4 processes, \d+ bytes, {kept}", addresses), f"{at_once}: {addresses!r}")
        check(report["operations"]["iallgather"]["accelerated"] == 3, f"{report['operations']}")
    # Rank 0, which reports, keeps them for its host all the same.
    result = run(path, "THALWEG_TEST_ADDRESSES_AT_ONCE=-3")
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    check(load(path)["operations"]["iallgather"]["accelerated"] == 3, "where readers do not reach it")
    # In a job that is too large for that, nobody goes over libucp, and all know why.
    result = run(path, "THALWEG_TEST_ADDRESSES_AT_ONCE=-3", "THALWEG_TEST_ADDRESSES_ALONE=3")
    check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
    report = load(path)
    check(report["operations"]["iallgather"]["accelerated"] == 0, f"{report['operations']}")
    result = run("-", "THALWEG_TEST_ADDRESSES_AT_ONCE=3", "THALWEG_TEST_ADDRESSES_ALONE=3", "THALWEG_LOG=info")
    check(result.returncode == 0 and "nowhere" not in result.stderr, f"where they share it: {result.stderr}")
    result = run("-", "THALWEG_TEST_ADDRESSES_AT_ONCE=-3", "THALWEG_TEST_ADDRESSES_ALONE=3", "THALWEG_LOG=info")
    check("a rank has nowhere to keep the addresses of all" in result.stderr, f"why: {result.stderr}")
    print("ok")


checks = {"mpi": check_nonblocking, "ucx": check_nonblocking, "shm": check_nonblocking, "addresses": check_addresses,
          "spawned": check_spawned, "misspelt": check_misspelt, "wait": check_wait, "postings": check_postings,
          "puts": check_puts, "windows": check_windows, "one_host": check_one_host, "unasked": check_unasked,
          "slow": check_slow, "broadcasts": check_broadcasts}
if case:
    checks[case]()
    sys.exit()

result = run(path)
check(result.returncode == 0, f"the program failed: {result.stdout}{result.stderr}")
report = load(path)

# What reported.c does: 7 broadcasts of 100000 bytes by chain, 5 and 4 by linear on duplicates, 3 native on
# MPI_COMM_SELF, 11 of 8 bytes, 2 of a strided type.
totals = report["totals"]
rows = {(c["name"], r.get("algorithm", r.get("declined"))): (c, r) for c in report["communicators"] for r in c["rows"]}
check(totals["calls"] == 32, f"calls: {totals}")
check(totals["accelerated"] == 18 and totals["declined"] == 14, f"accelerated and declined: {totals}")
check(totals["staged"] == 2 and totals["errors"] == 0, f"staged: {totals}")
check(report["largest_of_any_rank"]["accelerated"] == 18, "the largest of any rank")
check(sum(row["calls"] for row in report["small"]) == 11, f"small: {report['small']}")
world, chain = rows[("MPI_COMM_WORLD", "chain:chunk_bytes=64K")]
check(chain["calls"] == 9 and chain["bytes"] == 9 * 100000, f"chain: {chain}")
check(chain["seconds"] > 0 and chain["polls"] > 0, f"time and polls: {chain}")
check(world["size"] == report["ranks"] and world["hosts"] == 1 and world["wait"] in ("spin", "sleep"), f"{world}")
twin, linear = rows[("twin", "linear")]
check(linear["calls"] == 5 and linear["bytes"] == 500000, f"linear: {linear}")
foreign = rows[('caf\ufffd "\\\t \u00e9', "linear")][1]
check(foreign["calls"] == 4, f"a name that is no UTF-8: {foreign}")
check(not report["spawned"], "spawned")
check(rows[("MPI_COMM_SELF", "one rank")][1]["calls"] == 3, "MPI_COMM_SELF")
check(report["settings"]["THALWEG_BCAST"] == "chain:chunk_bytes=64K", f"settings: {report['settings']}")

# A program whose locale writes a decimal comma; the system's own locales need not include one.
locales = os.path.join(folder, f"locales-{os.getpid()}")
os.makedirs(locales)
made = shutil.which("localedef") and subprocess.run(
    ["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(locales, "de_DE.UTF-8")], capture_output=True)
if made and os.path.exists(os.path.join(locales, "de_DE.UTF-8")):
    run(path, f"LOCPATH={locales}", "LC_ALL=de_DE.UTF-8")
    load(path)
else:
    print("localedef or its sources are missing: no locale with a decimal comma was tried")
shutil.rmtree(locales)

table = run("-")
for words in (("MPI_COMM_WORLD",), ("twin",), ("chain:chunk_bytes=64K", " 9 "), ("native: one rank", " 3 ")):
    check(any(all(word in line for word in words) for line in table.stderr.splitlines()), f"{words}: {table.stderr}")
for target, reason in (("/nonexistent/report", "No such file or directory"), ("/dev/full", "No space left on device")):
    lost = run(target)
    check(lost.returncode == 0, "a report that cannot be written must not end the program")
    check(f"THALWEG_REPORT: {target} could not be written: {reason};" in lost.stderr, f"why: {lost.stderr}")
    check("MPI_COMM_WORLD, " in lost.stderr, f"what it would have said is lost: {lost.stderr}")
print("ok")
