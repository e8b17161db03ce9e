"""The results of every collective are those of plain PyTorch."""

import functools

import pytest
import tensors as t
import torch
import torch.distributed as dist
from ranks import error_of, run
from shm_collectives import Options
from torch.distributed import ReduceOp

SIZES = [2, 3, 8]

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


@pytest.fixture(params=SIZES, ids=lambda size: f"{size} ranks")
def size(request):
    return request.param


def every_reduction(size, check):
    """Call `check(inputs, expected, op, layout, tolerant)` for every type and operation.

    A few ranks reduce tensors of each size. Many ranks, which share the processors, take the next
    size for each type and operation.
    """
    pairs = [(dtype, op) for dtype in t.DTYPES for op in t.OPS if not t.is_refused(dtype, op)]
    for number, (dtype, op) in enumerate(pairs):
        for index, count in enumerate(t.COUNTS):
            if size > 3 and index != number % len(t.COUNTS):
                continue
            inputs = [t.data(other, count, dtype, index) for other in range(size)]
            layout = t.LAYOUTS[index % len(t.LAYOUTS)]
            # Products of many and quotients are not exact in narrow types.
            tolerant = op in (ReduceOp.PRODUCT, ReduceOp.AVG)
            check(inputs, t.reduced(inputs, op), op, layout, tolerant)


def all_reduce(rank, size):
    def check(inputs, expected, op, layout, tolerant):
        tensor = layout(inputs[rank])
        options = dist.AllreduceOptions()  # dist.all_reduce has views of complex tensors reduced
        options.reduceOp = op
        dist.group.WORLD.allreduce([tensor], options).wait()
        t.assert_same(tensor, expected, tolerant)

    every_reduction(size, check)


def reduce(rank, size):
    def check(inputs, expected, op, layout, tolerant):
        root = inputs[0].numel() % size
        tensor = layout(inputs[rank])
        options = dist.ReduceOptions()
        options.reduceOp = op
        options.rootRank = root
        dist.group.WORLD.reduce([tensor], options).wait()
        t.assert_same(tensor, expected if rank == root else inputs[rank], tolerant)

    every_reduction(size, check)


def reduce_scatter(rank, size):
    def check(inputs, expected, op, layout, tolerant):
        # Rank r sends to rank k its input rotated by k.
        pieces = [layout(inputs[rank].roll(other)) for other in range(size)]
        output = layout(torch.zeros_like(inputs[rank]))
        options = dist.ReduceScatterOptions()
        options.reduceOp = op
        dist.group.WORLD.reduce_scatter([output], [pieces], options).wait()
        t.assert_same(output, expected.roll(rank), tolerant)
        whole = layout(torch.cat([inputs[rank].roll(other) for other in range(size)]))
        output = layout(torch.zeros_like(inputs[rank]))
        dist.group.WORLD._get_backend(torch.device("cpu"))._reduce_scatter_base(
            output, whole, options
        ).wait()
        t.assert_same(output, expected.roll(rank), tolerant)

    every_reduction(size, check)


@pytest.mark.parametrize("reduction", [all_reduce, reduce, reduce_scatter])
def test_reductions(reduction, size):
    run(reduction, size, size)


def premul_sum(rank, size):
    for dtype in t.FLOATS + t.NARROW:
        for count in t.COUNTS:
            inputs = [t.data(other, count, dtype) for other in range(size)]
            doubled = [(value.to(torch.float64) * 2).to(dtype) for value in inputs]
            expected = t.reduced(doubled, ReduceOp.SUM)
            factor = torch.tensor([2.0]) if count % 2 else 2.0
            op = dist._make_nccl_premul_sum(factor)
            tensor = inputs[rank].clone()
            dist.all_reduce(tensor, op)
            t.assert_same(tensor, expected)
            tensor = inputs[rank].clone()
            dist.reduce(tensor, 0, op)
            t.assert_same(tensor, expected if rank == 0 else inputs[rank])
            output = torch.empty_like(tensor)
            dist.reduce_scatter(output, [inputs[rank].clone()] * size, op)
            t.assert_same(output, expected)


def test_premul_sum():
    run(premul_sum, 3, 3)


def refusals(rank, size):
    texts = []
    for dtype in t.DTYPES:
        for op in t.OPS:
            if t.is_refused(dtype, op):
                options = dist.AllreduceOptions()
                options.reduceOp = op
                tensor = torch.zeros(3).to(dtype)
                kind, text, _ = error_of(dist.group.WORLD.allreduce, [tensor], options)
                texts.append((op.name, kind, text))
    dist.barrier()  # the group is as good as before
    return texts


