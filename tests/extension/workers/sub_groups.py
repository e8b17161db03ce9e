"""Worker: three overlapping groups at once; a rank is not a member of each."""

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

mine = {name: group for name, group in groups.items() if rank in members[name]}
works = []
for name, group in mine.items():
    backend = group._get_backend(torch.device("cpu"))
    assert (backend.name(), backend.size()) == ("dummy", len(members[name]))
    assert backend.rank() == members[name].index(rank)
    # All-gather fills one output for each rank of the group, not of the world.
    outputs = [torch.ones(2) for _ in members[name]]
    works.append(dist.all_gather(outputs, torch.ones(2), group=group, async_op=True))
    assert not any(output.any() for output in outputs)
assert all(work.wait() for work in reversed(works))

# The end of one group is not the end of the others.
if evens := mine.pop("evens", None):
    dist.destroy_process_group(evens)
    try:
        evens.allreduce([torch.ones(2)])
    except RuntimeError as error:
        assert str(error) == "Backend dummy was shut down and cannot run allreduce"
    else:
        raise AssertionError("a group that was destroyed still works")
for group in mine.values():
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert not tensor.any()

dist.destroy_process_group()
print(f"groups that remained: {', '.join(mine)}")
