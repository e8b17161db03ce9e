"""Tables of the recorded times."""

from measurements import measured


def bandwidths():
    """Return rows with the slowest and the fastest run of each all-reduce, in MB/s."""
    rows = []
    for (operation, size, ranks, sessions), times in measured.items():
        if operation == "all_reduce" and size >= 1024 and sessions == ranks:
            speeds = [size / times[x][run] for x in ("shm", "gloo") for run in (2, 1)]
            shown = [f"{speed:,.1f}" if speed < 10 else f"{speed:,.0f}" for speed in speeds]
            rows.append([f"{ranks}", f"{size:,}", "–".join(shown[:2]), "–".join(shown[2:])])
    return rows


def steps():
    """Return rows with the times of a step of training, in milliseconds."""
    rows = []
    for (operation, size, ranks, _), times in measured.items():
        if operation.startswith("step of "):
            ranges = [
                "–".join(f"{time / 1000:.1f}" for time in times[x][1:])
                for x in ("fake", "shm", "gloo")
            ]
            what, count = operation.removeprefix("step of "), f"{size // 10**6} million"
            rows.append([what, count, f"{ranks}", *ranges])
    return rows
