"""Worker: both collectives on any number of ranks, in three groups in succession."""

import os

import dummy_collectives  # noqa: F401  (registers "dummy")
import torch
import torch.distributed as dist


def check_names():
    assert rank == int(os.environ["RANK"])
    assert ranks == int(os.environ["WORLD_SIZE"])
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert (backend.name(), backend.rank(), backend.size()) == ("dummy", rank, ranks)


def check_all_gather():
    ours = torch.full((3,), rank + 1.0)
    everyones = torch.full((ranks, 3, 2), -1.0)
    # The memory behind each output has other elements between those of the output.
    dist.all_gather(list(everyones[:, :, 0]), ours)
    assert not everyones[:, :, 0].any(), everyones
    assert (everyones[:, :, 1] == -1).all(), everyones
    assert (ours == rank + 1).all(), "the input stays as it was"


def check_wrong_number_of_outputs():
    for count in [1, ranks - 1, ranks + 1]:
        try:
            dist.all_gather([torch.ones(2) for _ in range(count)], torch.ones(2))
        except RuntimeError as error:
            assert f"one output tensor per rank ({ranks}), got {count}" in str(error)
        else:
            raise AssertionError(f"{count} outputs for {ranks} ranks were accepted")


def check_one_rank_alone():
    # No rank sends anything, so one of them may be alone in a collective.
    if rank == ranks - 1:
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [0.0, 0.0]


for _ in range(3):
    dist.init_process_group("dummy")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    check_names()
    check_all_gather()
    check_wrong_number_of_outputs()
    check_one_rank_alone()
    tensor = torch.tensor(rank + 1.0)
    dist.all_reduce(tensor)
    dist.destroy_process_group()

print(f"all_reduce: {rank + 1.0} became {tensor.item()}")
