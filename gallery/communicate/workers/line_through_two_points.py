"""Program: compare the measured times with a line through the smallest and the largest size."""

import json
from pathlib import Path

cases = json.loads(Path("measurements.json").read_text())["cases"]


# [solution]
def compare(backend, ranks):
    """Print the line, and where the measured time exceeds it most."""
    times = {
        case["size"]: case["microseconds"][backend]["median"]
        for case in cases
        if case["operation"] == "all_reduce" and case["ranks"] == ranks
    }
    small, large = min(times), max(times)
    rate = (large - small) / (times[large] - times[small])  # bytes in a microsecond
    start = times[small] - small / rate
    factors = {size: time / (start + size / rate) for size, time in times.items()}
    size = max(factors, key=factors.get)
    print(f"{backend}, {ranks} ranks: {start:.0f} µs + size / {rate:,.0f} MB/s,", end=" ")
    print(f"at {size} bytes {factors[size]:.1f} times as long")


# [/solution]
for backend in ("shm", "gloo"):
    for ranks in (2, 4):
        compare(backend, ranks)
