"""Reads the GOAL text of our schedules as LogGOPSim's converter does, and replays it.

    goal.py PROGRAM     which prints the schedules of every algorithm (print_goal.cpp)

The grammar is that of txt2bin.re in https://github.com/spcl/LogGOPSim, a scanner for re2c; the language is described in
T. Hoefler, C. Siebert, A. Lumsdaine, Group Operation Assembly Language, ICPP 2009. This reader follows the grammar and
knows nothing of our printer. Blanks may stand between any two words of a line, and need not where the words can be told
apart:

    file       num_ranks INT, then for every rank, in their order:  rank INT {  statements  }
    statement  [LABEL :] send INT b to INT [tag INT] [cpu INT] [nic INT]
               [LABEL :] recv INT b from INT [tag INT] [cpu INT] [nic INT]      -1: any rank, any tag
               [LABEL :] calc INT [cpu INT]
               LABEL requires LABEL          behind the end of that step
               LABEL irequires LABEL         behind its begin
    comment    // to the end of the line, /* */

Refused as well is what the converter takes and misreads: a label given twice, numbers beyond their fields, ranks out of
order or beyond num_ranks, statements outside a rank, text behind the last rank, a line that begins with a blank.
"""
import collections
import json
import re
import subprocess
import sys

LABEL = r"[a-zA-Z][a-zA-Z0-9_]*"
KEYWORDS = ("rank", "num_ranks", "send", "recv", "calc")


def compiled(text):
    """Blanks in the pattern are blanks that may be there; where a line begins, a keyword is the whole word."""
    return re.compile(text.replace(" ", r"[ \t]*"))


PLACE = r"( cpu (?P<cpu>\d+))?( nic (?P<nic>\d+))?"
NUM_RANKS = compiled(r"num_ranks\b (?P<ranks>\d+)")
RANK = compiled(r"rank\b (?P<rank>\d+) {")
DEPENDENCY = compiled(rf"(?P<after>{LABEL}) (?P<kind>i?requires) (?P<before>{LABEL}) \r?\n")
NAMED = compiled(rf"(?P<label>{LABEL}) : ")
SEND = compiled(rf"send (?P<size>\d+) b to (?P<peer>\d+)( tag (?P<tag>\d+|-1))?{PLACE} \r?\n")
RECV = compiled(rf"recv (?P<size>\d+) b from (?P<peer>\d+|-1)( tag (?P<tag>\d+|-1))?{PLACE} \r?\n")
CALC = compiled(r"calc (?P<size>\d+)( cpu (?P<cpu>\d+))? \r?\n")
SKIPPED = re.compile(r"\r?\n|//[^\n]*\n|/\*.*?\*/", re.DOTALL)
WORD = re.compile(LABEL)

Step = collections.namedtuple("Step", "kind size peer tag after begun")


class NotGoal(Exception):
    pass


class Reader:
    def __init__(self, text):
        self.text, self.at = text + "\n", 0
        self.ranks = []  # of each the list of its steps
        self.ranks_in_all, self.labels = None, None
        while self.at < len(self.text):
            self.statement()
        if self.ranks_in_all is None or self.labels is not None or len(self.ranks) != self.ranks_in_all:
            raise NotGoal("it ends before the last rank does")

    def take(self, pattern):
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def refuse(self, why):
        line = self.text.count("\n", 0, self.at) + 1
        raise NotGoal(f"line {line}: {why}: {self.text[self.at:self.at + 40]!r}")

    def number(self, digits, bits):
        """-1 is the largest number of the field: any."""
        value = int(digits or 0)
        if value >= (1 << bits) - (digits != "-1" and bits == 32):
            self.refuse(f"{digits} has more than {bits} bits")
        return value

    def statement(self):
        if self.take(SKIPPED):
            return
        if self.labels is None:
            return self.outside()
        if self.text[self.at] == "}":
            self.at += 1
            self.labels = None
            return
        dependency = self.take(DEPENDENCY)
        if dependency:
            return self.depend(dependency)
        label = self.take(NAMED)
        word = WORD.match(self.text, self.at)
        # Behind a colon the scanner wants a keyword, before it the longest word.
        if label is None and (word is None or word[0] not in KEYWORDS):
            self.refuse("no statement")
        self.operation(label)

    def outside(self):
        match = self.take(NUM_RANKS)
        if match:
            if self.ranks_in_all is not None:
                self.refuse("num_ranks twice")
            self.ranks_in_all = self.number(match["ranks"], 32)
            return
        match = self.take(RANK)
        if not match:
            self.refuse("neither rank nor num_ranks")
        if self.ranks_in_all is None or int(match["rank"]) != len(self.ranks) or len(self.ranks) >= self.ranks_in_all:
            self.refuse(f"rank {match['rank']} out of order")
        self.ranks.append([])
        self.labels = {}

    def depend(self, match):
        for side in ("after", "before"):
            if match[side] not in self.labels:
                self.refuse(f"no step has the label {match[side]} so far")
        step = self.ranks[-1][self.labels[match["after"]]]
        (step.after if match["kind"] == "requires" else step.begun).append(self.labels[match["before"]])

    def operation(self, label):
        for kind, pattern in (("send", SEND), ("recv", RECV), ("calc", CALC)):
            match = self.take(pattern)
            if match:
                break
        else:
            self.refuse("no operation")
        fields = match.groupdict()
        self.number(fields["cpu"], 8), self.number(fields.get("nic"), 8)
        peer = self.number(fields.get("peer"), 32)
        if label:
            if label["label"] in self.labels:
                self.refuse(f"the label {label['label']} twice")
            self.labels[label["label"]] = len(self.ranks[-1])
        self.ranks[-1].append(Step(kind, self.number(fields["size"], 64), peer, self.number(fields.get("tag"), 32), [], []))