def test_what_cannot_be_reduced_is_refused_by_name():
    for texts in run(refusals, 2, 2):
        assert len(texts) == 8 * 3 + 9 + 3 * 5
        for op, kind, text in texts:
            assert kind == "ValueError"
            assert "Backend shm cannot reduce" in text and f"with {op}" in text


def sparse_as_it_is(rank):
    """Sum sparse tensors of a shape for which there is no memory, with zeros among the values."""
    indices = torch.tensor([[7, 10**12 - rank - 1, 7]])
    coo = functools.partial(torch.sparse_coo_tensor, check_invariants=True)
    tensor = coo(indices, torch.tensor([0.0, 1.0, 0.0]), (10**12,))
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert tensor.is_coalesced() and work.result()[0] is tensor
    t.assert_same(tensor.indices(), torch.tensor([[7, 10**12 - 2, 10**12 - 1]]))
    t.assert_same(tensor.values(), torch.tensor([0.0, 1.0, 1.0]))
    # More values than a slot has room for, and other numbers of them on each rank.
    count = 100_000 * (rank + 1)
    long = coo(torch.arange(count)[None], torch.ones(count), (300_000,))
    dist.all_reduce(long)
    t.assert_same(long.to_dense().int().bincount(), torch.tensor([100_000] * 3))
    other = coo(torch.tensor([[0]]), torch.ones(1), (5 + rank,))
    return error_of(dist.all_reduce, other)


def test_sparse_tensors_stay_sparse():
    for kind, text, _ in run(sparse_as_it_is, 2):
        assert kind == "DistBackendError"
        assert "20 bytes" in text and "24 bytes" in text


def sparse_beside(rank, *tensors):
    return error_of(dist.all_reduce, tensors[rank])


@pytest.mark.parametrize(
    ("tensor", "other"),
    [
        (torch.eye(4, 6).to_sparse(), torch.eye(4, 6)),
        (torch.tensor(5.0).to_sparse(), torch.tensor(5.0)),
        (torch.ones(1, 62).to_sparse(), torch.ones(2, 31).to_sparse()),
        (torch.ones(1024).to_sparse(), torch.ones(32, 32).to_sparse(1)),
        (torch.eye(4, 6).to_sparse(), torch.eye(4, 6).to_sparse(1)),
    ],
    ids=["dense", "no dimensions", "other sizes", "rows", "a dense dimension"],
)
def test_a_sparse_tensor_beside_another_kind_is_an_error_on_both_ranks(tensor, other):
    for kind, text, _ in run(sparse_beside, 2, tensor, other):
        assert kind == "DistBackendError"
        assert "the ranks do not agree" in text and "of a sparse tensor" in text


def uneven_reduce_scatter(rank, size):
    """Each rank has another share, and rank 1 none."""
    lengths = [0 if r == 1 else 3 * r + 100_000 for r in range(size)]
    inputs = [torch.full((length,), rank + 10.0 * r) for r, length in enumerate(lengths)]
    output = torch.empty(lengths[rank])
    dist.reduce_scatter(output, inputs)
    t.assert_same(output, torch.full_like(output, sum(r + 10.0 * rank for r in range(size))))
    refused = error_of(dist.reduce_scatter, torch.empty(lengths[rank] + 1), inputs)
    assert refused[0] == "ValueError" and "as large as the input of its rank" in refused[1]
    halves = [torch.ones(1), torch.ones(2)] if rank == 0 else [torch.ones(2), torch.ones(1)]
    own = [*halves, *[torch.ones(1)] * (size - 2)]
    return error_of(dist.reduce_scatter, torch.empty_like(own[rank]), own)


@pytest.mark.parametrize("size", [2, 3])
def test_shares_of_different_sizes_are_reduced(size):
    for kind, text, _ in run(uneven_reduce_scatter, size, size):
        assert kind == "DistBackendError"
        assert "the ranks do not agree" in text and "in different pieces" in text


def coalesced(rank, size):
    inputs = [[t.data(r, n, torch.float32, n) for r in range(size)] for n in (3, 9000, 1)]
    mine = [group[rank].clone() for group in inputs]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in mine:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor, group in zip(mine, inputs, strict=True):
        t.assert_same(tensor, t.reduced(group, ReduceOp.SUM))

    outputs = [torch.empty(size * len(group[0])) for group in inputs]
    with dist._coalescing_manager():
        for output, group in zip(outputs, inputs, strict=True):
            dist.all_gather_single(output, group[rank])
    for output, group in zip(outputs, inputs, strict=True):
        t.assert_same(output, torch.cat(group))

    outputs = [torch.empty_like(group[0]) for group in inputs]
    with dist._coalescing_manager():
        for output, group in zip(outputs, inputs, strict=True):
            dist.reduce_scatter_single(output, group[rank].repeat(size))
    for output, group in zip(outputs, inputs, strict=True):
        t.assert_same(output, t.reduced(group, ReduceOp.SUM))

    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    lists = [[torch.empty_like(group[0]) for group in inputs] for _ in range(size)]
    backend.allgather_coalesced(lists, [group[rank] for group in inputs]).wait()
    for other, outputs in enumerate(lists):
        for output, group in zip(outputs, inputs, strict=True):
            t.assert_same(output, group[other])


