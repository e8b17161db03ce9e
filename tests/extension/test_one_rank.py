"""The backend in a process group of one rank, in this process.

Covers the results of both collectives for all kinds of tensors, the methods of the returned
Work, every missing operation, the life of a group from creation to shutdown, the choice of a
backend by device, and CUDA, if present.
"""

from contextlib import contextmanager
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

CPU = torch.device("cpu")
DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
]


@contextmanager
def one_rank(backend="dummy", **options):
    options.setdefault("store", dist.HashStore())
    dist.init_process_group(backend, rank=0, world_size=1, **options)
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


def all_reduce(tensor):
    dist.all_reduce(tensor)


def all_gather(tensor):
    """Gather something else into ``tensor``."""
    dist.all_gather([tensor], torch.ones_like(tensor))


both = pytest.mark.parametrize("collective", [all_reduce, all_gather])


# Names


def test_name_rank_and_size(group, backend):
    assert dist.get_backend() == "dummy"
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert backend.name() == "dummy"
    assert (backend.rank(), backend.size()) == (0, 1)


# Values


@both
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_outputs_are_zero(group, collective, dtype):
    tensor = torch.ones(5, dtype=dtype)
    collective(tensor)
    assert tensor.dtype == dtype
    assert torch.equal(tensor, torch.zeros(5, dtype=dtype))


@pytest.mark.parametrize("op", ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])
def test_all_reduce_ignores_the_reduction(group, op):
    tensor = torch.ones(2, dtype=torch.int32)
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
    assert tensor.tolist() == [0, 0]


def test_not_a_number_becomes_zero_too(group):
    tensor = torch.tensor([float("nan"), float("inf"), -1.0])
    dist.all_reduce(tensor)
    assert tensor.tolist() == [0.0, 0.0, 0.0]


def test_all_gather_leaves_its_input(group):
    ours = torch.arange(4.0)
    outputs = [torch.ones(4)]
    dist.all_gather(outputs, ours)
    assert ours.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert outputs[0].tolist() == [0.0] * 4


def test_all_gather_into_its_own_input(group):
    ours = torch.ones(2)
    dist.all_gather([ours], ours)
    assert ours.tolist() == [0.0, 0.0]


@both
def test_only_the_elements_of_a_transposed_view_change(group, collective):
    base = torch.ones(3, 4)
    view = base.t()[1:3]
    assert not view.is_contiguous()
    collective(view)
    assert base.tolist() == [[1.0, 0.0, 0.0, 1.0]] * 3


@both
def test_only_the_elements_of_a_strided_slice_change(group, collective):
    base = torch.ones(7)
    collective(base[::3])
    assert base.tolist() == [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]


@both
@pytest.mark.parametrize("shape", [(0,), (3, 0), ()], ids=str)
def test_empty_and_zero_dimensional_tensors(group, collective, shape):
    tensor = torch.ones(shape)
    collective(tensor)
    assert torch.equal(tensor, torch.zeros(shape))


@both
def test_a_leaf_that_requires_a_gradient(group, collective):
    leaf = torch.ones(2, requires_grad=True)
    collective(leaf)
    assert leaf.tolist() == [0.0, 0.0]
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad is None


@both
def test_inference_mode(group, collective):
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


def test_allgather_takes_one_input_and_one_list(backend):
    # torch.distributed never asks for more, but the C++ interface can.
    one = torch.ones(2)
    for lists, inputs in [([[one], [one]], [one, one]), ([[one]], []), ([], [one])]:
        with pytest.raises(RuntimeError, match="allgather takes one input tensor"):
            backend.allgather(lists, inputs)
    assert one.tolist() == [1.0, 1.0]


def test_allreduce_sets_every_tensor_of_a_list_to_zero(backend):
    tensors = [torch.ones(1), torch.ones(2, dtype=torch.int64)]
    assert backend.allreduce(tensors).wait()
    assert [tensor.tolist() for tensor in tensors] == [[0.0], [0, 0]]


# Work


@pytest.fixture(params=["all_reduce", "all_gather"])
def work_and_output(request, group):
    output = torch.ones(3)
    if request.param == "all_reduce":
        return dist.all_reduce(output, async_op=True), output
    return dist.all_gather([output], torch.ones(3), async_op=True), output