class Replay:
    """What the steps do together: each message is one event of its send and its receive, so none is buffered."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.messages = self.signals = self.bytes = self.calculated = self.rounds = 0
        partner = self.match()
        self.run(partner)

    def match(self):
        """(rank, step) of a send to that of its receive, and back: by sender, receiver and tag, of which none is twice."""
        ends = {"send": {}, "recv": {}}
        for rank, steps in enumerate(self.ranks):
            for number, step in enumerate(steps):
                if step.kind == "calc":
                    self.calculated += step.size
                    continue
                if not 0 <= step.peer < len(self.ranks) or step.peer == rank:
                    raise NotGoal(f"rank {rank} has a message with rank {step.peer}")
                key = (rank, step.peer, step.tag) if step.kind == "send" else (step.peer, rank, step.tag)
                if key in ends[step.kind]:
                    raise NotGoal(f"two messages (from, to, tag) {key}")
                ends[step.kind][key] = (rank, number)
        if ends["send"].keys() != ends["recv"].keys():
            raise NotGoal(f"a message without its other end: {sorted(ends['send'].keys() ^ ends['recv'].keys())[0]}")
        partner = {}
        for key, send in ends["send"].items():
            recv = ends["recv"][key]
            size = self.ranks[send[0]][send[1]].size
            if size != self.ranks[recv[0]][recv[1]].size:
                raise NotGoal(f"the ends of {key} differ in size")
            partner[send], partner[recv] = recv, send
            self.messages += size != 0
            self.signals += size == 0
            self.bytes += size
        return partner

    def run(self, partner):
        """Each step when those that it requires are done, a message when both its ends may. The longest chain counts."""
        waiting, followers, depth = {}, collections.defaultdict(list), collections.defaultdict(int)
        for rank, steps in enumerate(self.ranks):
            for number, step in enumerate(steps):
                if step.begun:
                    raise NotGoal("a schedule of ours has no irequires")
                waiting[rank, number] = len(step.after)
                for before in step.after:
                    followers[rank, before].append((rank, number))
        ready = [step for step, count in waiting.items() if count == 0]
        done = set()
        while ready:
            step = ready.pop()
            other = partner.get(step)
            if other is not None and waiting[other] != 0 or step in done:
                continue  # with its other end
            ends = [step] if other is None else [step, other]
            level = max(depth[end] for end in ends) + (other is not None)
            self.rounds = max(self.rounds, level)
            for end in ends:
                done.add(end)
                for follower in followers[end]:
                    depth[follower] = max(depth[follower], level)
                    waiting[follower] -= 1
                    if waiting[follower] == 0:
                        ready.append(follower)
        if len(done) != len(waiting):
            raise NotGoal(f"{len(waiting) - len(done)} steps wait for ever")


ACCEPTED = """num_ranks 3// a comment
rank 0 {
a1: send 8b to 1 tag 0
send 4 b to 2 tag 5 cpu 1 nic 2
calc 12 cpu 3
last:\tcalc 7
last requires a1
last irequires a1
}
/* a rank
   behind it */rank 1{
x:recv8bfrom0tag0
}
rank 2 {
recv_all: recv 4b from -1 tag -1 cpu 1
}"""
# By what each is to be refused for, in the place of the second line of a rank's two.
REFUSED = ("l1: send 8 to 1", "l1: send 8b from 1", "l1: send 8b to -1", "l1: recv 8b to 1", "l1: calc 8b", "l1: calc 8 nic 1",
           "l1: send 8b to 1 cpu 1 tag 2", "l1: send 8b to 1 tag", "l1 send 8b to 1", "1: calc 8", "l-1: calc 8", "send8b to 1",
           "l1: wait 8", "l1 requires l0", "l0 requires l0 l0", "l0: calc 8", "l1: calc 8 cpu 256", " l1: calc 8",
           "l1: send 8b to 4294967295", "l1: calc 18446744073709551616", "rank 1 {", "num_ranks 2", "l1: calc -8",
           "l1: calc 8; l2: calc 9", "l0 requires")
# Well written, and not to be replayed.
STUCK = ("rank 0 {\nl0: send 8b to 1\n}\nrank 1 {\n}\n", "rank 0 {\nl0: send 8b to 1\n}\nrank 1 {\nl0: recv 9b from 0\n}\n",
         "rank 0 {\nl0: calc 1\nl1: calc 1\nl0 requires l1\nl1 requires l0\n}\nrank 1 {\n}\n",
         "rank 0 {\ns: send 1b to 1\nr: recv 1b from 1\ns requires r\n}\n"
         "rank 1 {\ns: send 1b to 0\nr: recv 1b from 0\ns requires r\n}\n",
         "rank 0 {\nsend 1b to 0 tag 1\nrecv 1b from 0 tag 1\n}\nrank 1 {\n}\n",
         "rank 0 {\nsend 1b to 1\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\nrecv 1b from 0\n}\n")


def refused(text, replayed=False):
    try:
        reader = Reader(text)
        if replayed:
            Replay(reader.ranks)
    except NotGoal:
        return True
    return False


def check_reader():
    first, second, third = Reader(ACCEPTED).ranks
    assert [step.kind for step in first] == ["send", "send", "calc", "calc"] and first[3].after == [0] == first[3].begun, first
    assert second == [Step("recv", 8, 0, 0, [], [])] and third == [Step("recv", 4, -1, -1, [], [])], (second, third)
    head = "num_ranks 1\nrank 0 {\nl0: calc 1\n"
    assert not refused(head + "}") and not refused(head + "l1: calc 2\n}\n")
    for line in REFUSED:
        assert refused(head + line + "\n}\n"), line
    for text in ("", "rank 0 {\n}\n", head, head + "}\nrank 1 {\n}\n", head + "}\nmore\n", "num_ranks 2\n" + head[12:] + "}\n",
                 "num_ranks 2\nrank 1 {\n}\nrank 0 {\n}\n", head + "} }"):
        assert refused(text), text
    for text in STUCK:
        assert not refused("num_ranks 2\n" + text) and refused("num_ranks 2\n" + text, replayed=True), text


def check_schedule(said, text):
    ranks = Reader(text).ranks
    replay = Replay(ranks)
    found = {"ranks": len(ranks), "steps": sum(map(len, ranks)), "requires": sum(len(s.after) for steps in ranks for s in steps),
             "calculated": replay.calculated, "messages": replay.messages, "signals": replay.signals, "bytes": replay.bytes,
             "rounds": replay.rounds, "valid": True}
    for key, value in found.items():
        if said[key] != value:
            raise NotGoal(f"{key}: {value} in the text, {said[key]} in the schedules")


def main(program):
    check_reader()
    printed = subprocess.run([program], text=True, capture_output=True, timeout=250)
    if printed.returncode != 0:
        sys.exit(f"{program} ended with {printed.returncode}: {printed.stderr}")
    read, rows, messages = collections.Counter(), set(), 0
    for part in printed.stdout.split("==== ")[1:]:
        head, text = part.split("\n", 1)
        said = json.loads(head)
        if "row" in said:
            rows.add(said["row"])
            continue
        try:
            check_schedule(said, text)
        except NotGoal as error:
            sys.exit(f"{said['of']}: {error}")
        read[said["algorithm"]] += 1
        messages += said["messages"] + said["signals"]
    if rows != set(read) or len(rows) < 20 or messages == 0:
        sys.exit(f"not read: {sorted(rows ^ set(read))}; {messages} messages in all")
    print(f"{sum(read.values())} schedules of {len(rows)} algorithms, {messages} messages")


if __name__ == "__main__":
    main(sys.argv[1])
