"""What a core does for messages, from what sim/wire.py has measured (sim/results/costs.jsonl and exchange.jsonl).

    sim/costs.py     prints the figures of sim/machines/lab-*.json that are derived here

Of a launch the least of the rounds counts, of six launches the middle one, of three libraries the middle one. An operation with
four messages less one with one, by three, is a message's cost; what is left is the operation's. A put's is what it takes at
either end besides its messages and sleeps: each end sends two there and notices two. Of an exchange on four hosts of one rank: what
a receive takes, and the rate at which a send of 32 KiB takes longer than one of 256 bytes.
"""
import collections
import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a core, in us, around a sleep: polling before it, a change of hands, and what has come then (messages of `naps` between).
BEFORE_A_SLEEP = 5 + 1.5
BESIDES_A_SLEEP = BEFORE_A_SLEEP + 2.7


def derived(rows):
    """By the names of the machine files, in us."""
    launches = collections.defaultdict(list)
    for row in rows:
        if row["bytes"] == 256:
            launches[row["mpi"], row["shape"], row["way"], row["peers"]].append(row)
    libraries = sorted({key[0] for key in launches})

    def middle(figure, *key):
        return 1e6 * statistics.median(row[figure][0] for row in launches[key])

    def of(shape, way, figure):
        """A message's cost, and the operation's, library by library."""
        pairs = [(middle(figure, library, shape, way, 1), middle(figure, library, shape, way, 4)) for library in libraries]
        return [(four - one) / 3 for one, four in pairs], [one - (four - one) / 3 for one, four in pairs]

    found = {}
    for prefix, way in (("", "native"), ("libucp_", "plan")):
        found[prefix + "post_us"], found[prefix + "start_us"] = of("8x1", way, "send_seconds")
        found[prefix + "complete_us"] = of("8x1", way, "recv_seconds")[0]
    for prefix, way in (("", "native"), ("libucp_", "plan")):
        found[prefix + "post_inside_us"] = of("1x8", way, "send_seconds")[0]
        found[prefix + "complete_inside_us"] = of("1x8", way, "recv_seconds")[0]
    found["libucp_sleep_us"] = [middle("nap_seconds", library, "8x1", "plan", 4) - BESIDES_A_SLEEP for library in libraries]
    if any(way == "puts" for _, _, way, _ in launches):
        for end, name in (("send", "libucp_put_us"), ("recv", "libucp_take_put_us")):
            found[name] = [besides(launches, library, end, found["libucp_sleep_us"][i])
                           - 2 * (found["libucp_post_us"][i] + found["libucp_complete_us"][i])
                           for i, library in enumerate(libraries)]
    return {name: max(statistics.median(values), 0) for name, values in found.items()}


def besides(launches, library, end, sleep):
    """Of a put at that end: what it takes besides sleeps, in us."""
    one, four = (statistics.median(1e6 * row[f"{end}_seconds"][0] - row[f"{end}_naps"][0] * (sleep + BEFORE_A_SLEEP)
                                   for row in launches[library, "8x1", "puts", peers]) for peers in (1, 4))
    return (four - one) / 3


def posted(rows):
    """The same of what posting takes in an exchange: us, and bytes per nanosecond."""
    least = {(row["mpi"], row["bytes"]): row for row in rows if row["shape"] == "4x1"}
    libraries = sorted({mpi for mpi, _ in least})
    small, large = 256, 32768

    def rate(library):
        return 1e-9 * (large - small) / (least[library, large]["send_seconds"][0] - least[library, small]["send_seconds"][0])

    return {"post_recv_us": statistics.median(1e6 * least[library, small]["recv_seconds"][0] for library in libraries),
            "socket_GBps": statistics.median(map(rate, libraries))}


def of_file(name):
    return [json.loads(line) for line in (ROOT / f"sim/results/{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def stored():
    return derived(of_file("costs"))


if __name__ == "__main__":
    for name, value in sorted({**stored(), **posted(of_file("exchange"))}.items()):
        print(f"{name:20} {value:.2f}")
