"""Gloo and the backends of this site, held to the whole suite: what was recorded, and no other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tools.project.paths import BUILD, INSTALLED_EXTENSIONS, SUITE, relative

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parent / "recorded"
RELEASE = "2.15"  # of PyTorch, with which the results were recorded
MODULES = {"gloo": None, "dummy": "dummy_collectives", "shm": "shm_collectives"}
FAILURES = {"wrong", "crash", "hang"}
# Why a check fails that the dummy, which sets its outputs to zero, is not expected to keep.
REASONS = {
    "gloo": {
        # Non-contiguous tensors: values are wrong without an error (pytorch#192920).
        "values.all_reduce_layouts",
        "values.broadcast_layouts",
        "values.reduce_layouts",
        "values.scatter_layouts",
        "values.reduce_scatter_layouts",
        # The sum of two true values is the byte 2, which is no valid bool.
        "values.all_reduce_types",
        "values.reduce_types",
        "values.reduce_scatter_types",
        # is_completed() of a reduce_scatter stays False, also after wait().
        "values.reduce_scatter_sizes",
        "values.reduce_scatter_single_sizes",
        "works.completed_after_wait",
        # A message of another size than expected ends the process.
        "failure.other_size",
        # Its class in Python has no perform_nocolor_split, although it supports splitting.
        "groups.on_a_bound_device",
        "groups.mesh_on_a_bound_device",
        # A pending operation waits for its timeout.
        "failure.abort",
    },
    "shm": set(),
}


@pytest.fixture(scope="module", params=MODULES)
def report(request):
    """Return the report of a run of all checks with 2 and 4 ranks."""
    path = BUILD / "conformance" / f"{request.param}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "c10d_conformance", "--backend", request.param]
    if module := MODULES[request.param]:
        command += ["--import", module]
    places = os.pathsep.join([str(SUITE), str(INSTALLED_EXTENSIONS)])
    subprocess.run(
        [*command, "--report", path],
        env={**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
        timeout=900,
        stdout=subprocess.DEVNULL,
    )
    return json.loads(path.read_text())


def results(report):
    """Return how often each check, with each number of ranks, had each verdict."""
    return {
        f"{check['id']} ({check['ranks']} ranks)": {x: n for x, n in check["counts"].items() if n}
        for check in report["checks"]
    }


@pytest.mark.timeout(1000)
@pytest.mark.skipif(not torch.__version__.startswith(RELEASE), reason="another release")
def test_a_backend_keeps_what_was_recorded(report):
    name, found = report["backend"], results(report)
    made = BUILD / "conformance" / f"{name}-results.json"
    made.write_text(json.dumps(found, indent=1) + "\n")
    path = RECORDED / f"{name}.json"
    recorded = json.loads(path.read_text())
    differing = {x for x in found.keys() | recorded.keys() if found.get(x) != recorded.get(x)}
    assert not differing, (
        "\n".join(f"{x}: was {recorded.get(x)}, is {found.get(x)}" for x in sorted(differing))
        + f"\nIf this is right: cp {relative(made)} {relative(path)}"
    )


def test_each_failure_has_a_reason(report):
    if report["backend"] in REASONS:
        failing = {check["id"] for check in report["checks"] if check["verdict"] in FAILURES}
        assert failing == REASONS[report["backend"]]
