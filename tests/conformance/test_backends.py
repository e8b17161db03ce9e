"""Run the whole suite on gloo and on the backends of this site, and compare the verdicts."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from c10d_conformance.hosts import why_not
from c10d_conformance.verdicts import FAILURES

from tools.pages.new_project import STARTER, STARTER_ACCELERATOR
from tools.project.paths import BUILD, INSTALLED_EXTENSIONS, SUITE

pytestmark = pytest.mark.slow

RELEASE = "2.15"  # of PyTorch, with which the cases were counted
MODULES = {
    "gloo": None,
    "store": "store_collectives",
    "mpich": "mpi_collectives",
    "tcp": "tcp_collectives",
    "shm": "shm_collectives",
    "simccl": "stream_collectives",
}
DEVICES = {"simccl": "sim"}
# The projects in whose claims the checks of a backend are listed. The one for the CPU begins with
# the transport of store, and the one for accelerators with the library of simccl.
CLAIMS = dict.fromkeys(["store", "mpich", "tcp", "shm"], STARTER) | {"simccl": STARTER_ACCELERATOR}
# The checks that fail.
FAILING = {
    "gloo": {
        # Non-contiguous tensors: values are wrong without an error (pytorch#192920).
        "values.all_reduce_layouts",
        "values.broadcast_layouts",
        "values.reduce_layouts",
        "values.scatter_layouts",
        "values.reduce_scatter_layouts",
        "generated.all_reduce",
        "generated.broadcast",
        "generated.reduce",
        "generated.scatter",
        "generated.reduce_scatter",
        # The sum of two true values is the byte 2, which is no valid bool.
        "values.all_reduce_types",
        "values.reduce_types",
        "values.reduce_scatter_types",
        # AVG divides the sum, although the docstring of ReduceOp says that it divides before.
        "values.divided_first",
        # is_completed() of a reduce_scatter stays False, also after wait().
        "values.reduce_scatter_sizes",
        "values.reduce_scatter_single_sizes",
        "works.completed_after_wait",
        # wait() leaves the works of reduce_scatter in the registry of works in flight.
        "contract.wait_unregisters",
        # A message of another size than expected ends the process.
        "failure.other_size",
        # A message from a rank that is not there hangs or crashes; a timeout of centuries hangs.
        "generated.limits",
        # Its class in Python has no perform_nocolor_split, although it supports splitting.
        "groups.on_a_bound_device",
        "groups.mesh_on_a_bound_device",
        # A pending operation waits for its timeout.
        "failure.abort",
        # is_completed() of a message is False until wait().
        "messages.completed_without_wait",
        # It copies into tensors of inference mode and of autograd as the program would.
        "values.gather_layouts",
        "values.all_gather_single_layouts",
    },
    "store": set(),
    "mpich": set(),
    "tcp": set(),
    "shm": set(),
    "simccl": {"failure.other_size"},  # as gloo, which moves its data
}


# On two hosts, everything is as on one.
ON_HOSTS = ("gloo", "store", "mpich", "tcp")
RUNS = [(name, 1) for name in MODULES] + [(name, 2) for name in ON_HOSTS]


def paths(backend, hosts):
    """Return where the report and the claims of a run are."""
    start = BUILD / "conformance" / (f"{backend}-{hosts}-hosts" if hosts > 1 else backend)
    return start.with_suffix(".json"), start.with_suffix(".txt")


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: f"{run[0]}-{run[1]}")
def report(request):
    """Return the report of a run of all checks with 2 and 4 ranks; its claims lie beside it."""
    backend, hosts = request.param
    if hosts > 1 and (reason := why_not()):
        pytest.skip(reason)
    path, claims = paths(backend, hosts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    claims.unlink(missing_ok=True)
    command = [sys.executable, "-m", "c10d_conformance", "--backend", backend]
    command += ["--hosts", str(hosts), "--device", DEVICES.get(backend, "cpu")]
    if module := MODULES[backend]:
        command += ["--import", module]
    places = os.pathsep.join([str(SUITE), str(INSTALLED_EXTENSIONS)])
    subprocess.run(
        [*command, "--report", path, "--add-claims", claims],
        env={**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
        timeout=900,
        stdout=subprocess.DEVNULL,
    )
    return json.loads(path.read_text())


@pytest.mark.timeout(1000)
@pytest.mark.skipif(not torch.__version__.startswith(RELEASE), reason="another release")
def test_a_backend_keeps_its_claims(report):
    """A check that is new, or has new cases, needs no claim before the next release."""
    if report["backend"] not in CLAIMS:
        return
    _, new = paths(report["backend"], report["hosts"])
    kept, claimed = (_numbers(path) for path in (new, CLAIMS[report["backend"]] / "claims.txt"))
    fewer = {check: kept[check] for check, number in claimed.items() if kept[check] < number}
    assert not fewer, f"the right cases of these checks are fewer than claimed: {fewer}"


def _numbers(path):
    """Return how many cases of each check a file claims."""
    lines = [line.split(": ") for line in path.read_text().splitlines()]
    return Counter({check: int(number) for check, number in lines})


def test_the_checks_that_fail_are_known(report):
    failing = {check["id"] for check in report["checks"] if check["verdict"] in FAILURES}
    assert failing == FAILING[report["backend"]]
