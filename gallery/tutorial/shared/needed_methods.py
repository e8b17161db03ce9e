"""Record what features of PyTorch call on two ranks, and make tables of it."""

import json
import os
import tempfile

from launcher import PROFILER, launch


def run_features(**variables):
    """For each rank, a dictionary from a feature or a function to the names of its calls."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SHARED_FOLDER": folder, **variables}
        reports = launch(
            "shared/calls_of_features.py",
            ranks=2,
            expected_stderr=f"{PROFILER}|falling back with allgather",
            show=False,
        )
    return [json.loads(report) for report in reports]




def is_function(name):
    return "_" in name  # The names of features have no underscore.


def methods_of_features(by_rank):
    """The header and the rows of a table: methods, and the features that call them."""
    features = {
        name: set().union(*(report[name] for report in by_rank))
        for name in by_rank[0]
        if not is_function(name)
    }
    names = sorted(set().union(*features.values()), key=lambda name: name.strip("_"))
    ops = [name for name in names if name.startswith("ReduceOp.")]
    methods = [name for name in names if name not in ops]
    rows = [
        [method, *("✓" if method in called else "–" for called in features.values())]
        for method in methods
    ]
    if ops:  # since PyTorch 2.15
        used = [
            [op.removeprefix("ReduceOp.") for op in ops if op in called]
            for called in features.values()
        ]
        rows.append(["ReduceOp", *(", ".join(some) or "–" for some in used)])
    return ["method", *features], rows


def calls_of_functions(by_rank):
    """A dictionary from a function to the names of its calls on rank 0."""
    return {name: calls for name, calls in by_rank[0].items() if is_function(name)}


def differences(on_cpu, on_device):
    """The header and the rows of a table: what only one of two runs calls."""
    rows = []
    for name in on_device[0]:
        here, there = (
            set().union(*(report[name] for report in run)) for run in (on_cpu, on_device)
        )
        if here != there:
            changes = (there - here, here - there)
            rows.append([name, *(", ".join(sorted(some)) or "–" for some in changes)])
    return ["feature or function", "calls only on the device", "calls only on the CPU"], rows


