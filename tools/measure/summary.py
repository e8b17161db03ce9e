"""Medians with quartiles, and how they compare with the goals. Needs no PyTorch."""

import statistics
from dataclasses import dataclass

# "fake" is PyTorch's own backend that communicates nothing: the floor under all others.
BACKENDS = ("shm", "fake", "gloo")
KIB, MIB = 2**10, 2**20
SMALL, LARGE = (4, KIB, 8 * KIB, 64 * KIB), (MIB, 16 * MIB, 64 * MIB)
MODELS = (1_000_000, 4_000_000)


def record(case, ranks, seconds):
    """Return what the result says of a case; `seconds` are the samples of each backend.

    The times in it are in microseconds. "ratio" is that of gloo's median to ours, and
    "above_floor" what our median exceeds the floor by.
    """
    times = {backend: quartiles(samples) for backend, samples in seconds.items()}
    shm, gloo, floor = (times[backend]["median"] for backend in ("shm", "gloo", "fake"))
    return {
        "operation": case.operation,
        "size": case.size,
        "unit": case.unit,
        "ranks": ranks,
        "microseconds": times,
        "ratio": round(gloo / shm, 2),
        "above_floor": round(shm - floor, 2),
    }


def quartiles(seconds):
    """Return the quartiles of samples, in microseconds, and the number of samples."""
    lower, median, upper = statistics.quantiles(seconds, n=4, method="inclusive")
    in_microseconds = {"median": median, "lower_quartile": lower, "upper_quartile": upper}
    return {name: round(value * 1e6, 2) for name, value in in_microseconds.items()} | {
        "samples": len(seconds)
    }


def size_text(size, unit):
    if unit == "parameters":
        return f"{size / 1e6:g} million"
    if not size:
        return ""
    factor, name = next(x for x in ((MIB, "MiB"), (KIB, "KiB"), (1, "B")) if size >= x[0])
    return f"{size // factor} {name}"


def line(record):
    """Return a line of the table of cases: medians, with the quartiles in parentheses."""
    what = f"{record['operation']:25}{size_text(record['size'], record['unit']):>10}"
    text = f"{record['ranks']} ranks  {what}"
    for backend in BACKENDS:
        times = record["microseconds"][backend]
        quartiles = f"({times['lower_quartile']:.1f}-{times['upper_quartile']:.1f})"
        text += f"  {backend} {times['median']:9.1f} {quartiles:21}"
    return f"{text} µs  gloo/shm {record['ratio']:6.2f}"


@dataclass(frozen=True)
class Goal:
    """A bound that all of some cases must keep.

    Without operations or sizes it concerns those of all cases. `measured` is a key of a record:
    of a "ratio" the bound is the least value, of "above_floor" the greatest.
    """

    text: str
    ranks: int
    bound: float
    operations: tuple = ()
    sizes: tuple = ()
    measured: str = "ratio"

    def concerns(self, record):
        return (
            record["ranks"] == self.ranks
            and (not self.operations or record["operation"] in self.operations)
            and (not self.sizes or record["size"] in self.sizes)
        )

    def worst(self, records):
        """Return the record that is furthest from the goal; None if it concerns none of them."""
        choose = min if self.measured == "ratio" else max
        concerned = filter(self.concerns, records)
        return choose(concerned, key=lambda record: record[self.measured], default=None)

    def is_met_by(self, record):
        value = record[self.measured]
        return value >= self.bound if self.measured == "ratio" else value <= self.bound


REDUCE, FUTURE, STEPS = ("all_reduce",), ("all_reduce, future",), ("step of DDP", "step of FSDP2")
MOVES = ("all_gather", "reduce_scatter", "all_to_all", "broadcast")
GOALS = (
    Goal("all_reduce up to 64 KiB", 2, 20, REDUCE, SMALL),
    Goal("all_reduce up to 64 KiB", 4, 15, REDUCE, SMALL),
    Goal("all_reduce 4 B, µs above the floor", 2, 5, REDUCE, (4,), "above_floor"),
    Goal("all_reduce 1 to 64 MiB", 2, 5, REDUCE, LARGE),
    Goal("all_reduce 1 to 64 MiB", 4, 2, REDUCE, LARGE),
    *(Goal("all_reduce 4 B with a future", ranks, 8, FUTURE, (4,)) for ranks in (2, 4)),
    *(Goal(f"{name} 16 MiB", 2, 3, (name,), (16 * MIB,)) for name in MOVES),
    Goal("barrier", 2, 20, ("barrier",)),
    Goal("send and recv 4 B", 2, 10, ("send and recv",), (4,)),
    *(Goal(name, ranks, 1.3, (name,), MODELS) for name in STEPS for ranks in (2, 4)),
    *(Goal("no case slower than gloo", ranks, 1, measured="ratio") for ranks in (2, 4)),
)


def goals_table(records):
    """Return a table of the goals: what the worst case that each concerns comes to."""
    lines = [f"{'goal':36}{'ranks':>6}{'bound':>8}{'worst':>9}"]
    for goal in GOALS:
        if (worst := goal.worst(records)) is None:
            continue
        verdict = "met" if goal.is_met_by(worst) else "not met"
        bound = f"{'≥' if goal.measured == 'ratio' else '≤'} {goal.bound:g}"
        case = f"{worst['operation']} {size_text(worst['size'], worst['unit'])}".rstrip()
        lines.append(
            f"{goal.text:36}{goal.ranks:6}{bound:>8}{worst[goal.measured]:9.2f}"
            f"  {verdict:7}  {case}"
        )
    return "\n".join(lines)
