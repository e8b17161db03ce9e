"""The backend in process groups of two and four ranks, which are forks of this process."""

import pytest
import torch
import torch.distributed as dist
from ranks import run, start_group


def all_gather(rank, size):
    """Gather in one group after another, in memory that has other elements between the outputs."""
    for _ in range(3):
        start_group(backend="dummy")
        ours = torch.full((3,), rank + 1.0)
        everyones = torch.full((size, 3, 2), -1.0)
        dist.all_gather(list(everyones[:, :, 0]), ours)
        assert not everyones[:, :, 0].any(), everyones
        assert (everyones[:, :, 1] == -1).all(), everyones
        assert (ours == rank + 1).all(), "the input stays as it was"
        # No rank sends anything, so one of them may be alone in a collective.
        if rank == size - 1:
            tensor = torch.ones(2)
            dist.all_reduce(tensor)
            assert tensor.tolist() == [0.0, 0.0]
        dist.destroy_process_group()


def test_all_gather():
    run(all_gather, 4, 4, init=False)


def in_three_groups(rank):
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
    return list(mine)


def test_groups_of_some_of_the_ranks():
    assert run(in_three_groups, 4, init=False) == [["pair", "all"]] * 2 + [["all"]] * 2


def beside_gloo(rank):
    """Return the sum from gloo, zero from the dummy, and again the sum from gloo."""
    start_group(backend="cpu:gloo,cuda:dummy")
    assert dist.get_backend_config() == "cpu:gloo,cuda:dummy"
    dummy = dist.new_group(backend="dummy")

    def all_reduce(group=None):
        tensor = torch.tensor(rank + 1.0)
        dist.all_reduce(tensor, group=group)
        return tensor.item()

    results = [all_reduce(), all_reduce(dummy)]
    outputs = [torch.tensor(-1.0) for _ in range(2)]
    dist.all_gather(outputs, torch.tensor(rank + 1.0))
    assert [output.item() for output in outputs] == [1.0, 2.0], "gloo really gathers"
    dist.barrier()  # gloo has one
    dist.destroy_process_group(dummy)
    return [*results, all_reduce()]


@pytest.mark.filterwarnings("ignore")
def test_gloo_and_the_dummy_side_by_side():
    assert run(beside_gloo, 2, init=False) == [[3.0, 0.0, 3.0]] * 2
