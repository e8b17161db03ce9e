"""The backend in process groups of two and four ranks, which are forks of this process."""

import pytest
import torch
import torch.distributed as dist
from ranks import in_ranks, start_group


@in_ranks(4, init=False)
def test_all_gather(rank):
    """Gather in one group after another, in memory that has other elements between the outputs."""
    for _ in range(3):
        start_group(backend="dummy")
        ours = torch.full((3,), rank + 1.0)
        everyones = torch.full((4, 3, 2), -1.0)
        dist.all_gather(list(everyones[:, :, 0]), ours)
        assert not everyones[:, :, 0].any(), everyones
        assert (everyones[:, :, 1] == -1).all(), everyones
        assert (ours == rank + 1).all(), "the input stays as it was"
        # No rank sends anything, so one of them may be alone in a collective.
        if rank == 3:
            tensor = torch.ones(2)
            dist.all_reduce(tensor)
            assert tensor.tolist() == [0.0, 0.0]
        dist.destroy_process_group()


@in_ranks(4, init=False)
def test_groups_of_some_of_the_ranks(rank):
    """Use three overlapping groups at once; a rank is not a member of each."""
    start_group(backend="dummy")
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
        with pytest.raises(RuntimeError, match="^Backend dummy was shut down and cannot run all"):
            evens.allreduce([torch.ones(2)])
    for group in mine.values():
        tensor = torch.ones(2)
        dist.all_reduce(tensor, group=group)
        assert not tensor.any()