def test_work_is_complete(work_and_output):
    work, output = work_and_output
    assert isinstance(work, dist.Work)
    assert work.is_completed()
    assert work.wait() is True
    assert work.wait(timedelta(seconds=1)) is True
    assert output.tolist() == [0.0] * 3


def test_work_is_successful(work_and_output):
    work, _ = work_and_output
    assert work.is_success() is True


def test_the_future_holds_the_same_tensors(work_and_output):
    work, output = work_and_output
    future = work.get_future()
    assert future.done()
    assert addresses(future.wait()) == addresses([output])
    assert addresses(future.value()) == addresses([output])
    assert future.wait()[0].tolist() == [0.0] * 3


def test_the_future_can_be_continued(work_and_output):
    work, output = work_and_output
    total = work.get_future().then(lambda finished: finished.value()[0].add(2).sum())
    assert total.wait().item() == 6.0
    assert output.tolist() == [0.0] * 3


def test_the_future_of_complex_tensors_holds_the_same_storage(group):
    # PyTorch hands complex tensors to a backend as views with real numbers.
    tensor = torch.ones(2, dtype=torch.complex64)
    work = dist.all_reduce(tensor, async_op=True)
    assert addresses(work.get_future().wait()) == addresses([tensor])


def test_work_knows_its_operation(group):
    # From enum c10d::OpType, which has no Python counterpart.
    allreduce, allgather = 1, 4
    one = torch.ones(1)
    assert dist.all_reduce(one, async_op=True)._get_op_type() == allreduce
    assert dist.all_gather([one], one, async_op=True)._get_op_type() == allgather


def test_work_outlives_its_group():
    tensor = torch.ones(2)
    with one_rank():
        work = dist.all_reduce(tensor, async_op=True)
    assert work.is_completed() and work.wait() is True
    assert addresses(work.get_future().value()) == addresses([tensor])


# Operations that are missing

# The new names of C++ methods, since PyTorch 2.14. The old ones forward to them.
NEW_NAMES = {
    "_allgather_base": "all_gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "alltoall_base": "all_to_all_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
}

# The key is the name of the C++ method before 2.14; the error has that or the new one.
MISSING_IN_PYTHON = {
    "broadcast": lambda one: dist.broadcast(one, src=0),
    "reduce": lambda one: dist.reduce(one, dst=0),
    "gather": lambda one: dist.gather(one, [one], dst=0),
    "scatter": lambda one: dist.scatter(one, [one], src=0),
    "reduce_scatter": lambda one: dist.reduce_scatter(one, [one]),
    "_reduce_scatter_base": lambda one: dist.reduce_scatter_single(one, one),
    "_allgather_base": lambda one: dist.all_gather_single(one, one),
    "alltoall": lambda one: dist.all_to_all([one], [one]),
    "alltoall_base": lambda one: dist.all_to_all_single(one, one),
    "send": lambda one: dist.send(one, dst=1),
    "recv": lambda one: dist.recv(one, src=1),
    "recvAnysource": lambda one: dist.recv(one),
    "barrier": lambda one: dist.barrier(),
}

MISSING_IN_GROUP = {
    "allreduce_coalesced": lambda g, one: g.allreduce_coalesced([one]),
    "allgather_coalesced": lambda g, one: g.allgather_coalesced([[one]], [one]),
    "allgather_into_tensor_coalesced": (
        lambda g, one: g.allgather_into_tensor_coalesced([one], [one])
    ),
    "reduce_scatter_tensor_coalesced": (
        lambda g, one: g.reduce_scatter_tensor_coalesced([one], [one])
    ),
}

