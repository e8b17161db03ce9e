"""The table of times, and how they compare with the goals. Needs no PyTorch."""

import csv
import io
import itertools
import statistics
from dataclasses import dataclass

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
SMALL, LARGE = (4, KIB, 8 * KIB, 64 * KIB), (MIB, 16 * MIB, 64 * MIB)
MODELS = (1_000_000, 4_000_000)


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


@dataclass(frozen=True)
class Goal:
    """A bound of the median of shm, in all of some cases.

    Without operations or sizes it concerns those of all cases. The bound is in microseconds
    above the floor, or a share of the time of gloo in the fastest of its runs.
    """

    text: str
    ranks: int
    bound: float
    operations: tuple = ()
    sizes: tuple = ()
    of: str = "gloo"

    def concerns(self, row):
        return (
            row["ranks"] == self.ranks
            and (not self.operations or row["operation"] in self.operations)
            and (not self.sizes or row["size"] in self.sizes)
        )

    def worst(self, table):
        """Return the greatest value of all cases, and a row of its case."""
        values = []
        for floor, shm, gloo in cases_of(table):
            if self.concerns(shm):
                above_floor = shm["median"] - floor["median"]
                of_gloo = shm["median"] / gloo["lowest"]
                values.append((of_gloo if self.of == "gloo" else above_floor, shm))
        return max(values, key=lambda x: x[0])


REDUCE, FUTURE, STEPS = ("all_reduce",), ("all_reduce, future",), ("step of DDP", "step of FSDP2")
MOVES = ("all_gather", "reduce_scatter", "all_to_all", "broadcast")
GOALS = (
    Goal("all_reduce 4 B, µs above the floor", 2, 5, REDUCE, (4,), of="floor"),
    Goal("all_reduce up to 64 KiB", 2, 0.3, REDUCE, SMALL),
    Goal("all_reduce up to 64 KiB", 4, 0.3, REDUCE, SMALL),
    Goal("all_reduce 1 to 64 MiB", 2, 0.5, REDUCE, LARGE),
    Goal("all_reduce 1 to 64 MiB", 4, 0.7, REDUCE, LARGE),
    *(Goal("all_reduce 4 B with a future", ranks, 0.5, FUTURE, (4,)) for ranks in (2, 4)),
    *(Goal(f"{name} 16 MiB", 2, 0.7, (name,), (16 * MIB,)) for name in MOVES),
    Goal("barrier", 2, 0.3, ("barrier",)),
    Goal("send and recv 4 B", 2, 0.3, ("send and recv",), (4,)),
    *(Goal(name, ranks, 0.9, (name,), MODELS) for name in STEPS for ranks in (2, 4)),
    *(Goal("no case slower than gloo", ranks, 1) for ranks in (2, 4)),
)


def goals_table(table):
    """Return a table of the goals: what the worst case that each concerns comes to."""
    table_lines = [f"{'goal: shm / fastest run of gloo':36}{'ranks':>6}{'bound':>8}{'worst':>9}"]
    for goal in GOALS:
        value, row = goal.worst(table)
        verdict = "met" if value <= goal.bound else "not met"
        case = f"{row['operation']} {size_text(row['size'], row['unit'])}".rstrip()
        table_lines.append(
            f"{goal.text:36}{goal.ranks:6}{f'≤ {goal.bound:g}':>8}{value:9.2f}"
            f"  {verdict:7}  {case}, {row['sessions']} sessions"
        )
    return "\n".join(table_lines)
