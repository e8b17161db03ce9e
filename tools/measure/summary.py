"""The table of times. Needs no PyTorch."""

import csv
import io
import itertools
import statistics

# "fake" is PyTorch's own backend that communicates nothing: the floor under all others.
BACKENDS = ("fake", "shm", "gloo")
# How MPICH reaches the other ranks, and which backends are compared there: on one host by default,
# or as if the ranks were on several; or on two simulated hosts. Gloo takes TCP everywhere.
NETWORKS = {
    "shared memory": ("shm", "mpich", "gloo"),
    "TCP": ("mpich", "gloo"),
    "two hosts": ("mpich", "gloo"),
}
KIB, MIB = 2**10, 2**20


def rows(case, setup, runs):
    """Return a row for each backend; `runs` has the microseconds of all backends in each run.

    The size of a case is in its unit, and the times are in microseconds: the median, the
    lowest and the highest of the runs.
    """
    return [
        {
            "backend": backend,
            "operation": case.operation,
            "size": case.size,
            "unit": case.unit,
            "ranks": setup.ranks,
            **setup.place(),
            "runs": len(runs),
            "median": round(statistics.median(run[backend] for run in runs), 1),
            "lowest": round(min(run[backend] for run in runs), 1),
            "highest": round(max(run[backend] for run in runs), 1),
        }
        for backend in setup.backends
    ]


def as_csv(table, machine):
    """Return the table as text. The first line is a comment that describes the machine."""
    text = io.StringIO(f"# {machine}\n", newline="")
    text.seek(0, io.SEEK_END)
    writer = csv.DictWriter(text, table[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def size_text(size, unit):
    if unit == "parameters":
        return f"{size / 1e6:g} million"
    if not size:
        return ""
    factor, name = next(x for x in ((MIB, "MiB"), (KIB, "KiB"), (1, "B")) if size >= x[0])
    return f"{size // factor} {name}"


def cases_of(table):
    """Yield the rows of each case: a list of one for each backend, in their order."""
    own = {"backend", "runs", "median", "lowest", "highest"}
    for _, case in itertools.groupby(table, lambda row: [row[x] for x in row if x not in own]):
        yield [*case]


def lines(table):
    """Return the table for people: a line for each case, with the range of the runs."""
    for case in cases_of(table):
        row = case[0]
        what = f"{row['operation']:25}{size_text(row['size'], row['unit']):>10}"
        text = f"{row['ranks']} ranks, {place_text(row)}  {what}"
        for times in case:
            span = f"({times['lowest']:.1f}-{times['highest']:.1f})"
            text += f"  {times['backend']} {times['median']:9.1f} {span:21}"
        yield f"{text} µs"


def place_text(row):
    """Return where the ranks of a row are, for people."""
    return row.get("network") or f"{row['sessions']} sessions"
