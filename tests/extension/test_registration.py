"""Importing the extension changes torch.distributed as it should, and nothing else."""

import subprocess
import sys
from importlib import metadata

import dummy_collectives
import pytest
import torch
import torch.distributed as dist


def run_python(program):
    """Run a program in a fresh interpreter in which a warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=110,
    )


def test_the_backend_is_registered():
    assert dist.is_backend_available("dummy")
    assert dist.Backend("dummy") == "dummy"
    assert dist.Backend("DUMMY") == "dummy"


def test_the_devices_are_cpu_and_cuda():
    # A string instead of a list would be taken apart into its letters.
    assert dist.Backend.backend_capability["dummy"] == ["cpu", "cuda"]


def test_registering_again_changes_nothing():
    plugin = dist.Backend._plugins["DUMMY"]
    dummy_collectives.register()
    assert dist.Backend._plugins["DUMMY"] is plugin
    assert dist.Backend.backend_list.count("dummy") == 1
    assert dist.Backend.backend_capability["dummy"] == ["cpu", "cuda"]


def test_importing_and_registering_twice_is_silent():
    process = run_python(
        """
import importlib, sys
import torch.distributed as dist
defaults = dict(dist.Backend.default_device_backend_map)
assert "dummy" not in dist.Backend.backend_list, "registered before the import"

import dummy_collectives
import dummy_collectives
del sys.modules["dummy_collectives"]
import dummy_collectives
importlib.reload(dummy_collectives)
dummy_collectives.register()
dummy_collectives.register()

assert dist.is_backend_available("dummy")
assert dist.Backend.default_device_backend_map == defaults, "a default was changed"
"""
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_a_program_that_does_not_clean_up_ends_well():
    process = run_python(
        """
import torch, torch.distributed as dist, dummy_collectives
dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
work = dist.all_reduce(torch.ones(2), async_op=True)
future = work.get_future().then(lambda finished: finished.value()[0].sum())
"""
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.mark.parametrize("release", ["2.12.1", "2.99.0"])
def test_another_release_of_pytorch_is_refused(release):
    process = run_python(f"""
import torch
torch.__version__ = "{release}+cpu"
import dummy_collectives
""")
    expected = (
        f"ImportError: dummy_collectives was not built for PyTorch {release}: "
        "build it again with this PyTorch"
    )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == expected


@pytest.mark.skipif(torch.__version__ < (2, 14), reason="since PyTorch 2.14")
def test_the_backend_is_found_without_an_import():
    process = run_python("""
import sys, torch, torch.distributed as dist
dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(2)
dist.all_reduce(tensor)
print(tensor.tolist(), "dummy_collectives" in sys.modules)
dist.destroy_process_group()
""")
    assert (process.stdout, process.stderr) == ("[0.0, 0.0] True\n", "")


def test_the_entry_point_names_the_function_that_registers():
    [entry] = metadata.entry_points(group="torch.distributed.backends", name="dummy")
    assert entry.value == "dummy_collectives:register"
    assert entry.load() is dummy_collectives.register
