"""Worker: reduce and train with two algorithms of tcp and with gloo, and print what rank 0 gets."""

import json

from training_runs import ddp

import torch
import torch.distributed as dist

# [groups]
import tcp_collectives  # importing it registers "tcp"


def group_with(algorithm):
    options = tcp_collectives.Options()
    options.algorithms = f"all_reduce={algorithm}"
    return dist.new_group(backend="tcp", pg_options=options)


dist.init_process_group("gloo")
groups = {name: group_with(name) for name in ["ring", "grid"]}
groups["gloo"] = dist.group.WORLD
# [/groups]

# [reduce]
inputs = [1e8, 1.0, -1e8, 1.0]
sums = {}
for name, group in groups.items():
    tensor = torch.tensor([inputs[dist.get_rank()]])
    dist.all_reduce(tensor, group=group)
    sums[name] = tensor.item()
# [/reduce]

# [train]
losses = {}
for name, group in groups.items():
    training = ddp(group)
    losses[name] = [training.step() for _ in range(10)]
    # [/train]
    parameters = torch.cat([x.detach().flatten() for x in training.model.parameters()])
    gathered = [torch.empty_like(parameters) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, parameters)
    assert all(torch.equal(parameters, each) for each in gathered)  # the same sums on each


if dist.get_rank() == 0:
    print(json.dumps([sums, losses]))
dist.destroy_process_group()
