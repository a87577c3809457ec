"""What simulating may take: seconds of one processor, and memory. Not for builds with sanitizers. What passed on the
clock is printed beside it: no target, for the machine may have other work, but never less than the processor's.

    speed.py THALWEG_SIM
"""
import json
import subprocess
import sys
import time

MOST_BYTES = 16 << 30
LIMITS = ((10, "bcast", "ib2304", "2304", "16M", "chain:chunk_bytes=64K"), (10, "bcast", "ib2304", "2304", "16M", "auto"),
          (30, "alltoallv", "dane", "448", "512K", "spread"), (60, "halo", "slingshot", "65536", "64K", "auto"))

slow = []
for most, operation, machine, ranks, count, algorithm in LIMITS:
    begin = time.monotonic()
    done = subprocess.run([sys.argv[1], operation, "--machine", machine, "--ranks", ranks, "--bytes", count, "--algorithm", algorithm,
                           "--cost", "--json", "--quiet"], capture_output=True, text=True, timeout=900, check=True)
    wall = time.monotonic() - begin
    row = json.loads(done.stdout)
    took = row["cost"]["build_seconds"] + row["cost"]["replay_seconds"] if row["simulated"] else float("inf")
    peak = row.get("cost", {}).get("peak_bytes", 0)
    print(f"{operation} on {ranks} ranks, {row['algorithm']}: {took:.1f} s of a processor of {most}, {wall:.1f} s on the "
          f"clock, {peak >> 20} MiB")
    if took > most or peak > MOST_BYTES:
        slow.append(operation)
    if row["simulated"] and took > wall:
        sys.exit(f"FAILED: {operation} says that it took {took:.2f} s of one processor within {wall:.2f} s")
sys.exit(f"FAILED: {', '.join(slow)}" if slow else 0)
