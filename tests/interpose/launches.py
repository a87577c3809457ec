"""A launch of the interposition tests on one MPI library, and what it gave: the programs' output, and what the recording
entry of probe/entry.cpp counted on each rank.
"""

import functools
import glob
import json
import os
import re
import subprocess
import tempfile
import time

SKIP = 77


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(w) for w in what))


class Run:
    """What one launch gave."""

    def __init__(self, result, reports, seconds):
        self.code, self.out, self.err, self.seconds = result.returncode, result.stdout, result.stderr, seconds
        self.reports = reports  # per rank: {event: {counter: value}}

    def count(self, counter, event="finalizing"):
        """The counter on each rank that reported the event."""
        return [events[event].get(counter) for events in self.reports if event in events]

    def __str__(self):
        return f"exit status {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n--- {self.reports}"


@functools.cache
def exported_by(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    names = {line.rpartition(" ")[2].partition("@")[0] for line in listing.stdout.splitlines()}
    # Else all that libraries may lack would seem to be lacking, and its cases would be skipped.
    expect("MPI_Init" in names, "nm finds no MPI in", library, listing)
    return names


class Context:
    def __init__(self, path):
        with open(path) as file:
            self.__dict__.update(json.load(file))

    def exported(self, symbol):
        """Whether the MPI library exports a name, asked of the file, not of a process that we are in."""
        return symbol in exported_by(self.library)

    def objects(self, core=None):
        """What `thalweg run` would preload for this library, of the objects beside `core`: the recording ones, if none."""
        core = core or self.probe
        chosen = [core]
        for part, symbol in (("bigcount", "MPI_Bcast_c"), ("persistent", "MPI_Bcast_init"),
                             ("status", "MPI_Request_get_status_all"), ("sessions", "MPI_Session_init")):
            if self.exported(symbol):
                chosen.insert(0, core.replace(".so", f"-{part}.so"))
        return ":".join(chosen)

    def launch(self, *groups, inherited=None, timeout=240):
        """groups: (ranks, command, preload or None, {environment}) of one job each after another (MPMD); inherited: what
        is preloaded into the launcher itself."""
        with tempfile.TemporaryDirectory(prefix="interpose-") as folder:
            command = list(self.mpiexec)
            for index, (ranks, program, preload, variables) in enumerate(groups):
                command += [":"] if index else []
                command += ["-n", str(ranks), "env", f"PROBE_FILE={folder}/report"]
                command += [f"{name}={value}" for name, value in variables.items()]
                command += [f"LD_PRELOAD={preload}"] if preload else []
                command += program
            environment = dict(os.environ, **self.environment)
            if inherited:
                environment["LD_PRELOAD"] = inherited
            start = time.monotonic()
            try:
                result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment,
                                        errors="replace")
            except subprocess.TimeoutExpired as late:
                raise Failure(f"no end after {timeout} s: {' '.join(command)}\n{late.stdout}\n{late.stderr}")
            reports = [read_report(path) for path in sorted(glob.glob(folder + "/report.*"))]
            return Run(result, reports, time.monotonic() - start)

    def program(self, mode, ranks=3, preload=True, take="none", program="program", **variables):
        if preload is True:
            preload = self.objects()
        return self.launch((ranks, [self.programs[program], mode], preload, dict(variables, PROBE_TAKE=take)))


def read_report(path):
    events = {}
    with open(path) as file:
        for line in file:
            event, *fields = line.split()
            events[event] = dict(field.split("=") for field in fields)
    return events


def same(text, other):
    """Equal but for addresses, which MPICH prints in its error texts."""
    return re.sub(r"0x[0-9a-f]+", "0x", text) == re.sub(r"0x[0-9a-f]+", "0x", other)


def reported(context, command, settings, ranks=3, inherited=False):
    """The run under all objects of the product that `thalweg run` would preload, {operation: calls that were ours}, and
    the rows of its report, none where there is no report; inherited: they are preloaded into the launcher."""
    product = context.objects(context.product)
    with tempfile.TemporaryDirectory(prefix="interpose-") as folder:
        report = folder + "/report.json"
        run = context.launch((ranks, command, None if inherited else product, dict(settings, THALWEG_REPORT=report)),
                             inherited=product if inherited else None)
        expect(run.code == 0, command, run)
        rows = []
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                rows = [row for comm in json.load(file)["communicators"] for row in comm["rows"]]
    taken = {}
    for row in rows:
        if "algorithm" in row:
            taken[row["operation"]] = taken.get(row["operation"], 0) + row["calls"]
    return run, taken, rows