def test_coalesced(size):
    run(coalesced, size, size)


def rounded_once(rank, size):
    for dtype in (torch.bfloat16, torch.float16):
        # One more than this number is halfway to the next one, and rounds back to it.
        number = 2.0 / torch.finfo(dtype).eps
        for count in (1, 5000):
            tensor = torch.full((count,), number if rank == 0 else 1.0, dtype=dtype)
            dist.all_reduce(tensor)
            t.assert_same(tensor, torch.full((count,), number + size - 1, dtype=dtype))


def test_sums_of_narrow_types_are_rounded_once():
    run(rounded_once, 4, 4)


def large_and_small(rank, size):
    """Unsigned numbers whose first bit is set are larger than the others."""
    for dtype, signed in zip(t.UNSIGNED, t.SIGNED, strict=True):
        large, small = -1, 1  # -1 has all bits of the largest unsigned number
        for op, expected in ((ReduceOp.MAX, large), (ReduceOp.MIN, small)):
            number = large if rank == 0 else small
            tensor = torch.full((3,), number, dtype=signed).view(dtype)
            dist.all_reduce(tensor, op)
            assert tensor.view(signed).tolist() == [expected] * 3, (dtype, op)


def test_the_largest_unsigned_numbers():
    run(large_and_small, 2, 2)


def in_many_steps(rank, size):
    """Ranks that only write, or only read, get far ahead of the others."""
    for number in range(3):
        inputs = [torch.arange(1_000_000) + number + other for other in range(size)]
        tensor = inputs[rank].clone()
        dist.broadcast(tensor, 0)
        t.assert_same(tensor, inputs[0])
        outputs = [torch.zeros_like(tensor) for _ in inputs] if rank == 0 else None
        dist.gather(inputs[rank], outputs, 0)
        for output, expected in zip(outputs or [], inputs, strict=False):
            t.assert_same(output, expected)


@pytest.mark.parametrize("slot_bytes", [64 << 10, 1 << 20])
def test_operations_of_many_steps(slot_bytes):
    options = Options()
    options.slot_bytes = slot_bytes
    run(in_many_steps, 4, 4, options=options)


def views(rank, size):
    tensor = torch.complex(torch.ones(4), torch.full((4,), float(rank)))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    conjugates = [torch.zeros_like(tensor) for _ in range(size)]
    backend.allgather([conjugates], [tensor.conj()]).wait()
    for other, output in enumerate(conjugates):
        t.assert_same(output, torch.complex(torch.ones(4), torch.full((4,), -float(other))))
    backend.allreduce([tensor.conj()]).wait()  # writes to the tensor
    total = torch.full((4,), float(sum(range(size))))
    t.assert_same(tensor, torch.complex(torch.full((4,), float(size)), total))
    matrix = torch.arange(12.0).reshape(3, 4).t() + rank
    dist.all_reduce(matrix)
    t.assert_same(matrix, torch.arange(12.0).reshape(3, 4).t() * size + sum(range(size)))
    expanded = torch.full((1, 3), float(rank)).expand(4, 3)
    outputs = [torch.empty(4, 3) for _ in range(size)]
    dist.all_gather(outputs, expanded)  # overlapping inputs are as good as others
    for other, output in enumerate(outputs):
        t.assert_same(output, torch.full((4, 3), float(other)))
    own = torch.zeros(size * 5)
    own[rank * 5 : rank * 5 + 5] = rank
    dist.all_gather_single(own, own[rank * 5 : rank * 5 + 5])  # in place
    t.assert_same(own, torch.arange(size).repeat_interleave(5).float())


def test_views(size):
    run(views, size, size)


def coalesced_by_pytorch(rank):
    """With a device, PyTorch puts a call of all tensors between the start and the end."""
    tensors = [torch.full((3,), float(rank)), torch.ones(2)]
    with dist._coalescing_manager(device=torch.device("cpu")):
        for tensor in tensors:
            dist.all_reduce(tensor)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.all_reduce(tensors[0])
    manager.wait()
    return [tensor.tolist() for tensor in tensors]


def test_the_coalescing_manager_with_a_device():
    assert run(coalesced_by_pytorch, 2) == [[[2.0] * 3, [2.0] * 2]] * 2
