"""A backend, "defective_streams", which is simccl with one mistake, mostly about streams.

The others are for checks that gloo itself fails. The variable C10D_DEFECT names the mistake, as for
the backend "defective", whose places are used here, too. `DEFECTS` has for each name the checks
that must notice it. Processes of ranks import simccl; that of the tests does not, because it must
stay without an accelerator.
"""

import contextlib
import functools
import os
import time
from datetime import timedelta

import defective
import torch
import torch.distributed as dist
from defective import COALESCED, Defect, Done, Late, Wrapped, around, instead, kept_forever, memory

DEVICE = "sim"
_CUSTOM = dist.ProcessGroup.BackendType.CUSTOM
DEFECTS: dict[str, Defect] = {}
COLLECTIVES = [*defective._WITH_INPUTS, "allreduce", "broadcast", "reduce", "scatter"]
CALLS = [*COLLECTIVES, *COALESCED, "send", "recv"]


class Group(defective.Group):
    """A group whose calls go to simccl, unless a defect has put a method in between."""

    def __init__(self, store, rank, size, simccl):
        dist.ProcessGroup.__init__(self, store, rank, size)
        self.gloo = simccl  # what the places of defects call
        self._set_default_backend(_CUSTOM)
        self._register_backend(torch.device(DEVICE), _CUSTOM, simccl)


def defect(place, *checks):
    """Put the decorated function into the table; checks without a module are those of streams."""

    def register(function):
        full = tuple(check if "." in check else f"streams.{check}" for check in checks)
        DEFECTS[function.__name__] = Defect(place(function), full, 2)
        return function

    return register


@contextlib.contextmanager
def broken(group, rule, when=True):
    """Let simccl break a rule in a block."""
    options = group.gloo.options
    options.broken = rule if when else ""
    try:
        yield
    finally:
        options.broken = ""


def breaking(name, rule, operations, *checks, when=None):
    """Put a defect into the table: the operations break a rule, if `when(arguments)` is true."""

    def call_broken(call, group, *arguments):
        with broken(group, rule, when is None or when(arguments)):
            return call(*arguments)

    call_broken.__name__ = name
    defect(around(*operations), *checks)(call_broken)


def work_method(method, *operations):
    """Put `function(work, …)` in the place of a method of works, which know their group."""

    def place(function):
        changed = type("Changed", (Wrapped,), {method: function})

        def wrap(call, group, *arguments):
            work = changed(call(*arguments), *arguments)
            work.group, work.stream = group, current_stream()
            work.event = work.stream.record_event()
            return work

        return around(*operations)(wrap)

    return place


def current_stream():
    return torch.accelerator.current_stream()


def default_stream():
    return torch.sim.default_stream()


def in_another_stream(_):
    return current_stream() != default_stream()


def is_elsewhere(arguments):
    return defective.tensors_of(arguments[0])[0].device.index != torch.sim.current_device()


# A rule that some calls break.
breaking("the_input_of_all_gather_is_read_early", "input", ["allgather"], "late_input")
breaking("coalesced_inputs_are_read_early", "input", COALESCED, "late_input")
breaking("a_message_is_read_early", "input", ["send"], "late_input")
breaking(
    "only_the_default_stream_is_waited_for", "input", CALLS, "late_input", when=in_another_stream
)
breaking("another_device_is_not_waited_for", "input", CALLS, "another_device", when=is_elsewhere)
breaking("the_input_of_all_gather_is_freed", "lifetime", ["allgather"], "freed_input")
breaking("the_input_of_coalesced_calls_is_freed", "lifetime", COALESCED, "freed_input")
breaking("a_message_is_freed", "lifetime", ["send"], "freed_input", "dropped_work")
breaking("the_tensor_of_all_reduce_is_freed", "lifetime", ["allreduce"], "dropped_memory")
_FUTURE = "future_orders_the_stream", "callback_sees_the_result"
breaking("the_future_of_all_reduce_has_no_device", "devices", ["allreduce"], *_FUTURE)
breaking("collectives_run_in_the_stream_of_the_caller", "own_stream", COLLECTIVES, "overlap")
breaking("messages_run_in_the_stream_of_the_caller", "own_stream", ["send", "recv"], "overlap")
breaking("a_barrier_blocks_only_the_stream", "barrier", ["barrier"], "barrier_blocks_the_host")


