"""Commands of the long jobs: run with what they say in a file, several at a time, and ended with all they started. How
long their processes had to wait for a processor is looked at while they run: a test that is late because others had the
machine is no test that hangs."""
import os
import pathlib
import select
import signal
import subprocess
import threading
import time


class Ended(Exception):
    """A command did not end well."""

    def __init__(self, status):
        super().__init__(f"exit {status}")
        self.status = status


class CutOff(BaseException):
    """The whole run is being stopped: what its commands come to says nothing about them."""


def children_of_all():
    """Of every process, those that it started."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
        except OSError:
            pass  # it has just ended
    return parents


def below(process, children_of=None):
    """The processes that a process started, and theirs; also those in sessions of their own."""
    children_of = children_of or children_of_all()
    found, todo = [], [process]
    while todo:
        children = children_of.get(todo.pop(), [])
        found += children
        todo += children
    return found


def stop(child):
    """Ends a command with all that it started: at first so that launchers can end their ranks."""
    started = [child.pid, *below(child.pid)]
    for kind, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        for process in started:
            try:
                os.kill(process, kind)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(os.path.exists(f"/proc/{process}") for process in started):
            child.poll()
            time.sleep(0.05)


class Processors:
    """What a command and all that it started had of the machine's processors, by threads: seconds of use, and seconds
    of waiting for one, from Linux's schedstat. What ended between two looks is known from the last of them only."""

    def __init__(self):
        self.threads = {}

    def look(self, processes):
        for process in processes:
            for thread in pathlib.Path(f"/proc/{process}/task").glob("*"):
                try:
                    self.threads[thread.name] = [int(word) / 1e9 for word in (thread / "schedstat").read_text().split()[:2]]
                except (OSError, ValueError):
                    pass  # it has just ended, or this kernel does not count

    def scarce(self):
        """The sentence for the log where waiting was most of what they did; otherwise nothing."""
        used, waited = (sum(times[i] for times in self.threads.values()) for i in (0, 1))
        return f"had {used:.0f} s of processors, waited {waited:.0f} s for them" if waited > max(used, 5) else ""


class Running:
    """The commands that run now, in any thread."""

    def __init__(self):
        self.lock, self.children, self.stopping = threading.Lock(), {}, False
        self.processors = {}  # by the file of what they say
        self.said = {}  # how long those files were before their commands were stopped

    def start(self, command, output, **options):
        with self.lock:
            if self.stopping:
                raise CutOff
            child = subprocess.Popen(command, start_new_session=True, **options)
            self.children[child] = str(output)
            return child

    def wait(self, child, output):
        seen = self.processors.setdefault(str(output), Processors())
        try:
            # Looks become rarer: they must not be what disturbs a test that measures. A descriptor, because Popen.wait()
            # with a time asks twenty times a second.
            with os.fdopen(os.pidfd_open(child.pid)) as ended:
                pause = 2.0
                while not select.select([ended], [], [], pause)[0]:
                    seen.look([child.pid, *below(child.pid)])
                    pause = min(2 * pause, 32)
            status = child.wait()
        except BaseException:
            stop(child)
            raise
        self.through(child)
        return status

    def follow(self, child, tell):
        """Waits for a command that does one thing after the other. `tell` looks at what it has said, every second and at
        its end; once it returns False, the command is ended."""
        try:
            with os.fdopen(os.pidfd_open(child.pid)) as ended:
                while not select.select([ended], [], [], 1.0)[0]:
                    if not tell(child.pid):
                        stop(child)
            status = child.wait()
            tell(None)
        except BaseException:
            if child.poll() is None:
                stop(child)
            raise
        self.through(child)
        return status

    def through(self, child):
        with self.lock:
            self.children.pop(child)
            if self.stopping:
                raise CutOff

    def stop(self):
        """Ends them all. From then on none starts, and their threads get CutOff."""
        with self.lock:
            self.stopping = True
            children = dict(self.children)
            self.said = self.said or {output: os.path.getsize(output) for output in children.values()
                                      if os.path.exists(output)}
        for child in children:
            stop(child)


running = Running()


def run(command, output, tell=None, **more):
    """Runs a command with what it says appended to a file. What it started goes with it when this run is cut off."""
    environment = dict(os.environ, **more)
    with open(output, "ab") as file:
        child = running.start(command, output, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                              env=environment)
        status = running.follow(child, tell) if tell else running.wait(child, output)
    if status:
        raise Ended(status if status > 0 else 128 - status)


def text_of(output):
    return pathlib.Path(output).read_text(encoding="utf-8", errors="replace") if os.path.exists(output) else ""
