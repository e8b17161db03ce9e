"""Worker: both collectives on any number of ranks, in three groups in succession."""

import os

import dummy_collectives  # noqa: F401  (registers "dummy")
import torch
import torch.distributed as dist


def check_names():
    assert dist.get_backend() == "dummy"
    assert rank == int(os.environ["RANK"])
    assert ranks == int(os.environ["WORLD_SIZE"])
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert (backend.name(), backend.rank(), backend.size()) == ("dummy", rank, ranks)


def check_all_reduce():
    for op in [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX]:
        tensor = torch.full((3, 2), rank + 1.0)
        dist.all_reduce(tensor, op=op)
        assert not tensor.any(), tensor


def check_all_gather():
    ours = torch.full((3,), rank + 1.0)
    everyones = torch.full((ranks, 3, 2), -1.0)
    # Every second element of the memory behind each output is somebody else's.
    dist.all_gather(list(everyones[:, :, 0]), ours)
    assert not everyones[:, :, 0].any(), everyones
    assert (everyones[:, :, 1] == -1).all(), everyones
    assert (ours == rank + 1).all(), "the input stays as it was"


def check_wrong_number_of_outputs():
    for count in [1, ranks - 1, ranks + 1]:
        outputs = [torch.ones(2) for _ in range(count)]
        try:
            dist.all_gather(outputs, torch.ones(2))
        except RuntimeError as error:
            assert f"one output tensor per rank ({ranks}), got {count}" in str(error)
        else:
            raise AssertionError(f"{count} outputs for {ranks} ranks were accepted")
        assert all(output.tolist() == [1.0, 1.0] for output in outputs)


def check_several_at_once():
    reduced = [torch.full((4,), rank + 1.0) for _ in range(3)]
    gathered = [torch.ones(2) for _ in range(ranks)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in reduced]
    works.append(dist.all_gather(gathered, torch.ones(2), async_op=True))
    assert all(work.wait() and work.is_completed() for work in reversed(works))
    assert not any(tensor.any() for tensor in reduced + gathered)
    value = works[-1].get_future().wait()
    assert [t.data_ptr() for t in value] == [t.data_ptr() for t in gathered]


def check_missing_operations():
    one, many = torch.ones(2), torch.ones(2 * ranks)
    renamed = torch.__version__ >= (2, 14)
    calls = {
        "broadcast": lambda: dist.broadcast(one, src=0),
        "all_gather_single" if renamed else "_allgather_base": (
            lambda: dist.all_gather_single(many, one)
        ),
        "send": lambda: dist.send(one, dst=(rank + 1) % ranks),
        "recv": lambda: dist.recv(one, src=(rank + 1) % ranks),
        "barrier": lambda: dist.barrier(),
    }
    for operation, call in calls.items():
        try:
            call()
        except RuntimeError as error:
            assert str(error) == f"Backend dummy does not support {operation}"
        else:
            raise AssertionError(f"{operation} did not fail")
    assert (one == 1).all() and (many == 1).all()


def check_that_nobody_waits():
    # No rank sends anything, so one of them may be alone in a collective.
    if rank == ranks - 1:
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [0.0, 0.0]


for _ in range(3):
    dist.init_process_group("dummy")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    check_names()
    check_all_reduce()
    check_all_gather()
    check_wrong_number_of_outputs()
    check_several_at_once()
    check_missing_operations()
    check_that_nobody_waits()

    before = torch.tensor(rank + 1.0)
    after = before.clone()
    dist.all_reduce(after)
    outputs = [torch.tensor(-1.0) for _ in range(ranks)]
    dist.all_gather(outputs, before)
    dist.destroy_process_group()

print(f"all_reduce: {before.item()} became {after.item()}")
print(f"all_gather: {[output.item() for output in outputs]}")
print("3 groups, one after the other")