@defect(instead("_end_coalescing"), "late_input")
def a_batch_is_read_early(self, device):
    with broken(self, "input"):
        return dist.ProcessGroup._end_coalescing(self, device)


@defect(around(*CALLS), "dropped_work", "dropped_memory")
def a_dropped_work_drops_its_tensors(call, group, *arguments):
    with broken(group, "lifetime"):
        return Wrapped(call(*arguments), *arguments)


@defect(around("allgather"), "dropped_memory")
def outputs_are_freed(call, group, outputs, inputs, opts):
    kept_forever.append(inputs)
    with broken(group, "lifetime"):
        return call(outputs, inputs, opts)


@defect(around("allreduce"), "dropped_memory")
def memory_is_never_freed(call, group, *arguments):
    kept_forever.append(arguments)
    return call(*arguments)


# Calls.
@defect(around("allreduce"), "late_input")
def a_call_waits_for_its_input(call, group, *arguments):
    current_stream().synchronize()
    return call(*arguments)


@defect(around(*COLLECTIVES), "two_streams")
def a_call_whose_stream_is_busy_comes_after_the_next(call, group, *arguments):
    """The first of two calls is made when it is waited for, or behind the second one."""
    stream = current_stream()

    def make():
        if held := memory.pop("held", None):
            with held[0]:
                memory["work"] = held[1](*held[2])

    def wait():
        make()
        memory.pop("work").wait()

    if not stream.query() and stream != default_stream() and "held" not in memory:
        memory["held"] = stream, call, arguments
        return Late(wait)
    work = call(*arguments)
    make()
    return work


@defect(around("allreduce"), "another_device")
def the_current_device_is_not_restored(call, group, tensors, opts):
    torch.accelerator.set_device_index(tensors[0].device.index)
    return call(tensors, opts)


@defect(around("allreduce"), "another_device")
def the_current_stream_is_not_restored(call, group, *arguments):
    work = call(*arguments)
    torch.accelerator.set_stream(torch.Stream(default_stream().device))
    return work


@defect(around("allreduce"), "wait_orders_the_stream")
def only_asynchronous_calls_order_the_stream(call, group, tensors, opts):
    return call(tensors, opts) if opts.asyncOp else call(tensors, opts) and Done()


# wait()
def order_nothing(self, timeout=timedelta(0)):
    with broken(self.group, "output"):
        return self.work.wait(timeout)


for _name, _operations, *_checks in (
    ("all_reduce_orders_nothing", ["allreduce"], "wait_orders_the_stream", "wait_in_other_streams"),
    ("recv_orders_nothing", ["recv"], "wait_orders_the_stream", "wait_in_other_streams"),
    ("send_orders_nothing", ["send"], "wait_orders_the_stream"),
    ("coalesced_calls_order_nothing", COALESCED, "wait_for_coalesced_calls"),
):
    _function = functools.update_wrapper(lambda *x, **y: order_nothing(*x, **y), order_nothing)
    _function.__name__ = _name
    defect(work_method("wait", *_operations), *_checks)(_function)


@defect(work_method("wait", *CALLS), "wait_in_other_streams")
def wait_orders_the_default_stream(self, timeout=timedelta(0)):
    with default_stream():
        return self.work.wait(timeout)


@defect(work_method("wait", "allgather"), "wait_in_other_streams")
def wait_orders_the_stream_of_the_call(self, timeout=timedelta(0)):
    with self.stream:
        return self.work.wait(timeout)


@defect(work_method("wait", *CALLS), "wait_in_other_streams")
def only_the_first_wait_orders_a_stream(self, timeout=timedelta(0)):
    waited, self.waited = getattr(self, "waited", False), True
    return waited or self.work.wait(timeout)


@defect(
    work_method("wait", "send", *COALESCED), "wait_in_other_streams", "wait_for_coalesced_calls"
)
def wait_orders_by_an_event_of_the_caller(self, timeout=timedelta(0)):
    current_stream().wait_event(self.event)
    return True


@defect(work_method("wait", "allreduce"), "wait_returns")
def wait_blocks_the_host(self, timeout=timedelta(0)):
    return self.work.wait(timeout or timedelta(seconds=60))


