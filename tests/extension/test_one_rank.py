"""The backend in a process group of one rank, in this process."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

CPU = torch.device("cpu")
DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8),
    *(torch.int32, torch.int64, torch.bool, torch.complex64),
]


@contextmanager
def one_rank(backend="dummy"):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


@pytest.fixture
def group():
    with one_rank() as group:
        yield group


@pytest.fixture
def backend(group):
    """The backend itself, below the process group."""
    return group._get_backend(CPU)


def addresses(tensors):
    return [tensor.data_ptr() for tensor in tensors]


def all_reduce(tensor, async_op=False):
    return dist.all_reduce(tensor, async_op=async_op)


def all_gather(tensor, async_op=False):
    """Gather something else into ``tensor``."""
    return dist.all_gather([tensor], torch.ones_like(tensor), async_op=async_op)


both = pytest.mark.parametrize("collective", [all_reduce, all_gather])


@both
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_outputs_are_zero(group, collective, dtype):
    tensor = torch.ones(5, dtype=dtype)
    collective(tensor)
    assert torch.equal(tensor, torch.zeros(5, dtype=dtype))


VIEWS = {
    "transposed": lambda base: base.t()[1:3],
    "strided": lambda base: base[::3, ::2],
    "empty": lambda base: base[:0],
    "no dimensions": lambda base: base[1, 2],
}


@both
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_only_the_elements_of_a_view_change(group, collective, view):
    base = torch.full((4, 7), float("nan"))
    expected = base.clone()
    view(expected).zero_()
    collective(view(base))
    torch.testing.assert_close(base, expected, equal_nan=True)


@both
def test_tensors_that_autograd_restricts(group, collective):
    leaf = torch.ones(2, requires_grad=True)
    collective(leaf)
    assert leaf.tolist() == [0.0, 0.0]
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad is None
    with torch.inference_mode():
        tensor = torch.ones(2)
        collective(tensor)
        assert tensor.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("count", [0, 2])
def test_all_gather_needs_one_output_per_rank(group, count):
    outputs = [torch.ones(2) for _ in range(count)]
    message = rf"Backend dummy: allgather needs one output .* \(1\), got {count}"
    with pytest.raises(RuntimeError, match=message):
        dist.all_gather(outputs, torch.ones(2))
    assert all(output.tolist() == [1.0, 1.0] for output in outputs)


def test_lists_that_only_cpp_can_pass(backend):
    one = torch.ones(2)
    for lists, inputs in [([[one], [one]], [one, one]), ([[one]], []), ([], [one])]:
        with pytest.raises(RuntimeError, match="allgather takes one input tensor"):
            backend.allgather(lists, inputs)
    assert one.tolist() == [1.0, 1.0]
    tensors = [torch.ones(1), torch.ones(2, dtype=torch.int64)]
    assert backend.allreduce(tensors).wait()
    assert [tensor.tolist() for tensor in tensors] == [[0.0], [0, 0]]


@pytest.mark.parametrize("collective, op_type", [(all_reduce, 1), (all_gather, 4)])
def test_a_work_is_complete_and_its_future_has_the_outputs(group, collective, op_type):
    output = torch.ones(3)
    work = collective(output, async_op=True)
    assert work.is_completed() and work.is_success()
    assert work.wait() is True and work.wait(timedelta(seconds=1)) is True
    assert work._get_op_type() == op_type  # of enum c10d::OpType, which Python does not have
    future = work.get_future()
    assert future.done() and addresses(future.wait()) == addresses([output])
    total = future.then(lambda finished: finished.value()[0].add(2).sum())
    assert total.wait().item() == 6.0


def test_a_work_of_complex_tensors_outlives_its_group():
    tensor = torch.ones(2, dtype=torch.complex64)  # PyTorch passes a view with real numbers.
    with one_rank():
        work = dist.all_reduce(tensor, async_op=True)
    assert work.is_completed() and work.wait() is True
    assert addresses(work.get_future().value()) == addresses([tensor])


def assert_shut_down(backend):
    one = torch.ones(2)
    message = "^Backend dummy was shut down and cannot run "
    with pytest.raises(RuntimeError, match=message + "allreduce"):
        backend.allreduce(one)
    with pytest.raises(RuntimeError, match=message + "allgather"):
        backend.allgather([[one]], [one])
    assert one.tolist() == [1.0, 1.0]


def test_a_new_group_does_not_revive_the_backends_of_former_ones():
    backends = []
    for _ in range(3):
        with one_rank() as group:
            for backend in backends:
                assert_shut_down(backend)
            backends.append(group._get_backend(CPU))


@pytest.mark.parametrize("method", ["shutdown", "abort"])
def test_shutdown_and_abort(group, backend, method):
    for target in (backend, backend, group):  # Once more is no error.
        getattr(target, method)()
        assert_shut_down(backend)
    with pytest.raises(RuntimeError, match="was shut down"):
        dist.all_reduce(torch.ones(1))


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@needs_cuda
@both
def test_cuda(group, collective):
    assert group._get_backend(torch.device("cuda")).name() == "dummy"
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        output = torch.ones(1_000_000, device="cuda")
        work = collective(output, async_op=True)
        work.wait()
    torch.cuda.current_stream().wait_stream(stream)
    assert output.is_cuda and not output.any()
    assert addresses(work.get_future().wait()) == addresses([output])
    assert work.get_future().then(lambda f: f.value()[0].sum()).wait().item() == 0.0
