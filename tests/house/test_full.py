"""scripts/test-full in a small git checkout whose jobs are stand-ins: what passed is not repeated for the same commit,
what cannot run is SKIPPED, what fails fails, and the log says of which commit all this is.

    test_full.py SOURCE_ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class Checkout:
    def __init__(self, root, folder):
        self.tree = folder
        (folder / "scripts").mkdir()
        shutil.copy(root / "scripts/test-full", folder / "scripts/test-full")
        (folder / ".gitignore").write_text("/.setup/\n/runs\n/build-fuzz/\n")
        (folder / "docs").mkdir()
        (folder / "docs/measurements.md").write_text("nothing yet\n")
        self.script("build", "exit 0")
        self.git("init", "-q")
        self.commit("first")

    # Every stand-in counts its runs.
    def script(self, name, does):
        path = self.tree / "scripts" / name
        path.write_text(f"#!/bin/sh\necho {name} >>runs\n{does}\n")
        path.chmod(0o755)

    def git(self, *arguments):
        environment = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run(["git", *identity, *arguments], cwd=self.tree, check=True, text=True, env=environment,
                              capture_output=True).stdout.strip()

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def full(self, *jobs):
        return subprocess.run(["bash", "scripts/test-full", *jobs], cwd=self.tree, text=True, capture_output=True,
                              timeout=60)

    def log(self):
        return (self.tree / "bench/results/test-full.log").read_text()

    def runs(self, name):
        return (self.tree / "runs").read_text().split().count(name)


def expect(right, what, output):
    if not right:
        sys.exit(f"error: {what}\n{output}")


def main(root):
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout(root, pathlib.Path(folder))
        checkout.script("test", "echo '100% tests passed, 0 tests failed out of 3'")
        checkout.script("lab-tables", "echo 'no namespaces here'; exit 77")
        checkout.commit("second")
        done = checkout.full("test", "lab-tables")
        log = checkout.log()
        expect(done.returncode == 0, "a skipped job is no failure", done.stdout + done.stderr)
        expect(f"# commit {checkout.git('rev-parse', '--short=12', 'HEAD')}\n" in log, "the log names the commit", log)
        expect("test: passed" in log and "100% tests passed" in log, "the log says what passed", log)
        expect("lab-tables: SKIPPED" in log and "no namespaces here" in log, "a skip is shown with its reason", log)
        expect("skipped: lab-tables" in done.stdout, "the last line names what was skipped", done.stdout)

        checkout.full("test", "lab-tables")
        expect(checkout.runs("test") == 1, "what passed is not repeated", checkout.log())
        expect(checkout.runs("lab-tables") == 2, "what was skipped is tried again", checkout.log())

        # What the long jobs write themselves is no change of what is tested; anything else is.
        (checkout.tree / "docs/measurements.md").write_text("a table\n")
        checkout.full("test")
        expect(checkout.runs("test") == 1, "a new table does not repeat the tests", checkout.log())
        checkout.script("test", "echo 'something broke'; exit 8")
        failed = checkout.full("test")
        expect(failed.returncode == 1, "a failure is the exit status", failed.stdout)
        expect("test: FAILED (exit 8)" in checkout.log() and "something broke" in checkout.log(),
               "a failure is shown with its output", checkout.log())
        expect("SKIPPED" not in checkout.log(), "the log is of one commit and its changes", checkout.log())
        expect(checkout.full("tset").returncode == 1, "an unknown job is refused", "")

        # Every harness gets its turn, also after one that broke.
        checkout.script("setup", "exit 0")
        harness = checkout.tree / "build-fuzz/bin"
        harness.mkdir(parents=True)
        for name, status in (("broken", 1), ("sound", 0)):
            (harness / f"fuzz_{name}").write_text(
                "#!/bin/sh\n[ $1 != --seeds ] || exit 0\n"
                f"echo 'stat::number_of_executed_units: 123'\necho '{name} ran'\nexit {status}\n")
            (harness / f"fuzz_{name}").chmod(0o755)
        output = checkout.full("fuzz").stdout
        expect("fuzz: FAILED (exit 1)" in output and "broken ran" in output, "a broken harness fails the job", output)
        expect("fuzz sound: 123 inputs" in output, "the harness behind it runs too", output)
        (harness / "fuzz_broken").unlink()
        expect("fuzz: passed" in checkout.full("fuzz").stdout, "sound harnesses pass", checkout.log())
        expect("fuzz sound: 123 inputs" in checkout.log(), "the log says how many inputs", checkout.log())

        # A job that ends in the middle does not pass because its last command would.
        checkout.script("build", "exit 3")
        expect("lab-tables: FAILED (exit 3)" in checkout.full("lab-tables").stdout, "a job ends at its first error",
               checkout.log())
    print("test-full: repeats, skips, fails and logs as it says")


if __name__ == "__main__":
    if shutil.which("git") is None:
        print("no git")
        sys.exit(77)
    main(pathlib.Path(sys.argv[1]).resolve())