@defect(work_method("wait", "allreduce"), "wait_with_a_timeout")
def the_timeout_of_wait_is_ignored(self, timeout=timedelta(0)):
    return self.work.wait()


@defect(work_method("wait", "allreduce"), "wait_with_a_timeout")
def a_timeout_is_over_at_once(self, timeout=timedelta(0)):
    return self.work.wait(timeout and timedelta(milliseconds=1))


# is_completed(), and messages.
@defect(work_method("is_completed", "allreduce"), "completion")
def a_work_is_never_completed(self):
    return False


@defect(work_method("is_completed", "allgather"), "completion")
def a_work_is_completed_with_the_stream_of_the_caller(self):
    return self.event.query()


@defect(around(*CALLS), "completion")
def a_work_is_completed_after_wait(call, group, *arguments):
    class Waited(Wrapped):
        waited = False

        def wait(self, timeout=timedelta(0)):
            self.waited = True
            return self.work.wait(timeout)

        def is_completed(self):
            return self.waited or self.work.is_completed()

    return Waited(call(*arguments), *arguments)


@defect(around("send", "recv"), "messages.completed_without_wait")
def a_message_is_completed_by_wait_alone(call, group, *arguments):
    return defective.Waited(call(*arguments), *arguments)


@defect(around("send", "recv"), "messages.batch_to_itself")
def a_message_to_itself_is_lost(call, group, tensors, rank, tag):
    return Done() if rank == group.rank() else call(tensors, rank, tag)


# Futures.
def future_of(value):
    """Return a future that is complete, for the stream that is current now."""
    future = torch.futures.Future(devices=[default_stream().device])
    future.set_result(value)
    return future


@defect(work_method("get_future", "allreduce"), *_FUTURE)
def the_future_knows_the_stream_of_the_caller(self):
    with self.stream:
        return future_of(self.arguments[0])


@defect(work_method("get_future", "allreduce"), "callback_sees_the_result")
def a_callback_runs_in_the_stream_of_the_caller(self):
    class Inline:
        def __init__(self, future):
            self.wait = future.wait

        def then(self, callback):
            self.wait()
            return future_of(callback(self))

    return Inline(self.work.get_future())


# The watchdog.
@defect(defective.with_timeout, "watchdog")
def a_call_that_takes_too_long_is_not_reported(given):
    return defective._LONG


@defect(defective.in_class, "watchdog")
def the_watchdog_needs_the_gil(cls):
    def watch():
        time.sleep(1.5)
        print("defective_streams: all_reduce has not ended", flush=True)

    def allreduce(call, group, *arguments):
        defective.start_thread(watch)
        return call(*arguments)

    around("allreduce")(allreduce)(cls)
    defective.with_timeout(lambda given: defective._LONG)(cls)


# The values.
@defect(around("allreduce"), "values.divided_first")
def an_average_divides_the_sum(call, group, tensors, opts):
    divisor = group.size() if opts.reduceOp == dist.ReduceOp.AVG else 1
    if divisor > 1:
        opts.reduceOp = dist.ReduceOp.SUM
    work = call(tensors, opts)
    if divisor > 1:
        work.wait()
        tensors[0].div_(divisor)
    return work


@defect(around("gather_single"), "contract.gather_single")
def a_stacked_output_is_not_written(call, group, output, tensor, opts):
    stacked = output is not None and output.dim() > tensor.dim()
    return call(torch.empty_like(output) if stacked else output, tensor, opts)


def create(opts, _):
    """Make a group of simccl, with the defect that the variable C10D_DEFECT names."""
    import stream_collectives

    name = os.environ.get("C10D_DEFECT", "")
    if not hasattr(create, "cls"):
        create.cls = type("Defective", (Group,), {})
        if name:
            DEFECTS[name].install(create.cls)
    timeout = opts.timeout
    for hook in defective.timeout_hooks:
        timeout = hook(timeout)
    options = stream_collectives.Options(timeout)
    options.blocking_wait = "C10D_BLOCKING_WAIT" in os.environ
    opts.timeout = timeout
    simccl = dist.Backend._plugins["SIMCCL"].creator_fn(opts, options)
    return create.cls(opts.store, opts.group_rank, opts.group_size, simccl)


dist.Backend.register_backend("defective_streams", create, extended_api=True, devices=[DEVICE])
