"""Program: compare the measured times with a line through the smallest and the largest size."""

import csv
from pathlib import Path

lines = Path("shared/measurements.csv").read_text().splitlines()
table = list(csv.DictReader(lines[1:]))  # The first line describes the machine.


# [solution]
def compare(backend, ranks):
    """Print the line, and for how many of the sizes between it is in the range of the runs."""
    times = {
        int(row["size"]): [float(row[name]) for name in ("median", "lowest", "highest")]
        for row in table
        if (row["operation"], row["backend"]) == ("all_reduce", backend)
        and row["ranks"] == row["sessions"] == ranks
    }
    small, *between, large = sorted(times)
    rate = (large - small) / (times[large][0] - times[small][0])  # bytes in a microsecond
    start = times[small][0] - small / rate
    in_range = sum(times[x][1] <= start + x / rate <= times[x][2] for x in between)
    print(f"{backend}, {ranks} ranks: {start:.0f} µs + size / {rate:,.0f} MB/s:", end=" ")
    print(f"in the range at {in_range} of {len(between)} sizes")


# [/solution]
for backend in ("shm", "gloo"):
    for ranks in ("2", "4"):
        compare(backend, ranks)
