"""Intel's benchmark IMB-MPI1 Bcast, as a binary, on the hosts of a lab: three witnesses say that Thalweg did the work.

    imb.py MPI.json HOSTS PPN MIN_LOG MAX_LOG ALGORITHM…      sizes 2^MIN_LOG to 2^MAX_LOG

IMB completes all sizes; THALWEG_REPORT counts the bytes; the kernel's counters of each host's link agree: with an
algorithm that delivers every byte once, every host but the root's receives the reported bytes once, and the root's
receives next to nothing. A chain also has an end that sends next to nothing, and a root that sends them once; that
MPI's own broadcast does neither is seen with THALWEG_BCAST=native, by the same counters. What TCP had to send again,
which happens where others keep the cores, is counted by the kernel too, and may come on top.

IMB's own check of data is a compile-time option that this binary was built without; bytes are the business of the other
tests.
"""

import re
import tempfile

from conformance import Mpi, Skipped, algorithms_of, expect, in_lab, main, needs_lab, read_report

# What one byte of payload may become on the wire: headers, acknowledgements, start-up, IMB's barriers.
OVERHEAD = (1.0, 1.12)
NEXT_TO_NOTHING = 0.10


def benchmark(mpi, hosts, ppn, logs, settings):
    """The run, [(received, sent)] bytes of each host, how many were sent again, and the report if one was asked for."""
    program = mpi.root / ".venv-impi/bin/IMB-MPI1"
    if not program.exists():
        raise Skipped("IMB-MPI1 is not installed")
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        variables = {f"THALWEG_{name}": value for name, value in settings.items()}
        if settings.get("REPORT"):
            variables["THALWEG_REPORT"] = f"{folder}/report.json"
        ended, moved, again = in_lab(mpi, hosts, ppn, [program, "Bcast", "-npmin", hosts * ppn, "-iter", 5, "-iter_policy",
                                                       "off", "-time", 60, "-msglog", f"{logs[0]}:{logs[1]}"], variables)
        sizes = [int(size) for size in re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+ *$", ended.out, re.M)]
        expect(sizes == [0] + [1 << log for log in range(logs[0], logs[1] + 1)], "sizes:", sizes, ended)
        report = read_report(f"{folder}/report.json") if settings.get("REPORT") else None
    return ended, moved, again, report


def is_once(bytes_, payload, again):
    return OVERHEAD[0] * payload <= bytes_ <= OVERHEAD[1] * payload + again


def is_chain(moved, payload, again):
    sent = [sent for _, sent in moved]
    return all(is_once(s, payload, again) for s in sent[:-1]) and sent[-1] < NEXT_TO_NOTHING * payload + again


def test(path, hosts, ppn, low, high, *algorithms):
    mpi = Mpi(path)
    needs_lab(mpi)
    hosts, ppn, logs = int(hosts), int(ppn), (int(low), int(high))
    payload = None
    for algorithm in algorithms:
        _, moved, again, report = benchmark(mpi, hosts, ppn, logs, {"BCAST": algorithm, "REPORT": "yes"})
        totals, chosen = report["totals"], algorithms_of(report)
        payload = totals["accelerated_bytes"]
        ratios = [tuple(round(bytes_ / payload, 3) for bytes_ in pair) for pair in moved]
        print(f"{algorithm}: {payload} bytes in {totals['accelerated']} broadcasts; (received, sent) per byte:", ratios,
              f"sent again: {again / payload:.3f}")
        expect({name.split(":")[0] for name in chosen} == {algorithm.split(":")[0]}, "another algorithm:", chosen)
        expect(totals["errors"] == 0 and payload > 0.99 * totals["bytes"], report)
        expect(all(c["hosts"] == hosts for c in report["communicators"] if c["size"] == hosts * ppn), report)
        expect(moved[0][0] < NEXT_TO_NOTHING * payload + again, "the root's host received:", ratios)
        expect(all(is_once(received, payload, again) for received, _ in moved[1:]), "received more or less than once:",
               ratios, "of it again:", round(again / payload, 3))
        if algorithm.startswith("chain"):
            expect(is_chain(moved, payload, again), "no chain:", ratios)

    ended, moved, _, _ = benchmark(mpi, hosts, ppn, logs, {"BCAST": "native"})
    print("native:", [tuple(round(bytes_ / payload, 3) for bytes_ in pair) for pair in moved])
    expect(not is_chain(moved, payload, 0), "the counters cannot tell our chain from the MPI's own broadcast", ended)


if __name__ == "__main__":
    main(test)
