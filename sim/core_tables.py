"""What an operation and its messages take of a core, as `sim/wire.py costs` measured it: a part of the lab's page."""
import statistics

import costs as derive
from tables import rows, table


def measured(way, shape):
    """By library, size and number of peers: of each figure the least of a launch's rounds, of the middle launch, in us."""
    found = {}
    for row in rows("costs"):
        if (row["way"], row["shape"]) == (way, shape):
            launches = found.setdefault((row["mpi"], row["bytes"], row["peers"]), {})
            for name in ("send_seconds", "recv_seconds", "nap_seconds"):
                launches.setdefault(name, []).append(1e6 * row[name][0])
    return {key: {name: statistics.median(values) for name, values in launches.items()} for key, launches in found.items()}


def line(name, mpi, found):
    few, many = sorted(key[2] for key in found if key[:2] == (mpi, 256))
    def slope(figure):
        return (found[mpi, 256, many][figure] - found[mpi, 256, few][figure]) / (many - few)
    def more(figure):
        return (found[mpi, 4096, many][figure] - found[mpi, 256, many][figure]) / many
    send, recv = slope("send_seconds"), slope("recv_seconds")
    nap = found[mpi, 256, many]["nap_seconds"] if name.startswith("planned") else 0
    return [name, mpi, f"{found[mpi, 256, few]['send_seconds'] - send:.0f}", f"{send:.1f}",
            f"{found[mpi, 256, few]['recv_seconds'] - recv:.0f}", f"{recv:.1f}", f"{more('send_seconds'):+.1f}",
            f"{nap:.0f}" if nap else "-"]


def costs():
    lines = []
    for name, way, shape in (("the library's own", "native", "8x1"), ("planned, over libucp", "plan", "8x1"),
                             ("the library's own, inside a host", "native", "1x8"), ("planned, inside a host", "plan", "1x8")):
        found = measured(way, shape)
        lines += [line(name, mpi, found) for mpi in sorted({key[0] for key in found})]
    if not lines:
        return ""
    return """What an operation takes of a core, in us (`sim/wire.py costs`: half of eight ranks send to one or to four of the others, 256
bytes each; of the middle launch the least of 40 rounds, by the clock of the processes). An operation as such, each message it
sends, each that it receives and that is there already, what 4 KiB take more to send, and a sleep with the polling before it and
what has come then. Open MPI asks before it sends 4 KiB inside a host. The machines' numbers are those of the middle library. Nothing of this is taken from a row of the bench:

""" + table(["messages", "on", "to send", "each", "to receive", "each", "4 KiB", "a sleep"], lines) + "\n" + puts()


def puts():
    found = derive.stored()
    if "libucp_put_us" not in found:
        return ""
    here, there = (f"{found[name]:.1f}" for name in ("libucp_put_us", "libucp_take_put_us"))
    return f"""Besides its messages and sleeps a put takes {here} us of a core where it comes from and {there} where it goes, of the
middle library.

"""
