"""Importing the extension changes torch.distributed as it should, and nothing else."""

import importlib
import sys

import dummy_collectives
import pytest
import torch
import torch.distributed as dist


def test_registering_again_changes_nothing():
    plugin = dist.Backend._plugins["DUMMY"]
    dummy_collectives.register()
    assert dist.Backend._plugins["DUMMY"] is plugin
    assert dist.Backend.backend_list.count("dummy") == 1
    # A string instead of a list would be taken apart into its letters.
    assert dist.Backend.backend_capability["dummy"] == ["cpu", "cuda"]


def test_importing_again_is_silent(capfd, monkeypatch):
    defaults = dict(dist.Backend.default_device_backend_map)
    importlib.reload(dummy_collectives)
    monkeypatch.delitem(sys.modules, "dummy_collectives")
    importlib.import_module("dummy_collectives")
    assert dist.Backend.default_device_backend_map == defaults
    assert capfd.readouterr() == ("", "")


def test_another_release_of_pytorch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.99.0+cpu")
    message = (
        "^dummy_collectives was not built for PyTorch 2.99.0: build it again with this PyTorch$"
    )
    with pytest.raises(ImportError, match=message):
        importlib.reload(dummy_collectives)
