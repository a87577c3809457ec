"""Tests that one ctest runs: which may, and what it tells of each as they end. ctest needs about a second to read a list
of thousands of tests, which is more than most of them take."""
import dataclasses
import itertools
import pathlib
import re
import time

from test_full_commands import Processors, below, children_of_all
from test_full_log import NOT_RUN

LONG = 20.0  # seconds; what took more when it last ran has a ctest of its own
UNKNOWN = 5.0  # seconds, for what has never run
MOST, TOGETHER = 100, 120.0  # tests of one ctest, and seconds that it is to take

BEGINS = re.compile(r" +Start +(\d+): (\S+)")
ENDS = re.compile(r" *\d+/\d+ Test +#(\d+): (\S+)(.*)")


def short(part):
    """Whether what the log says of a test lets it run by a ctest that runs others."""
    return (part.verdict in ("passed", "SKIPPED", NOT_RUN) and part.seconds <= LONG
            and not re.search(r"failed \d+ times? before", part.note))


def expected(together, known, shares, processors):
    """Of those that one ctest may run with others, how many seconds it would need for each."""
    return {name: (UNKNOWN if known[name].verdict == NOT_RUN else known[name].seconds)
                  * min(shares.get(name) or processors, processors) / processors
            for name in together if name in known and short(known[name])}


def take(waiting, seconds, room):
    """Takes from the front what one ctest is to run: `seconds` is how long it would need for each that may run by it.
    At least one."""
    chosen = [waiting.pop(0)]
    room = min(room, TOGETHER) - seconds.get(chosen[0], 0)
    while chosen[0] in seconds and waiting and waiting[0] in seconds and len(chosen) < MOST:
        room -= seconds[waiting[0]]
        if room < 0:
            break
        chosen.append(waiting.pop(0))
    return chosen


@dataclasses.dataclass
class Began:
    """A test that runs."""
    when: float
    pause: float = 2.0  # as in Running.wait(): looks become rarer
    look: float = 0.0
    processors: Processors = dataclasses.field(default_factory=Processors)


@dataclasses.dataclass
class Ended:
    """A test that has ended: what the log is to say, and what ctest said of it."""
    name: str
    verdict: str
    seconds: float
    scarce: str
    lines: list


class Batch:
    """What one `ctest --verbose` says in a file, told apart by the numbers that it gives the tests, and what their
    processes had of the processors. `tests` is ctest's list of them, by name."""

    def __init__(self, output, tests):
        self.output, self.tests, self.place = output, tests, 0
        self.names, self.lines, self.loose = {}, {}, []
        self.running, self.beside = {}, set()  # those that run, and those that ever ran beside another

    def read(self, end=None):
        """What has ended since it was read last, of the file's first `end` bytes or all. Whole lines only."""
        with open(self.output, "rb") as file:
            file.seek(self.place)
            text = file.read() if end is None else file.read(max(end - self.place, 0))
        whole = text[:text.rfind(b"\n") + 1]
        self.place += len(whole)
        return [ended for line in whole.decode(errors="replace").split("\n") if (ended := self._line(line))]

    def _line(self, line):
        if match := re.match(r"(\d+): ", line):
            self.lines.setdefault(match[1], []).append(line)
        elif match := BEGINS.match(line):
            self.names[match[1]], self.loose, now = match[2], [], time.monotonic()
            self.running[match[2]] = Began(now, look=now + Began.pause)
            if len(self.running) > 1:
                self.beside.update(self.running)
        elif match := ENDS.match(line):
            return self._end(match[1], self.names.pop(match[1], match[2]), match[3], line)
        else:
            self.loose.append(line)
        return None

    def _end(self, number, name, said, line):
        began = self.running.pop(name, None) or Began(time.monotonic())
        lines = self.lines.pop(number, [])
        if "***Not Run" in said:
            lines += self.loose  # why: there is no process whose lines would have the number
        seconds = re.search(r"([\d.]+) sec$", said)
        verdict = "FAILED (exit 8)"  # what ctest would end with if this test were its only one
        if re.match(r"[ .]*Passed ", said):
            verdict = "passed"
        elif re.search(r"\*\*\*(Skipped|Not Run \(Disabled\))", said):
            verdict = "SKIPPED"
        return Ended(name, verdict, float(seconds[1]) if seconds else time.monotonic() - began.when,
                     began.processors.scarce(), [*lines, line])

    def look(self, process):
        """Looks at the processes of tests that run for some time now, below that of ctest."""
        now = time.monotonic()
        due = {name: began for name, began in self.running.items() if began.look <= now}
        if not due:
            return
        children = children_of_all()
        for child in children.get(process, []):
            if (name := self._test_of(child)) in due:
                due[name].processors.look([child, *below(child, children)])
        for began in due.values():
            began.pause = min(2 * began.pause, 32)
            began.look = now + began.pause

    def _test_of(self, process):
        """The test of a process that ctest started: the one whose command ends as that of the process, for as many words
        as none other's does, with its environment. The command begins differently where a script stands before the
        program, or `env` did. None where it has just ended."""
        try:
            words, own = (pathlib.Path(f"/proc/{process}/{name}").read_text(errors="replace").split("\0")[:-1]
                          for name in ("cmdline", "environ"))
        except OSError:
            return None
        own, found = set(own), {}
        for name in self.running:
            test = self.tests.get(name, {})
            wanted = next((each["value"] for each in test.get("properties", []) if each["name"] == "ENVIRONMENT"), [])
            pairs = zip(reversed(words), reversed(test.get("command", [])))
            common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
            if common and own.issuperset(wanted):
                found[name] = (common, len(wanted))
        return max(found, key=found.get) if found else None
