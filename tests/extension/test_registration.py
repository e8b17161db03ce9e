"""Importing the extension changes torch.distributed as it should, and nothing else."""

import subprocess
import sys
from importlib import metadata

import dummy_collectives
import torch.distributed as dist


def run_python(program):
    """Run a program in a fresh interpreter in which a warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=110,
    )


def test_registering_again_changes_nothing():
    plugin = dist.Backend._plugins["DUMMY"]
    dummy_collectives.register()
    assert dist.Backend._plugins["DUMMY"] is plugin
    assert dist.Backend.backend_list.count("dummy") == 1
    # A string instead of a list would be taken apart into its letters.
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


def test_another_release_of_pytorch_is_refused():
    process = run_python("""
import torch
torch.__version__ = "2.99.0+cpu"
import dummy_collectives
""")
    expected = (
        "ImportError: dummy_collectives was not built for PyTorch 2.99.0: "
        "build it again with this PyTorch"
    )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == expected


def test_the_entry_point_names_the_function_that_registers():
    [entry] = metadata.entry_points(group="torch.distributed.backends", name="dummy")
    assert entry.value == "dummy_collectives:register"
    assert entry.load() is dummy_collectives.register
