"""The values of the suite in conformance/, and those that only `shm` promises."""

import functools
import os
import subprocess
import sys
from itertools import product

import pytest
import torch
import torch.distributed as dist
from c10d_conformance import inputs
from c10d_conformance.inputs import compare, reduction, values
from ranks import error_of, in_ranks, run
from torch.distributed import ReduceOp

from tools.project.paths import INSTALLED_EXTENSIONS, SUITE

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


def test_the_suite_finds_no_wrong_value():
    """With two ranks: all checks of all backends take too long for each change."""
    suite = [sys.executable, "-m", "c10d_conformance", "--backend", "shm"]
    done = subprocess.run(
        [*suite, "--import", "shm_collectives", "--ranks", "2", "-k", "values"],
        env={**os.environ, "PYTHONPATH": f"{SUITE}{os.pathsep}{INSTALLED_EXTENSIONS}"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The suite reduces all other types.
OTHER_TYPES = [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.complex32]


def backend():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def in_a_wide_type(tensor):
    return tensor.to(torch.complex64 if tensor.is_complex() else torch.float64)


def reduce_other_types(rank, size):
    """Reduce by a call of the backend: dist.all_reduce has views of complex tensors reduced."""
    cases = [(x, op) for x in OTHER_TYPES for op in inputs.OPS if not inputs.is_meaningless(x, op)]
    for dtype, op in [*cases, (torch.complex128, ReduceOp.PRODUCT)]:
        # The product of numbers as a sum has them is exact, too, but for the largest one.
        alike = ReduceOp.AVG if dtype.is_complex else op
        contents = [values(r, (4097,), dtype, op=alike) for r in range(size)]
        tensor, of_root = contents[rank].clone(), contents[rank].clone()
        options, to_root = dist.AllreduceOptions(), dist.ReduceOptions()
        options.reduceOp = to_root.reduceOp = op
        dist.group.WORLD.allreduce([tensor], options).wait()
        dist.group.WORLD.reduce([of_root], to_root).wait()
        expected = in_a_wide_type(reduction(contents, op))
        tolerance = 4 * torch.finfo(dtype).eps if op == ReduceOp.AVG else None
        compare(in_a_wide_type(tensor), expected, f"{dtype} {op}", tolerance)
        # Reduce leaves the tensors of the other ranks as they are.
        expected = expected if rank == 0 else in_a_wide_type(contents[rank])
        compare(in_a_wide_type(of_root), expected, f"reduce of {dtype} {op}", tolerance)


@pytest.mark.parametrize("size", [3, 8])
def test_reductions_of_other_types(size):
    run(reduce_other_types, size, size)


@in_ranks(2)
def test_an_input_may_lie_in_the_outputs_of_an_all_gather(rank):
    """Also beside its place, by less and by more than a slot, and larger than one."""
    for count, shift in product((10, 300_000), (-1, 0, 1, 70_000)):
        memory = torch.zeros(2, count + 70_001)
        outputs = [x[1 + shift : count + 1 + shift] for x in memory]
        given = values(rank, (count,), torch.float32)
        tensor = memory[rank][1 : count + 1].copy_(given)
        dist.all_gather(outputs, tensor)
        compare(outputs[rank], given)
        compare(outputs[1 - rank], values(1 - rank, (count,), torch.float32))


@in_ranks(2)
def test_an_output_may_lie_across_the_inputs(rank):
    for count in (1000, 300_000):
        given = values(rank, (2 * count,), torch.float32)
        of_both = [values(r, (2 * count,), torch.float32).chunk(2) for r in range(2)]
        memory = given.clone()
        output = memory[count // 2 :][:count]
        dist.reduce_scatter(output, list(memory.chunk(2)))
        compare(output, of_both[0][rank] + of_both[1][rank])
        memory = given.clone()
        output = memory[count // 2 :][:count]
        dist.scatter(output, list(memory.chunk(2)) if rank == 0 else None)
        compare(output, of_both[0][rank])


@in_ranks(3)
def test_premul_sum(rank):
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn):
        contents = [values(r, (63,), dtype) for r in range(3)]
        doubled = [(content.double() * 2).to(dtype) for content in contents]
        expected = reduction(doubled, ReduceOp.SUM)
        op = dist._make_nccl_premul_sum(torch.tensor([2.0]))  # The suite passes a number.
        tensor, output = contents[rank].clone(), torch.empty_like(expected)
        dist.reduce(tensor, 0, op)
        compare(tensor, expected if rank == 0 else contents[rank])
        dist.reduce_scatter(output, [contents[rank].clone()] * 3, op)
        compare(output, expected)


def sparse_as_it_is(rank):
    """Sum sparse tensors of a shape for which there is no memory, with zeros among the values."""
    indices = torch.tensor([[7, 10**12 - rank - 1, 7]])
    coo = functools.partial(torch.sparse_coo_tensor, check_invariants=True)
    tensor = coo(indices, torch.tensor([0.0, 1.0, 0.0]), (10**12,))
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert tensor.is_coalesced() and work.result()[0] is tensor
    compare(tensor.indices(), torch.tensor([[7, 10**12 - 2, 10**12 - 1]]))
    compare(tensor.values(), torch.tensor([0.0, 1.0, 1.0]))
    few = coo(torch.tensor([[rank]]), torch.ones(1), (9,))  # could be summed at once if dense
    dist.all_reduce(few)
    compare(few.to_dense(), torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0, 0]))
    # More values than a slot has room for, and other numbers of them on each rank.
    count = 100_000 * (rank + 1)
    long = coo(torch.arange(count)[None], torch.ones(count), (300_000,))
    dist.all_reduce(long)
    compare(long.to_dense().int().bincount(), torch.tensor([100_000] * 3))
    other = coo(torch.tensor([[0]]), torch.ones(1), (5 + rank,))
    return error_of(dist.all_reduce, other)


def test_sparse_tensors_stay_sparse():
    for kind, text, _ in run(sparse_as_it_is, 2):
        assert kind == "DistBackendError"
        assert "20 bytes" in text and "24 bytes" in text


SPARSE_BESIDE = {
    "dense": (torch.eye(4, 6).to_sparse(), torch.eye(4, 6)),
    "no dimensions": (torch.tensor(5.0).to_sparse(), torch.tensor(5.0)),
    "other sizes": (torch.ones(1, 62).to_sparse(), torch.ones(2, 31).to_sparse()),
    "rows": (torch.ones(1024).to_sparse(), torch.ones(32, 32).to_sparse(1)),
    "a dense dimension": (torch.eye(4, 6).to_sparse(), torch.eye(4, 6).to_sparse(1)),
}


def sparse_beside(rank):
    """Return the error of each pair of tensors, each in a group, because the group fails."""
    errors = {}
    for name, tensors in SPARSE_BESIDE.items():
        errors[name] = error_of(dist.all_reduce, tensors[rank], group=dist.new_group())
    return errors


def test_a_sparse_tensor_beside_another_kind_is_an_error_on_both_ranks():
    for errors in run(sparse_beside, 2):
        for name, (kind, text, _) in errors.items():
            assert kind == "DistBackendError", name
            assert "the ranks do not agree" in text and "of a sparse tensor" in text, name


@in_ranks(3)
def test_shares_of_different_sizes_are_reduced(rank):
    """Each rank has another share, and rank 1 none."""
    lengths = [0 if r == 1 else 3 * r + 100_000 for r in range(3)]
    shares = [torch.full((length,), rank + 10.0 * r) for r, length in enumerate(lengths)]
    output = torch.empty(lengths[rank])
    dist.reduce_scatter(output, shares)
    compare(output, torch.full_like(output, sum(r + 10.0 * rank for r in range(3))))
    refused = error_of(dist.reduce_scatter, torch.empty(lengths[rank] + 1), shares)
    assert refused[0] == "ValueError" and "as large as the input of its rank" in refused[1]


@in_ranks(4)
def test_sums_of_narrow_types_are_rounded_once(rank):
    for dtype in (torch.bfloat16, torch.float16):
        # One more than this number is halfway to the next one, and rounds back to it.
        number = 2.0 / torch.finfo(dtype).eps
        for count in (1, 5000):
            tensor = torch.full((count,), number if rank == 0 else 1.0, dtype=dtype)
            dist.all_reduce(tensor)
            compare(tensor, torch.full((count,), number + 3, dtype=dtype))


@in_ranks(2)
def test_the_largest_unsigned_numbers(rank):
    """Reduce uint64, of which the suite has only small ones."""
    number = -1 if rank == 0 else 1  # -1 has all bits of the largest unsigned number
    for op, expected in ((ReduceOp.MAX, -1), (ReduceOp.MIN, 1)):
        tensor = torch.tensor([number]).view(torch.uint64)
        dist.all_reduce(tensor, op)
        assert tensor.view(torch.int64).item() == expected


@in_ranks(3)
def test_conjugates(rank):
    """Pass conjugates to the backend: PyTorch's dispatcher may resolve them before."""
    tensor = torch.complex(torch.ones(4), torch.full((4,), float(rank)))
    outputs = [torch.zeros_like(tensor) for _ in range(3)]
    backend().allgather([outputs], [tensor.conj()]).wait()
    for other, output in enumerate(outputs):
        compare(output, torch.complex(torch.ones(4), torch.full((4,), -float(other))))
    backend().allreduce([tensor.conj()]).wait()  # writes to the tensor
    compare(tensor, torch.full((4,), complex(3, 0 + 1 + 2)))


@in_ranks(3)
def test_all_gather_coalesced(rank):
    contents = [[values(r, (n,), torch.float32, n) for r in range(3)] for n in (3, 9000, 1)]
    lists = [[torch.empty_like(group[0]) for group in contents] for _ in range(3)]
    backend().allgather_coalesced(lists, [group[rank] for group in contents]).wait()
    for other, outputs in enumerate(lists):
        for output, group in zip(outputs, contents, strict=True):
            compare(output, group[other])


@in_ranks(2)
def test_the_coalescing_manager_with_a_device(rank):
    """With a device, PyTorch puts a call of all tensors between the start and the end."""
    tensors = [torch.full((3,), float(rank)), torch.ones(2)]
    with dist._coalescing_manager(device=torch.device("cpu")):
        for tensor in tensors:
            dist.all_reduce(tensor)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.all_reduce(tensors[0])
    manager.wait()
    assert [tensor.tolist() for tensor in tensors] == [[2.0] * 3, [2.0] * 2]


@in_ranks(2)
def test_a_call_that_is_refused_ends_its_batch(rank):
    """PyTorch's coalescing manager does not end a batch in which a call raises an error."""
    overlapping, right = torch.ones(1).expand(3), torch.ones(3)
    with pytest.raises(ValueError, match="elements overlap in memory"):
        with dist._coalescing_manager(device=torch.device("cpu")):
            for output in (torch.ones(3), overlapping, torch.ones(3)):
                dist.all_gather([output, right], torch.ones(3))
    dist.all_reduce(tensor := torch.ones(3))
    assert tensor.tolist() == [2.0] * 3


@in_ranks(3)
def test_all_to_all_in_place_with_other_splits(rank):
    """The ranks send rows to places from which they have not sent yet."""
    sizes = [[1, 2, 1], [1, 1, 2], [2, 1, 1]]  # sizes[sender][receiver]
    tensor = torch.arange(4.0) + 10 * rank
    expected = []
    for sender, rows in enumerate(sizes):
        start = 10 * sender + sum(rows[:rank])
        expected += range(start, start + rows[rank])
    dist.all_to_all_single(tensor, tensor, [rows[rank] for rows in sizes], sizes[rank])
    assert tensor.tolist() == expected


@in_ranks(3)
def test_all_to_all_with_split_sizes_on_some_ranks(rank):
    """Give none on rank 0, those of equal pieces on rank 1, and others on rank 2."""
    splits = [None, [1, 1, 1], [1, 1, 3]][rank]
    rows = torch.full((sum(splits or [1] * 3),), float(rank))
    output = torch.empty_like(rows)
    dist.all_to_all_single(output, rows, splits, splits)
    assert output.tolist() == [0.0, 1.0] + [2.0] * (3 if rank == 2 else 1)
