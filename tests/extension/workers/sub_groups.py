"""Worker: three overlapping groups at once; a rank is not a member of each."""

import warnings

import dummy_collectives  # noqa: F401  (registers "dummy")
import torch
import torch.distributed as dist

dist.init_process_group("dummy")
rank = dist.get_rank()
# Every rank takes part in creating a group, its members and the others.
members = {"evens": [0, 2], "pair": [0, 1], "all": [0, 1, 2, 3]}
groups = {
    "evens": dist.new_group(members["evens"], backend="dummy"),
    "pair": dist.new_group(members["pair"]),  # the same backend, by default
    "all": dist.group.WORLD,
}

tensors = {name: torch.tensor(rank + 1.0) for name in groups}
works = []
for name, group in groups.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work = dist.all_reduce(tensors[name], group=group, async_op=True)
    if rank in members[name]:
        assert not caught
        assert dist.get_backend(group) == "dummy"
        assert dist.get_world_size(group) == len(members[name])
        assert dist.get_rank(group) == members[name].index(rank)
        backend = group._get_backend(torch.device("cpu"))
        assert backend.size() == len(members[name])
        assert backend.rank() == members[name].index(rank)
        works.append(work)
    else:  # PyTorch warns, and does not call the backend.
        assert work is None and len(caught) == 1
        assert dist.get_rank(group) == -1
assert all(work.wait() for work in reversed(works))
for name, tensor in tensors.items():
    assert tensor.item() == (0.0 if rank in members[name] else rank + 1.0)

# All-gather fills one output for each rank of the group, not of the world.
if rank in members["evens"]:
    evens = groups["evens"]
    outputs = [torch.ones(2), torch.ones(2)]
    dist.all_gather(outputs, torch.ones(2), group=evens)
    assert not any(output.any() for output in outputs)
    try:
        dist.all_gather([torch.ones(2) for _ in range(4)], torch.ones(2), group=evens)
    except RuntimeError as error:
        assert "one output tensor per rank (2), got 4" in str(error)
    else:
        raise AssertionError("4 outputs for 2 ranks were accepted")

# The end of one group is not the end of the others.
dist.destroy_process_group(groups["evens"])
if rank in members["evens"]:
    try:
        groups["evens"].allreduce([torch.ones(2)])
    except RuntimeError as error:
        assert str(error) == "Backend dummy was shut down and cannot run allreduce"
    else:
        raise AssertionError("a group that was destroyed still works")
for name in ["pair", "all"]:
    if rank in members[name]:
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=groups[name])
        assert not tensor.any()

dist.destroy_process_group()
print(", ".join(f"{name}: {tensor.item()}" for name, tensor in tensors.items()))
