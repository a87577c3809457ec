"""Commands of the long jobs: run with what they say in a file, several at a time, and ended with all they started."""
import os
import pathlib
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


def below(process):
    """The processes that a process started, and theirs; also those in sessions of their own."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
        except OSError:
            pass  # it has just ended
    found, todo = [], [process]
    while todo:
        children = parents.get(todo.pop(), [])
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


class Running:
    """The commands that run now, in any thread."""

    def __init__(self):
        self.lock, self.children, self.stopping = threading.Lock(), set(), False

    def start(self, command, **options):
        with self.lock:
            if self.stopping:
                raise CutOff
            child = subprocess.Popen(command, start_new_session=True, **options)
            self.children.add(child)
            return child

    def wait(self, child):
        try:
            status = child.wait()
        except BaseException:
            stop(child)
            raise
        with self.lock:
            self.children.discard(child)
            if self.stopping:
                raise CutOff
        return status

    def stop(self):
        """Ends them all. From then on none starts, and their threads get CutOff."""
        with self.lock:
            self.stopping = True
            children = list(self.children)
        for child in children:
            stop(child)


running = Running()


def run(command, output, **more):
    """Runs a command with what it says appended to a file. What it started goes with it when this run is cut off."""
    environment = dict(os.environ, **more)
    with open(output, "ab") as file:
        status = running.wait(running.start(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                            env=environment))
    if status:
        raise Ended(status if status > 0 else 128 - status)


def text_of(output):
    return pathlib.Path(output).read_text(encoding="utf-8", errors="replace") if os.path.exists(output) else ""