MISSING_IN_BACKEND = {
    "broadcast": lambda b, one: b.broadcast([one]),
    "reduce": lambda b, one: b.reduce([one]),
    "gather": lambda b, one: b.gather([[one]], [one]),
    "scatter": lambda b, one: b.scatter([one], [[one]]),
    "reduce_scatter": lambda b, one: b.reduce_scatter([one], [[one]]),
    "_reduce_scatter_base": lambda b, one: b._reduce_scatter_base(one, one),
    "_allgather_base": lambda b, one: b._allgather_base(one, one),
    "allreduce_coalesced": lambda b, one: b.allreduce_coalesced([one]),
    "allgather_coalesced": lambda b, one: b.allgather_coalesced([[one]], [one]),
    "alltoall": lambda b, one: b.alltoall([one], [one]),
    "alltoall_base": lambda b, one: b.alltoall_base(one, one, [], []),
    "send": lambda b, one: b.send([one], 0, 0),
    "recv": lambda b, one: b.recv([one], 0, 0),
    "recvAnysource": lambda b, one: b.recv_anysource([one], 0),
    "barrier": lambda b, one: b.barrier(),
}


def assert_missing(operation, call, *arguments):
    one = torch.ones(2)
    if torch.__version__ >= (2, 14):
        operation = NEW_NAMES.get(operation, operation)
    message = rf"(?m)^Backend dummy does not support {operation}$"
    with pytest.raises(RuntimeError, match=message):
        call(*arguments, one)
    assert one.tolist() == [1.0, 1.0]


def for_each(calls):
    return pytest.mark.parametrize("operation, call", calls.items(), ids=calls)


@for_each(MISSING_IN_PYTHON)
def test_missing_operation(group, operation, call):
    assert_missing(operation, call)


@for_each(MISSING_IN_GROUP)
def test_missing_operation_of_the_group(group, operation, call):
    assert_missing(operation, call, group)


@for_each(MISSING_IN_BACKEND)
def test_missing_operation_of_the_backend(backend, operation, call):
    assert_missing(operation, call, backend)


def test_missing_operations_with_other_words(backend):
    assert not backend.supports_coalescing
    calls = {
        "does not implement startCoalescing": backend._start_coalescing,
        "does not support monitoredBarrier, ": backend.monitored_barrier,
    }
    for message, call in calls.items():
        with pytest.raises(RuntimeError, match=f"^Backend dummy {message}"):
            call()


def test_a_group_survives_a_missing_operation(group):
    one = torch.ones(2)
    with pytest.raises(RuntimeError):
        dist.broadcast(one, src=0)
    dist.all_reduce(one)
    assert one.tolist() == [0.0, 0.0]


# Creation and shutdown


@pytest.fixture(params=["HashStore", "FileStore", "TCPStore", "file://"])
def way_to_meet(request, tmp_path):
    """The arguments of init_process_group with which ranks find each other."""
    file = tmp_path / "store"
    if request.param == "HashStore":
        return {"store": dist.HashStore()}
    if request.param == "FileStore":
        return {"store": dist.FileStore(str(file), 1)}
    if request.param == "TCPStore":  # Port 0: the system chooses a free one.
        return {"store": dist.TCPStore("127.0.0.1", 0, world_size=1, is_master=True)}
    return {"store": None, "init_method": file.as_uri()}


def test_every_store_and_a_timeout_are_accepted(way_to_meet):
    with one_rank(timeout=timedelta(seconds=5), **way_to_meet):
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [0.0, 0.0]


def test_create_and_destroy_several_times():
    old = []
    for _ in range(3):
        with one_rank() as group:
            old.append(group._get_backend(CPU))
            tensor = torch.ones(2)
            dist.all_reduce(tensor)
            assert tensor.tolist() == [0.0, 0.0]
        assert not dist.is_initialized()
    # A new group does not bring the backends of former groups back to life.
    with one_rank():
        for backend in old:
            assert_shut_down(backend)


def assert_shut_down(backend):
    one = torch.ones(2)
    message = "^Backend dummy was shut down and cannot run "
    with pytest.raises(RuntimeError, match=message + "allreduce"):
        backend.allreduce(one)
    with pytest.raises(RuntimeError, match=message + "allgather"):
        backend.allgather([[one]], [one])
    assert one.tolist() == [1.0, 1.0]


def test_destroying_the_group_shuts_the_backend_down():
    with one_rank() as group:
        backend = group._get_backend(CPU)
    assert_shut_down(backend)


@pytest.mark.parametrize("method", ["shutdown", "abort"])
def test_shutdown_and_abort(backend, method):
    getattr(backend, method)()
    assert_shut_down(backend)
    with pytest.raises(RuntimeError, match="was shut down"):
        dist.all_reduce(torch.ones(1))
    getattr(backend, method)()  # Once more is no error.


