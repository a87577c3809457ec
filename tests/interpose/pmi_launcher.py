#!/usr/bin/env python3
"""A launcher for tests that speaks PMI-1 or PMI-2 on PMI_FD as strictly as Slurm's mpi/pmi2 plugin does, on this host.

    pmi_launcher.py 1|2[:closed|:hosts|:silent|:forgets] -n RANKS COMMAND… [: -n RANKS COMMAND…]

Strictly: each rank says `init` once and first, a request that is unknown or malformed gets no answer but ends the job
(exit status 99), as does a rank that ends badly, and what is put can be read only after the next barrier or fence. Otherwise
the exit status is the largest of the ranks'. Unlike hydra it sets PMI_FD, PMI_RANK, PMI_SIZE and PMI_JOBID only. `closed`:
it takes what the MPI library puts and nothing else. `hosts`: it says that each rank is on a host of its own. `silent`: as
`hosts`, and rank 1 gets no answer when it asks for a word of Thalweg; `forgets`: it is told that there is none.
"""

import os
import selectors
import socket
import subprocess
import sys

LAUNCHERS_OWN = ("PMI_", "PMI2_", "PMIX_", "HYDI_", "HYDRA_", "MPI_LOCAL", "OMPI_COMM_WORLD_")
JOB = f"{os.getpid()}.0"


class Refused(Exception):
    pass


class Rank:
    def __init__(self, number, process, connection):
        self.number, self.process, self.connection = number, process, connection
        self.initialized, self.fenced, self.bytes = False, False, b""


