"""Rank of a host: train with tcp and with gloo, and compare the losses."""

import torch
import torch.distributed as dist
from training_runs import ddp, fsdp2

import tcp_collectives  # importing it registers "tcp"

dist.init_process_group("tcp")
gloo = dist.new_group(backend="gloo")


# [train]
def mean_losses(start, group):
    """Return the mean of the ranks' losses for each of five steps."""
    training = start(group)
    losses = torch.tensor([training.step() for _ in range(5)])
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    return losses


for start in [ddp, fsdp2]:
    ours, theirs = mean_losses(start, dist.group.WORLD), mean_losses(start, gloo)
    if dist.get_rank() == 0:
        print(f"{start.__name__}:", *[f"{loss:.4f}" for loss in ours.tolist()])
        print("    the same with gloo:", torch.allclose(ours, theirs, rtol=1e-5))
# [/train]
dist.destroy_process_group()
