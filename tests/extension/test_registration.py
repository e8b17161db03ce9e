"""Importing the extension changes torch.distributed as it should, and nothing else."""

import importlib
import sys

import dummy_collectives
import pytest
import torch
import torch.distributed as dist


def test_registering_again_changes_nothing(capfd, monkeypatch):
    plugin = dist.Backend._plugins["DUMMY"]
    defaults = dict(dist.Backend.default_device_backend_map)
    dummy_collectives.register()
    importlib.reload(dummy_collectives)
    monkeypatch.delitem(sys.modules, "dummy_collectives")
    importlib.import_module("dummy_collectives")
    assert dist.Backend._plugins["DUMMY"] is plugin
    assert dist.Backend.backend_list.count("dummy") == 1
    # A string instead of a list would be taken apart into its letters.
    assert dist.Backend.backend_capability["dummy"] == ["cpu", "cuda"]
    assert dist.Backend.default_device_backend_map == defaults
    assert capfd.readouterr() == ("", "")


def test_another_release_of_pytorch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.99.0+cpu")
    message = (
        "^dummy_collectives was not built for PyTorch 2.99.0: build it again with this PyTorch$"
    )
    with pytest.raises(ImportError, match=message):
        importlib.reload(dummy_collectives)
