"""What simulating may take: seconds of one processor, and memory. Not for builds with sanitizers.

    speed.py THALWEG_SIM
"""
import json
import subprocess
import sys

MOST_BYTES = 16 << 30
LIMITS = ((10, "bcast", "ib2304", "2304", "16M", "chain:chunk_bytes=64K"), (10, "bcast", "ib2304", "2304", "16M", "auto"),
          (30, "alltoallv", "dane", "448", "512K", "spread"), (60, "halo", "slingshot", "65536", "64K", "auto"))

slow = []
for most, operation, machine, ranks, count, algorithm in LIMITS:
    done = subprocess.run([sys.argv[1], operation, "--machine", machine, "--ranks", ranks, "--bytes", count, "--algorithm", algorithm,
                           "--cost", "--json", "--quiet"], capture_output=True, text=True, timeout=900, check=True)
    row = json.loads(done.stdout)
    took = row["cost"]["build_seconds"] + row["cost"]["replay_seconds"] if row["simulated"] else float("inf")
    print(f"{operation} on {ranks} ranks, {row['algorithm']}: {took:.1f} s of {most}, {row.get('cost', {}).get('peak_bytes', 0) >> 20} MiB")
    if took > most or row["cost"]["peak_bytes"] > MOST_BYTES:
        slow.append(operation)
sys.exit(f"FAILED: {', '.join(slow)}" if slow else 0)
