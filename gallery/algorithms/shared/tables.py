"""Tables of one thing that the simulator says, as pages compare it."""

from c10d_frame.simulate import simulate

COLUMNS = "algorithm ranks hosts bytes time messages sent between choice".split()


def rows(*options, headers=()):
    """Return a dictionary for each line that the simulator prints; the time is in microseconds."""
    lines = simulate(*options, headers=headers).splitlines()[1:]
    return [dict(zip(COLUMNS, line.split(), strict=True)) for line in lines]


def print_table(rows, show, across):
    """Print a line for each algorithm, with what ``show`` makes of a row for each value ``across``."""
    values = list(dict.fromkeys(row[across] for row in rows))
    lines = {}
    for row in rows:
        lines.setdefault(row["algorithm"], {})[row[across]] = show(row)
    names = [size(value) if across == "bytes" else value for value in values]
    print(f"{across:16}", *(f"{name:>11}" for name in names))
    for algorithm, cells in lines.items():
        line = " ".join([f"{algorithm:16}", *(f"{cells[value]:>11}" for value in values)])
        print(line.rstrip())
    print()


def size(count):
    """Return a number of bytes as text, such as 64 KiB."""
    count, units = int(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and units[1:]:
        count, units = count / 1024, units[1:]
    return f"{count:.0f} {units[0]}" if count >= 100 else f"{count:.3g} {units[0]}"


def time(row):
    """Return the time of a row, in microseconds."""
    return row["time"]


def time_and_choice(row):
    """Return the time of a row, with a star if a transport would choose its algorithm."""
    return row["time"] + (" *" if row["choice"] == "yes" else "  ")
