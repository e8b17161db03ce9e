"""Compare algorithms of tcp with their predictions, and tcp with gloo, on simulated hosts.

usage: python -m tools.bench_algorithms

All groups run in the same ranks, in turns whose order changes. Every sample is the time of the
slowest rank, and all of it runs several times, in new processes. The predictions are those of the
simulator, with the latency and the rate of the links, and one measured number: the overhead of a
message, from the least time that the smallest all_reduce takes two ranks. On one host, shm stands
beside tcp, to show what shared memory saves there. Nothing else should run meanwhile. Needs root
or user namespaces, and about ten minutes; writes a table into the gallery, for you to commit.
"""

import os
import statistics
import sys

import torch

from .measure.cases import Case
from .measure.machine import machine
from .measure.on_hosts import GLOO, SHM, TCP, Network, measure_on_hosts
from .measure.summary import KIB, MIB, as_csv, size_text
from .processes.run import forget_inherited_settings
from .project.errors import run_command
from .project.paths import FRAME, GALLERY, INSTALLED_EXTENSIONS, relative

RUNS, ROUNDS = 3, 5
NEAR = 0.2
TABLE = GALLERY / "algorithms" / "shared" / "measurements.csv"

SLOW = {"latency": 0.001, "rate": 200e6}  # so slow that the processors hardly count
FAST = {"latency": 0.001, "rate": 1e9}
# Two ranks, whose time tells the overhead; and what is predicted with it.
SMALLEST = Network(2, 1, **SLOW)
PREDICTED = [Network(8, 1, **SLOW), Network(2, 2, **SLOW)]
ALGORITHMS = ("ring", "doubling", "halving", "halving_near", "two_level_shares")
OF_ALGORITHMS = [Case("all_reduce", size) for size in (4, 64 * KIB, MIB)]

COMPARED = [Network(1, 2), Network(1, 4), Network(2, 1, **FAST), Network(2, 2, **FAST)]
OPERATIONS = ("all_reduce", "broadcast and answer", "all_gather", "reduce_scatter", "all_to_all")
OF_BACKENDS = [Case(x, size) for x in OPERATIONS for size in (4, 8 * KIB, 64 * KIB, MIB, 16 * MIB)]
OF_BACKENDS.append(Case("answer", 0))


def main() -> None:
    forget_inherited_settings()
    sys.path[:0] = [str(INSTALLED_EXTENSIONS), str(FRAME)]
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    load = os.getloadavg()[0]
    [[smallest]] = times(SMALLEST, ["doubling"], OF_ALGORITHMS[:1])
    overhead = (min(smallest) - 1e6 * SMALLEST.latency) / 2
    table = []
    for network in PREDICTED:
        names = [*ALGORITHMS, GLOO]
        measured = times(network, names, OF_ALGORITHMS)
        table += rows(network, names, OF_ALGORITHMS, measured, overhead)
    for network in COMPARED:
        names = [TCP, GLOO] if network.hosts > 1 else [TCP, GLOO, SHM]
        table += rows(network, names, OF_BACKENDS, times(network, names, OF_BACKENDS))
    place = f"{machine()}, PyTorch {torch.__version__}, load {load:.1f} at the beginning"
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(as_csv(table, f"{place}, overhead {overhead:.0f} µs"))
    print("", *map(line, table), sep="\n")
    print(f"\n{summary(table)}; written to {relative(TABLE)}")


def times(network, names, cases):
    """Return for each case the microseconds of each name in all rounds of all runs."""
    runs = []
    for number in range(RUNS):
        runs.append(measure_on_hosts(network, names, cases, ROUNDS))
        print(f"run {number + 1} of {network}", flush=True)
    return [
        [[time for run in of_case for time in run[name]] for name in names]
        for of_case in zip(*runs, strict=True)
    ]


def rows(network, names, cases, measured, overhead=None):
    """Return a row for each case and name: the median and the least, in microseconds."""
    return [
        {
            "hosts": network.hosts,
            "ranks": network.ranks,
            "latency": f"{1e6 * network.latency:g}",
            "rate": f"{network.rate / 1e6:g}",
            "operation": case.operation,
            "size": case.size,
            "algorithm": name,
            "samples": len(found),
            "median": f"{statistics.median(found):.1f}",
            "least": f"{min(found):.1f}",
            "predicted": prediction(network, name, case, overhead) if name in ALGORITHMS else "",
        }
        for case, of_case in zip(cases, measured, strict=True)
        for name, found in zip(names, of_case, strict=True)
    ]


def prediction(network, name, case, overhead):
    """Return the microseconds that the simulator says, as text."""
    from c10d_frame.simulate import simulate

    options = {
        "operation": case.operation,
        "algorithm": name,
        "ranks": network.ranks,
        "hosts": network.hosts,
        "bytes": case.size,
        "latency": 1e6 * network.latency,
        "rate": network.rate / 1e9,
        "overhead": overhead,
    }
    _, found = simulate(*(f"{x}={value}" for x, value in options.items())).splitlines()
    return found.split()[4]


def line(row):
    """Return a row for people."""
    hosts = "one host" if row["hosts"] == 1 else f"{row['hosts']} hosts, {row['rate']} Mbit/s"
    what = f"{row['operation']:21}{size_text(row['size'], 'bytes'):>7}  {row['algorithm']:17}"
    found = f"{row['median']:>9} µs (least {row['least']})"
    place = f"{row['ranks']} ranks on {hosts}"
    return f"{place:31} {what} {found}" + (row["predicted"] and f", predicted {row['predicted']}")


def summary(table):
    """Return how many predictions are near to what was measured."""
    predicted = [row for row in table if row["predicted"]]
    near = {
        name: sum(abs(float(row["predicted"]) / float(row[name]) - 1) <= NEAR for row in predicted)
        for name in ("median", "least")
    }
    return (
        f"of {len(predicted)} predictions, {near['median']} are within {NEAR:.0%} of the median, "
        f"and {near['least']} of the least"
    )


if __name__ == "__main__":
    run_command(main, __doc__)
