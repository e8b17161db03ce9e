"""What the programs of this folder share: they run with a rule kept, and with it broken."""

import os
from datetime import timedelta

import stream_collectives
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("sim", rank)
torch.accelerator.set_device_index(rank)
dist.init_process_group("cpu:gloo,sim:simccl")


def new_group(broken="", seconds=60):
    """Return a group of all ranks that breaks a rule of streams, or none."""
    options = stream_collectives.Options(timedelta(seconds=seconds))
    options.broken = broken
    return dist.new_group(backend="simccl", pg_options=options)


def hold_communication(group):
    """Return a gate that holds the communication of a group until it is opened."""
    gate = torch.sim.Gate()
    with stream_collectives.communication_stream(device, group):
        gate.hold()
    return gate


def show(rule, run):
    """Print what `run(group)` returns in a group that keeps the rule, and in one that breaks it."""
    print("kept:", run(new_group()))
    print("broken:", run(new_group(broken=rule)))
    end()


def end():
    torch.accelerator.synchronize()
    dist.destroy_process_group()