class Job:
    def __init__(self, version, mode, groups):
        self.version, self.mode, self.ranks = version, mode, []
        self.store, self.put, self.node, self.asking = {}, {}, {}, []
        size = sum(count for count, _ in groups)
        together = mode in ("", "closed")
        self.store["PMI_process_mapping"] = f"(vector,(0,1,{size}))" if together else f"(vector,(0,{size},1))"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS_OWN)}
        for count, command in groups:
            for _ in range(count):
                ours, theirs = socket.socketpair()
                number = len(self.ranks)
                own = {"PMI_FD": theirs.fileno(), "PMI_RANK": number, "PMI_SIZE": size, "PMI_JOBID": JOB,
                       "PMI_SPAWNED": 0, "MPIR_CVAR_PMI_VERSION": version}
                process = subprocess.Popen(command, env={**clean, **{name: str(value) for name, value in own.items()}},
                                           pass_fds=[theirs.fileno()])
                theirs.close()
                self.ranks.append(Rank(number, process, ours))

    # ---- messages

    def take_message(self, rank):
        """{key: value} of the next whole message, or None."""
        if self.version == 1 or not rank.initialized:
            line, newline, rest = rank.bytes.partition(b"\n")
            if not newline:
                return None
            rank.bytes, text, separator = rest, line.decode(), " "
        else:
            if len(rank.bytes) < 6:
                return None
            length = int(rank.bytes[:6])
            if len(rank.bytes) < 6 + length:
                return None
            text, rank.bytes, separator = rank.bytes[6:6 + length].decode(), rank.bytes[6 + length:], ";"
            if not text.endswith(";"):
                raise Refused(f"not terminated: {text}")
        return dict(pair.split("=", 1) for pair in text.strip(separator).split(separator))

    def answer(self, to, command, **fields):
        pairs = [f"{name}={value}" for name, value in {"cmd": command, **fields}.items()]
        if self.version == 1:
            to.connection.sendall((" ".join(pairs) + "\n").encode())
        else:
            text = ";".join(pairs) + ";"
            to.connection.sendall(f"{len(text):<6}{text}".encode())

    def fence(self, rank, command):
        rank.fenced = True
        if all(other.fenced for other in self.ranks):
            self.store.update(self.put)
            for other in self.ranks:
                other.fenced = False
                self.answer(other, command, rc=0)

    # ---- requests

    def initialize(self, rank, request):
        if request != {"cmd": "init", "pmi_version": str(self.version), "pmi_subversion": str(2 - self.version)}:
            raise Refused(f"the first request of rank {rank.number}: {request}")
        rank.connection.sendall(f"cmd=response_to_init rc=0 pmi_version={self.version} "
                                f"pmi_subversion={2 - self.version}\n".encode())
        rank.initialized = True

    def serve_1(self, rank, request):
        command = request["cmd"]
        if command == "get_maxes":
            self.answer(rank, "maxes", rc=0, kvsname_max=256, keylen_max=256, vallen_max=256)
        elif command == "get_universe_size":
            self.answer(rank, "universe_size", rc=0, size=len(self.ranks))
        elif command == "get_appnum":
            self.answer(rank, "appnum", rc=0, appnum=0)
        elif command == "get_my_kvsname":
            self.answer(rank, "my_kvsname", rc=0, kvsname=JOB)
        elif command == "put" and self.mode == "closed" and request["key"].startswith("thalweg"):
            self.answer(rank, "put_result", rc=-1, msg="closed")
        elif command == "put" and request["kvsname"] == JOB:
            self.put[request["key"]] = request["value"]
            self.answer(rank, "put_result", rc=0)
        elif command == "get" and rank.number == 1 and request["key"].startswith("thalweg") and self.mode == "silent":
            pass
        elif command == "get" and rank.number == 1 and request["key"].startswith("thalweg") and self.mode == "forgets":
            self.answer(rank, "get_result", rc=1)
        elif command == "get" and request["kvsname"] == JOB:
            found = self.store.get(request["key"])
            self.answer(rank, "get_result", **({"rc": 1} if found is None else {"rc": 0, "value": found}))
        elif command == "barrier_in":
            self.fence(rank, "barrier_out")
        elif command == "finalize":
            self.answer(rank, "finalize_ack", rc=0)
        else:
            raise Refused(f"rank {rank.number}: {request}")

    def serve_2(self, rank, request):
        command = request["cmd"]
        more = {"thrid": request["thrid"]} if "thrid" in request else {}
        found = {"kvs-get": self.store, "info-getjobattr": self.store, "info-getnodeattr": self.node}.get(command)
        if command == "fullinit" and {"pmijobid", "pmirank", "threaded"} <= set(request):
            self.answer(rank, "fullinit-response", **more, rc=0, **{"pmi-version": 2, "pmi-subversion": 0},
                        rank=rank.number, size=len(self.ranks), appnum=-1, debugged="FALSE", pmiverbose="FALSE")
        elif command == "job-getid":
            self.answer(rank, "job-getid-response", **more, rc=0, jobid=JOB)
        elif command == "kvs-put" and self.mode == "closed" and request["key"].startswith("thalweg"):
            self.answer(rank, "kvs-put-response", **more, rc=1)
        elif command == "kvs-put":
            self.put[request["key"]] = request["value"]
            self.answer(rank, "kvs-put-response", **more, rc=0)
        elif command == "kvs-fence":
            self.fence(rank, "kvs-fence-response")
        elif command == "info-putnodeattr":
            self.node[request["key"]] = request["value"]
            self.answer(rank, "info-putnodeattr-response", **more, rc=0)
            waiting, self.asking = self.asking, []
            for other, asked in waiting:
                self.serve_2(other, asked)
        elif found is not None and request["key"] in found:
            self.answer(rank, command + "-response", **more, rc=0, found="TRUE", value=found[request["key"]])
        elif found is not None and request.get("wait", "").upper() == "TRUE":
            self.asking.append((rank, request))
        elif found is not None:
            self.answer(rank, command + "-response", **more, rc=0, found="FALSE")
        elif command == "finalize":
            self.answer(rank, "finalize-response", **more, rc=0)
        else:
            raise Refused(f"rank {rank.number}: {request}")

    def run(self):
        with selectors.DefaultSelector() as selector:
            for rank in self.ranks:
                selector.register(rank.connection, selectors.EVENT_READ, rank)
            while selector.get_map():
                for rank in self.ranks:
                    if rank.process.poll():
                        raise Refused(f"rank {rank.number} ends with {rank.process.returncode}")
                for key, _ in selector.select(timeout=0.1):
                    rank = key.data
                    try:
                        received = rank.connection.recv(65536)
                    except ConnectionResetError:
                        received = b""
                    if not received:
                        selector.unregister(rank.connection)
                        rank.connection.close()
                    rank.bytes += received
                    while (request := self.take_message(rank)) is not None:
                        if request["cmd"] == "abort":
                            raise Refused(f"rank {rank.number} aborts: {request}")
                        if rank.initialized:
                            (self.serve_1 if self.version == 1 else self.serve_2)(rank, request)
                        else:
                            self.initialize(rank, request)
        return max(abs(rank.process.wait()) for rank in self.ranks)


def groups_of(words):
    groups = []
    while words:
        end = words.index(":") if ":" in words else len(words)
        assert words[0] == "-n", words
        groups.append((int(words[1]), words[2:end]))
        words = words[end + 1:]
    return groups


def main():
    version, _, mode = sys.argv[1].partition(":")
    job = Job(int(version), mode, groups_of(sys.argv[2:]))
    try:
        return job.run()
    except (Refused, KeyError, ValueError, BrokenPipeError) as why:
        print("pmi_launcher:", repr(why), file=sys.stderr)
        for rank in job.ranks:
            rank.process.kill()
        return 99


if __name__ == "__main__":
    sys.exit(main())