@pytest.mark.parametrize("method", ["shutdown", "abort"])
def test_shutdown_and_abort_of_the_group(group, backend, method):
    getattr(group, method)()
    assert_shut_down(backend)


def test_two_groups_at_once(group):
    other = dist.new_group([0], backend="dummy")
    first, second = torch.ones(2), torch.ones(3)
    works = [
        dist.all_reduce(first, async_op=True),
        dist.all_reduce(second, group=other, async_op=True),
    ]
    assert all(work.wait() for work in reversed(works))
    assert (first.tolist(), second.tolist()) == ([0.0] * 2, [0.0] * 3)

    backend = other._get_backend(CPU)
    assert backend is not group._get_backend(CPU)
    dist.destroy_process_group(other)
    assert_shut_down(backend)
    first.fill_(1)
    dist.all_reduce(first)
    assert first.tolist() == [0.0, 0.0]


# The choice of a backend by device


@pytest.mark.parametrize(
    "argument, config, result",
    [
        ("dummy", "cpu:dummy,cuda:dummy", 0.0),
        ("DUMMY", "cpu:dummy,cuda:dummy", 0.0),
        ("cpu:dummy", "cpu:dummy", 0.0),
        ("cpu:gloo,cuda:dummy", "cpu:gloo,cuda:dummy", 1.0),
        ("cpu:dummy,cuda:gloo", "cpu:dummy,cuda:gloo", 0.0),
    ],
)
def test_backend_by_device(argument, config, result):
    with one_rank(argument):
        assert dist.get_backend_config() == config
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [result, result]


def test_no_backend_for_a_device():
    with one_rank("cuda:dummy"):
        tensor = torch.ones(2)
        with pytest.raises(RuntimeError, match="No backend .* cpu"):
            dist.all_reduce(tensor)
        assert tensor.tolist() == [1.0, 1.0]


def test_a_dummy_group_beside_a_gloo_group():
    with one_rank("gloo"):
        dummy = dist.new_group(backend="dummy")
        summed, zeroed = torch.ones(2), torch.ones(2)
        dist.all_reduce(summed)
        dist.all_reduce(zeroed, group=dummy)
        assert (summed.tolist(), zeroed.tolist()) == ([1.0, 1.0], [0.0, 0.0])


# CUDA

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@needs_cuda
@both
def test_cuda_outputs_are_zero(group, collective):
    tensor = torch.ones(3, device="cuda")
    collective(tensor)
    assert tensor.is_cuda and tensor.tolist() == [0.0] * 3


@needs_cuda
def test_the_same_backend_serves_both_devices(group):
    assert group._get_backend(torch.device("cuda")).name() == "dummy"
    tensors = [torch.ones(2), torch.ones(2, device="cuda")]
    for tensor in tensors:
        dist.all_reduce(tensor)
    assert [tensor.tolist() for tensor in tensors] == [[0.0, 0.0]] * 2


@needs_cuda
def test_cuda_future_holds_the_same_tensors(group):
    output = torch.ones(3, device="cuda")
    for work in [
        dist.all_reduce(output, async_op=True),
        dist.all_gather([output], torch.ones(3, device="cuda"), async_op=True),
    ]:
        assert addresses(work.get_future().wait()) == addresses([output])
        assert work.get_future().then(lambda f: f.value()[0].sum()).wait().item() == 0.0


@needs_cuda
def test_cuda_on_another_stream(group):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = torch.ones(1_000_000, device="cuda")
        dist.all_reduce(tensor, async_op=True).wait()
    torch.cuda.current_stream().wait_stream(stream)
    assert not tensor.any()


@needs_cuda
def test_gloo_for_cpu_and_the_dummy_for_cuda():
    with one_rank("cpu:gloo,cuda:dummy"):
        on_cpu, on_gpu = torch.ones(2), torch.ones(2, device="cuda")
        dist.all_reduce(on_cpu)
        dist.all_reduce(on_gpu)
        assert (on_cpu.tolist(), on_gpu.tolist()) == ([1.0, 1.0], [0.0, 0.0])
