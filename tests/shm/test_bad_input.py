"""Calls that cannot work are refused at once, and the group goes on."""

import pytest
import torch
import torch.distributed as dist
from programs import numbers_at_the_limits
from ranks import error_of, run


def group():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def gather_on_another_rank():
    group().gather([[torch.ones(1)] * 2], [torch.ones(1)], _root(1 - dist.get_rank()))


def _root(rank):
    options = dist.GatherOptions()
    options.rootRank = rank
    return options


def _from(rank):
    options = dist.BroadcastOptions()
    options.rootRank = rank
    return options


def reduce(tensor, op):
    options = dist.AllreduceOptions()
    options.reduceOp = op
    group().allreduce([tensor], options)


def pieces_of_two_sizes():
    group().allgather([[torch.ones(1), torch.ones(2)]], [torch.ones(1)])


def pieces_of_two_types():
    group().allgather([[torch.ones(1), torch.ones(1, dtype=torch.int32)]], [torch.ones(1)])


def freed(step=1):
    tensor = torch.ones(1000)[::step]
    tensor.untyped_storage().resize_(4)
    return tensor


# The suite makes more such calls, and reads no texts.
BAD = {
    "meta": (lambda: group().allreduce([torch.ones(1, device="meta")]), "of the CPU, got one of m"),
    "sparse": (
        lambda: group().broadcast([torch.ones(2).to_sparse()], _from(0)),
        "takes dense tensors",
    ),
    "packed": (
        lambda: group().allreduce([torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)]),
        "cannot reduce dtype 45 with SUM",
    ),
    "average": (lambda: reduce(torch.ones(1).int(), dist.ReduceOp.AVG), "reduce int32 with AVG"),
    "bits": (lambda: reduce(torch.ones(1), dist.ReduceOp.BXOR), "reduce float32 with BXOR"),
    "order": (lambda: reduce(torch.ones(1) * 1j, dist.ReduceOp.MAX), "complex64 with MAX"),
    "two": (lambda: group().allreduce([torch.ones(1), torch.ones(1)]), "takes one tensor, got 2"),
    "destination": (lambda: group().send([torch.ones(1)], 2, 0), "destination 2 is not"),
    "source": (lambda: group().recv([torch.ones(1)], -1, 0), "source -1 is not"),
    "tag": (lambda: group().send([torch.ones(1)], 1, -3), "tag -3 is negative"),
    "freed": (lambda: group().allreduce([freed()]), "storage was resized to 4 bytes"),
    "freed columns": (lambda: group().allreduce([freed(step=2)]), "resized to 4 bytes, too few"),
    "expanded": (lambda: group().allreduce([torch.ones(1).expand(4)]), "overlap in memory"),
    "strided": (
        lambda: group().allreduce([torch.ones(9).as_strided((3, 3), (2, 1))]),
        "overlap in memory",
    ),
    "twice": (lambda: group().allgather([[x := torch.ones(1), x]], [torch.ones(1)]), "overlap"),
    "outputs": (gather_on_another_rank, "outputs on its root only"),
    "sizes": (pieces_of_two_sizes, "one size, got 8 and 4 bytes"),
    "types": (pieces_of_two_types, "one dtype, got float32 and int32"),
    "splits": (
        lambda: group().alltoall_base(torch.ones(2), torch.ones(2), [1, 1], [3, -1]),
        "pieces of [3, -1] rows",
    ),
}


def bad_calls(rank):
    answers = {}
    for name, (call, _) in BAD.items():
        try:
            answers[name] = error_of(call)
        except (AssertionError, TypeError) as error:
            answers[name] = "nothing", repr(error), 0
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert float(tensor) == 2
    return answers


@pytest.fixture(scope="module")
def answers():
    return run(bad_calls, 2)


@pytest.mark.parametrize("name", BAD)
def test_is_refused_where_it_is_called(answers, name):
    for answer in answers:
        kind, text, _ = answer[name]
        assert (kind, BAD[name][1] in text) == ("ValueError", True), text


def test_numbers_at_the_limits_of_their_types_are_refused():
    assert run(numbers_at_the_limits, 3) == [([], 3.0)] * 3


def sparse_beside_a_barrier(rank):
    if rank == 1:
        return error_of(dist.barrier)
    sizes = (2**62,)  # of as many floats as have 2**64 bytes
    return error_of(dist.all_reduce, torch.sparse_coo_tensor([[1]], torch.ones(1), sizes))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_sparse_tensor_of_more_bytes_than_can_be_counted():
    for _, text, _ in run(sparse_beside_a_barrier, 2):
        assert "rank 0 runs all_reduce #1 of 18446744073709551615 bytes" in text, text


def closed(rank):
    backend = group()
    dist.destroy_process_group()
    options = dist.AllreduceOptions()
    return error_of(backend.allreduce, [torch.ones(1)], options)


def test_a_group_that_was_destroyed():
    for kind, text, _ in run(closed, 2):
        assert kind == "DistBackendError"
        assert "cannot run all_reduce" in text and "was destroyed" in text


def on_one_rank(rank):
    answer = None
    if rank == 0:
        overlapping = torch.ones(1).expand(2)
        answer = error_of(group().allreduce_coalesced, [torch.ones(2), overlapping])
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    return answer, tensor.tolist()


def test_nothing_begins_before_all_coalesced_tensors_are_checked():
    answers, values = zip(*run(on_one_rank, 2), strict=True)
    assert answers[0][0] == "ValueError" and "elements overlap" in answers[0][1]
    assert values == ([2, 2, 2],) * 2
