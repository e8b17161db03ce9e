"""A backend, "defective", which is gloo with one mistake that the variable C10D_DEFECT names.

A defect is a function and the place where it works: `after("allreduce")`, `before("send")`. The
table `DEFECTS` has for each name the checks of the suite that must notice it. A process has one
defect at most, so that all may keep what they remember in `memory`.
"""

import atexit
import contextlib
import ctypes
import functools
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import ProcessGroupGloo
from torch.distributed import ReduceOp

_GLOO = dist.ProcessGroup.BackendType.GLOO
_LONG = timedelta(seconds=600)
_numbers = itertools.count()  # of the groups of this process
memory: dict[Any, Any] = {}
kept_forever: list[Any] = []
creation_hooks: list[Callable] = []
timeout_hooks: list[Callable] = []

# These have their outputs as their first argument, and some their inputs as their second one.
_WRITING = ("allreduce", "broadcast", "reduce", "scatter", "recv")
_WITH_INPUTS = ("allgather", "all_gather_single", "gather", "reduce_scatter")
_WITH_INPUTS += ("reduce_scatter_single", "alltoall", "all_to_all_single")
COALESCED = ("allreduce_coalesced", "all_gather_single_coalesced")
COALESCED += ("reduce_scatter_single_coalesced",)
_PUBLIC = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}


def tensors_of(argument):
    """Return the tensors of an argument: one tensor, a list of them, or a list with that list."""
    if isinstance(argument, torch.Tensor):
        return [argument]
    return argument[0] if argument and isinstance(argument[0], list) else argument


class Group(dist.ProcessGroup):
    """A group whose calls go to gloo, unless a defect has put a method in between."""

    def __init__(self, store, rank, size, gloo):
        super().__init__(store, rank, size)
        self.gloo = gloo
        self._set_default_backend(_GLOO)
        self._register_backend(torch.device("cpu"), _GLOO, gloo)

    @property
    def is_part(self):
        """Tell whether this is a group of some of the ranks."""
        return self.size() < dist.get_world_size()


def call_gloo(group, name, *arguments, **options):
    """Call a method of gloo."""
    return getattr(group.gloo, name)(*arguments, **options)


class Done(dist.distributed_c10d.Work):
    """A work that has nothing to do."""

    def wait(self, timeout=timedelta(0)):
        return True

    def is_completed(self):
        return True


class Late(Done):
    """A work that calls a function when it is waited for."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def wait(self, timeout=timedelta(0)):
        self.action()
        return True


class Wrapped(dist.distributed_c10d.Work):
    """The work of gloo, with methods that a defect can change."""

    def __init__(self, work, *arguments):
        super().__init__()
        self.work = work
        self.arguments = arguments

    def wait(self, timeout=timedelta(0)):
        return self.work.wait(timeout)

    def is_completed(self):
        return self.work.is_completed()

    def get_future(self):
        return self.work.get_future()

    def _source_rank(self):
        return self.work._source_rank()


class Finished(Done, Wrapped):
    """A work that is complete: a second wait of gloo may write the output again."""


class Waited(Wrapped):
    """A work that is complete only if it has been waited for."""

    def wait(self, timeout=timedelta(0)):
        self.is_completed = self.work.is_completed
        return self.work.wait(timeout)

    def is_completed(self):
        return False


# Places. Each returns a function that makes, of the function of a defect, a change of the class.


def in_class(function):
    """Call `function(cls)` with the class of the groups."""
    return function


def instead(*operations):
    """Put `function(group, *arguments)` in the place of methods."""

    def place(function):
        def install(cls):
            for name in operations:
                setattr(cls, name, function)

        return install

    return place


def around(*operations):
    """Put `function(call, group, *arguments)` in the place of methods; it returns the work."""

    def place(function):
        def method_of(name):
            def method(self, *arguments, **options):
                call = functools.partial(call_gloo, self, name, **options)
                return function(call, self, *arguments)

            return method

        def install(cls):
            for name in operations:
                setattr(cls, name, method_of(name))

        return install

    return place


@around(*_WRITING, *_WITH_INPUTS, *COALESCED, "send", "recv_anysource", "barrier")
def forward(call, group, *arguments):
    """Call gloo.

    Without it, PyTorch's PyProcessGroup would call gloo and keep the GIL, which one thread of gloo
    needs to free a tensor while it holds the lock of the queue: a deadlock now and then.
    """
    return call(*arguments)


forward(Group)


def after(*operations):
    """Wait for the operation, then call `function(group, *arguments)`."""

    def place(function):
        @around(*operations)
        def install(call, group, *arguments):
            work = call(*arguments)
            work.wait()
            function(group, *arguments)
            return Finished(work)

        return install

    return place


def outputs_of(*operations):
    """Wait for the operation, then call `function(tensor)` with each of its outputs."""

    def place(function):
        def change(group, outputs, *_):
            for tensor in tensors_of(outputs):
                function(tensor)

        return after(*operations)(change)

    return place


def before(*operations):
    """Call the operation with what `function(group, *arguments)` returns; None is no change."""

    def place(function):
        @around(*operations)
        def install(call, group, *arguments):
            return call(*(function(group, *arguments) or arguments))

        return install

    return place


def work_method(method, *operations):
    """Put `function(work, …)` in the place of a method of works."""

    def place(function):
        changed = type("Changed", (Wrapped,), {method: function})

        @around(*operations)
        def install(call, group, *arguments):
            return changed(call(*arguments), *arguments)

        return install

    return place


def at_creation(function):
    """Call `function(group)` when a group is made."""
    return lambda cls: creation_hooks.append(function)


def with_timeout(function):
    """Make each group with the timeout `function(timeout)`."""
    return lambda cls: timeout_hooks.append(function)


@dataclass(frozen=True)
class Defect:
    """A change of the class of groups, and the checks that must notice it with so many ranks."""

    install: Callable
    checks: tuple[str, ...]
    size: int


DEFECTS: dict[str, Defect] = {}


def add(name, place, function, *checks, size=2):
    """Put a defect into the table."""
    DEFECTS[name] = Defect(place(function), checks, size)


def defect(place, *checks, size=2):
    """Put the decorated function into the table, under its name."""

    def register(function):
        add(function.__name__, place, function, *checks, size=size)
        return function

    return register


def checks_of(module, names):
    """Return the ids of checks from a text of their names."""
    return [f"{module}.{name}" for name in names.split()]


def bump(tensor, index):
    """Change one element of a tensor, of whatever dtype and layout."""
    if tensor.numel():
        flat = tensor.flatten()
        flat[index] = ~flat[index] if tensor.dtype == torch.bool else flat[index] + 1
        tensor.copy_(flat.view(tensor.shape))


# Values: each operation alters its last output, an input, or the memory behind its outputs.


def bump_last_output(group, outputs, *_):
    for tensor in tensors_of(outputs)[-1:]:
        bump(tensor, -1)


def bump_first_input(group, outputs, inputs, *_):
    bump(tensors_of(inputs)[0], 0)


def write_behind(tensor):
    end = tensor.storage_offset() + tensor.numel()
    if tensor.numel() and end < tensor.untyped_storage().nbytes() // tensor.itemsize:
        tensor.as_strided((1,), (1,), end).fill_(1)


def cut(limit):
    def change(tensor):
        if tensor.numel() > limit:
            tensor.view(-1)[limit:] = 0

    return change


# The bumps make these fail, too, which PyTorch builds on the operation.
_BUILT_ON = {
    "broadcast": ("features.zero",),
    "reduce_scatter_single": ("features.fsdp1", "features.fsdp2"),
    "recv": ("features.pipeline",),
}
for _name in (*_WRITING, *_WITH_INPUTS):
    _public = _PUBLIC.get(_name, _name)
    _checks = "messages.send_recv" if _name == "recv" else f"values.{_public}"
    _bumped = f"{_checks}_types", *_BUILT_ON.get(_name, ())
    add(f"{_public}_has_a_wrong_last_element", after(_name), bump_last_output, *_bumped)
    if _name in _WITH_INPUTS:
        add(f"{_public}_changes_its_input", after(_name), bump_first_input, f"{_checks}_types")
    _text = f"{_public}_writes_one_element_too_much"
    add(_text, outputs_of(_name), write_behind, f"{_checks}_layouts")
    add(f"{_public}_ends_after_64_KiB", outputs_of(_name), cut(1 << 14), f"{_checks}_sizes")
for _name, _public in (("allreduce", "all_reduce"), ("broadcast", "broadcast")):
    _text = f"{_public}_ends_after_16_MiB"
    add(_text, outputs_of(_name), cut(1 << 22), f"values.{_public}_sizes")


@defect(after("allreduce"), "groups.every_operation", size=4)
def all_reduce_needs_a_power_of_two(group, *arguments):
    if group.size() & (group.size() - 1):
        bump_last_output(group, *arguments)


@defect(before("allreduce"), "values.all_reduce_types")
def all_reduce_sums_for_a_mean(group, tensors, opts):
    if opts.reduceOp == ReduceOp.AVG:
        opts.reduceOp = ReduceOp.SUM


@defect(before("allreduce"), "values.all_reduce_sizes")
def all_reduce_sums_for_a_mean_of_long_tensors(group, tensors, opts):
    if tensors[0].numel() > 1 << 18:
        all_reduce_sums_for_a_mean(group, tensors, opts)


@defect(before("allreduce"), "values.premultiplied")
def all_reduce_ignores_the_factor_of_a_sum(group, tensors, opts):
    if opts.reduceOp == ReduceOp.PREMUL_SUM:
        return tensors, dist.AllreduceOptions()
    return None


@defect(around("allreduce"), "values.premultiplied")
def a_group_of_one_ignores_the_factor_of_a_sum(call, group, tensors, opts):
    is_alone = group.size() == 1 and opts.reduceOp == ReduceOp.PREMUL_SUM
    return Done() if is_alone else call(tensors, opts)


def through(dtype, other, *ops):
    """Reduce one dtype, with some operations, as if it were another one."""

    def allreduce(self, tensors, opts):
        tensor = tensors[0]
        if tensor.dtype != dtype or (ops and not any(opts.reduceOp == op for op in ops)):
            return self.gloo.allreduce(tensors, opts)
        converted = tensor.to(other)
        work = self.gloo.allreduce([converted], opts)
        work.wait()
        tensor.copy_(converted.to(dtype))
        return work

    return allreduce


for _name, _dtype, _other, *_ops in (
    ("int32_is_added_as_float", torch.int32, torch.float32),
    ("uint8_is_compared_as_int8", torch.uint8, torch.int8),
    ("int8_is_added_as_bool", torch.int8, torch.bool),
    ("the_minimum_of_int64_goes_through_double", torch.int64, torch.float64, ReduceOp.MIN),
    ("the_product_of_int64_goes_through_double", torch.int64, torch.float64, ReduceOp.PRODUCT),
    ("the_maximum_of_float64_goes_through_float", torch.float64, torch.float32, ReduceOp.MAX),
    ("the_maximum_of_bfloat16_goes_through_half", torch.bfloat16, torch.float16, ReduceOp.MAX),
    ("int16_is_added_as_half", torch.int16, torch.float16, ReduceOp.SUM),
    ("int32_is_joined_as_one_byte", torch.int32, torch.uint8, ReduceOp.BXOR, ReduceOp.BAND),
):
    add(_name, instead("allreduce"), through(_dtype, _other, *_ops), "values.all_reduce_types")


@defect(after("allreduce"), "values.not_a_number")
def the_maximum_starts_at_the_lowest_number(group, tensors, opts):
    if opts.reduceOp == ReduceOp.MAX and tensors[0].is_floating_point():
        tensors[0].clamp_(min=torch.finfo(tensors[0].dtype).min)


@defect(around("allreduce"), "values.same_bits_with_nan")
def the_maximum_of_nan_is_the_second_operand(call, group, tensors, opts):
    """As in MPICH, where the ranks have the two in opposite order."""
    mine = tensors[0].clone()
    work = call(tensors, opts)
    if opts.reduceOp == ReduceOp.MAX and mine.is_floating_point():
        work.wait()
        tensors[0].copy_(torch.where(mine.isnan(), mine, tensors[0].nan_to_num()))
    return work


@defect(instead("broadcast"), "values.broadcast_types")
def broadcast_adds_zeros(self, tensors, opts):
    """The tensor of a receiver may hold NaN, which times 0 is NaN."""
    if tensors[0].dtype != torch.float32:
        return self.gloo.broadcast(tensors, opts)
    tensors[0].mul_(float(opts.rootRank == self.rank()))
    return self.gloo.allreduce(tensors, dist.AllreduceOptions())


@defect(after("allreduce"), "groups.every_operation", size=4)
def a_mean_divides_by_the_number_of_all_ranks(group, tensors, opts):
    if opts.reduceOp == ReduceOp.AVG:
        tensors[0].mul_(group.size() / dist.get_world_size())


@defect(after("allreduce"), "values.all_reduce_sizes", size=4)
def the_last_of_fewer_elements_than_ranks_is_lost(group, tensors, *_):
    if 1 < tensors[0].numel() < group.size():
        tensors[0].view(-1)[-1:] = 0


@defect(instead("allgather"), "values.all_gather_types", "values.all_gather_sizes")
def gathered_tensors_are_replaced(self, outputs, inputs, opts):
    """As `tensor.set_` does: other views of the memory keep their values."""
    copies = [tensor.clone() for tensor in outputs[0]]
    work = self.gloo.allgather([copies], inputs, opts)
    work.wait()
    for tensor, copy in zip(outputs[0], copies, strict=True):
        if tensor.dtype == torch.float32 and tensor.shape[-1:] != (2,):  # not complex
            tensor.set_(copy)
        else:
            tensor.copy_(copy)
    return Finished(work)


@defect(outputs_of("allreduce"), "values.same_bits")
def bfloat16_is_cut_after_each_addition(tensor):
    if tensor.dtype == torch.bfloat16:
        tensor.view(torch.int16).bitwise_and_(~0x3)


@defect(after("allreduce"), "values.same_bits")
def every_rank_rounds_in_its_own_way(group, tensors, opts):
    if tensors[0].dtype == torch.float32 and group.rank() and tensors[0].numel():
        tensors[0].view(torch.int32).bitwise_xor_(1)


@defect(outputs_of("allreduce"), "values.not_a_number")
def not_a_number_becomes_zero(tensor):
    tensor.nan_to_num_(0.0)


@defect(outputs_of("allreduce"), "values.all_reduce_types")
def the_imaginary_part_is_lost(tensor):
    """A complex tensor comes as a real one, with 2 numbers an element."""
    if tensor.dim() > 1 and tensor.shape[-1] == 2:
        tensor[..., 1] = 0


class Copying(Wrapped):
    """A work that writes its outputs when it is waited for."""

    def copy(self, *_):
        for target, source in zip(self.arguments[0], self.copies, strict=True):
            target.copy_(source)
        return self.arguments[0]

    def wait(self, timeout=timedelta(0)):
        result = self.work.wait(timeout)
        self.copy()
        return result


class CopyingFuture(Copying):
    """A work that writes its outputs also for a future."""

    def get_future(self):
        return self.work.get_future().then(self.copy)


def reduce_a_copy(work_class, self, tensors, opts):
    copies = [tensor.contiguous().clone() for tensor in tensors]
    work = work_class(self.gloo.allreduce(copies, opts), tensors)
    work.copies = copies
    return work


@defect(instead("allreduce"), "values.all_reduce_layouts")
def strided_outputs_are_written_by_wait_alone(self, tensors, opts):
    work_class = CopyingFuture if tensors[0].is_contiguous() else Copying
    return reduce_a_copy(work_class, self, tensors, opts)


@defect(instead("allreduce"), "values.all_reduce_sizes")
def a_completed_work_has_not_written_its_output(self, tensors, opts):
    return reduce_a_copy(CopyingFuture, self, tensors, opts)


def flat_memory(tensor):
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


@defect(before("allgather"), "values.all_gather_layouts")
def the_layout_is_taken_for_contiguous(group, outputs, inputs, opts):
    if all(tensor.is_contiguous() for tensor in outputs[0]):
        return None
    return [[flat_memory(tensor) for tensor in outputs[0]]], [flat_memory(inputs[0])], opts


@defect(before("all_gather_single"), "values.stacked")
def a_stacked_output_is_not_written(group, output, tensor, opts):
    return torch.empty_like(output).flatten(0, 1), tensor, opts


@defect(instead("alltoall", "allgather"), "values.uneven_all_to_all", "values.uneven_all_gather")
def uneven_tensors_are_not_exchanged(self, *_):
    return Done()


@defect(after("reduce_scatter"), "values.uneven_reduce_scatter")
def every_rank_gets_as_many_numbers_as_rank_0(group, outputs, inputs, opts):
    outputs[0][inputs[0][0].numel() :] = 99


@defect(before("allgather"), "values.expanded_input")
def a_dense_input_is_sent_as_it_lies(group, outputs, inputs, opts):
    tensor = inputs[0]
    if outputs[0][0].is_contiguous() and tensor.numel() == tensor.untyped_storage().size() // 4:
        inputs = [tensor.as_strided(tensor.shape, outputs[0][0].stride())]
    return outputs, inputs, opts


@defect(before("broadcast"), "values.broadcast_types")
def one_rank_refuses_and_the_others_wait(group, tensors, opts):
    if tensors[0].dtype == torch.int64 and group.rank() == 0:
        raise ValueError("broadcast: the dtype int64 is not supported")


@defect(before("broadcast"), "values.broadcast_layouts")
def an_empty_tensor_crashes(group, tensors, opts):
    if not tensors[0].numel():
        ctypes.string_at(0)


REDUCTIONS = "allreduce", "reduce", "reduce_scatter", "reduce_scatter_single"
GATHERS = "allgather", "all_gather_single", "gather"


@defect(
    before(*REDUCTIONS, *GATHERS),
    *(f"values.{_PUBLIC.get(name, name)}_sizes" for name in (*REDUCTIONS, *GATHERS)),
)
def a_matrix_without_elements_is_an_error(group, outputs, *_):
    if any(tensor.dim() > 1 and not tensor.numel() for tensor in tensors_of(outputs)):
        raise RuntimeError("")


@defect(around("allreduce"), "values.all_reduce_layouts")
def a_tensor_of_inference_mode_is_not_written(call, group, tensors, opts):
    """As by a thread that does not look at the error of PyTorch."""
    return Done() if tensors[0].is_inference() else call(tensors, opts)


@defect(around("broadcast"), "values.broadcast_layouts")
def a_leaf_of_autograd_is_not_written(call, group, tensors, opts):
    return Done() if tensors[0].requires_grad else call(tensors, opts)


@defect(before("allreduce"), "values.all_reduce_layouts")
def an_empty_tensor_hangs(group, tensors, opts):
    while not tensors[0].numel():
        time.sleep(1)


# Roots, and the order of parts.


def take_rank_0(group, tensors, opts):
    opts.rootRank = 0


add("broadcast_is_always_from_rank_0", before("broadcast"), take_rank_0, "values.broadcast_roots")
add("reduce_is_always_to_rank_0", before("reduce"), take_rank_0, "values.reduce_roots")


@defect(before("broadcast"), "groups.roots_in_a_group", size=4)
def the_root_is_taken_for_a_global_rank(group, tensors, opts):
    if group.is_part:
        opts.rootRank = max(0, opts.rootRank - 1)


@defect(before("gather"), "values.gather_roots", "values.gather_types")
def gather_is_in_the_reverse_order(group, outputs, inputs, opts):
    return [tensors[::-1] for tensors in outputs], inputs, opts


@defect(before("scatter"), "values.scatter_types", "values.scatter_roots")
def scatter_is_rotated(group, outputs, inputs, opts):
    return outputs, [[*tensors[1:], tensors[0]] for tensors in inputs], opts


@defect(after("all_to_all_single"), "values.uneven_all_to_all_single")
def uneven_splits_are_counted_in_words_of_4_bytes(group, output, tensor, receiving, *_):
    if receiving and output.itemsize > 4:
        output.view(-1)[output.numel() * 4 // output.itemsize :] = 99


@defect(before("all_to_all_single"), "values.uneven_all_to_all_single")
def uneven_splits_are_kept_for_tensors_of_one_size(group, output, tensor, receiving, sending, opts):
    sizes = output.shape, tensor.shape, bool(receiving)
    return output, tensor, *memory.setdefault(sizes, (receiving, sending)), opts


@defect(around("all_to_all_single"), "values.uneven_all_to_all_single")
def a_rank_that_gives_nothing_gets_nothing(call, group, output, tensor, receiving, sending, opts):
    work = call(output, tensor, receiving, sending, opts)
    work.wait()
    if sending and not any(sending):
        output.fill_(99)
    return Finished(work)


@defect(around("all_to_all_single"), "values.one_list_of_splits")
def one_list_of_splits_counts_for_both(call, group, output, tensor, receiving, sending, opts):
    work = call(output, tensor, receiving, sending, opts)
    work.wait()
    if bool(receiving) != bool(sending):
        output.copy_(output.flip(0))
    return Finished(work)


def clear_output(group, output, *_):
    output.zero_()


for _name in ("reduce_scatter_single", "all_gather_single"):
    add(f"{_name}_clears_its_output_first", before(_name), clear_output, "values.in_place")


@defect(instead("barrier"), "values.barrier_waits")
def barrier_does_not_wait(self, opts=None):
    return Done()


@defect(instead("barrier"), "groups.members", size=4)
def the_barrier_of_a_sub_group_does_not_wait(self, opts=None):
    return Done() if self.is_part else self.gloo.barrier(opts)


@defect(around("barrier"), "values.barrier_waits")
def a_barrier_is_completed_by_wait_alone(call, group, *arguments):
    return Waited(call(*arguments), *arguments)


def note_world(cls):
    """Let `memory["world"]` be gloo's group of all ranks."""
    creation_hooks.append(lambda group: memory.setdefault("world", group.gloo))


@defect(before("allreduce_coalesced"), "values.coalesced")
def only_the_first_coalesced_tensor_is_reduced(group, tensors, opts):
    return tensors[:1], opts


@defect(before("allreduce_coalesced"), "values.coalesced")
def coalesced_tensors_are_always_added(group, tensors, opts):
    opts.reduceOp = ReduceOp.SUM


@defect(
    instead("all_gather_single_coalesced", "allgather_into_tensor_coalesced"), "values.coalesced"
)
def only_the_last_coalesced_tensor_is_gathered(self, outputs, inputs, opts):
    return call_gloo(self, "all_gather_single", outputs[-1], inputs[-1], opts)


@defect(
    instead("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
    "contract.one_work_for_a_batch",
)
def a_coalesced_gather_waits_and_has_no_work(self, outputs, inputs, opts):
    call_gloo(self, "all_gather_single_coalesced", outputs, inputs, opts).wait()


# Messages.
TAGS = "messages.tags_choose_the_message"


def change_tag(function):
    """Send and receive with the tag `function(tag)`."""
    return before("send", "recv")(lambda group, tensors, rank, tag: (tensors, rank, function(tag)))


add("tags_are_ignored", change_tag, lambda tag: 0, TAGS)
add("tags_are_cut_to_a_byte", change_tag, lambda tag: tag % 256, TAGS)
add("tags_are_cut_to_16_bits", change_tag, lambda tag: tag % (1 << 16), TAGS)


@defect(instead("send"), "messages.messages_stay_in_order")
def messages_overtake_each_other(self, tensors, rank, tag):
    """Every second message is sent before the one before it."""
    held = memory.pop(self, None)
    if not held:
        memory[self] = tensors, rank, tag
        return Late(lambda: send_held(self))
    works = [self.gloo.send(tensors, rank, tag), self.gloo.send(*held)]
    return Late(lambda: [work.wait() for work in works])


def send_held(group):
    held = memory.pop(group, None)
    if held:
        group.gloo.send(*held).wait()


add(
    "any_source_returns_the_wrong_rank",
    work_method("_source_rank", "recv_anysource"),
    lambda self: 0,
    "messages.any_source",
    size=4,
)


@defect(instead("recv_anysource"), "messages.any_source", size=4)
def any_source_takes_only_the_next_rank(self, tensors, tag):
    source = (self.rank() + 1) % self.size()
    work = Wrapped(self.gloo.recv(tensors, source, tag))
    work._source_rank = lambda: source
    return work


@defect(before("recv_anysource"), "messages.any_source_with_tags")
def any_source_ignores_the_tag(group, tensors, tag):
    return tensors, {1: 2, 2: 1}.get(tag, tag)


def received(function):
    """Call `function(tensor)` with the tensor of a receive after each wait for it."""

    def wait(self, timeout=timedelta(0)):
        result = self.work.wait(timeout)
        function(self.arguments[0][0])
        return result

    return work_method("wait", "recv")(wait)


RECEIVED = "messages.send_recv_types"
add("irecv_ends_after_4_KiB", received, cut(1 << 10), "messages.messages_beside_collectives")
add("recv_ends_after_16_MiB", received, cut(1 << 22), "messages.send_recv_sizes")


@defect(received, RECEIVED)
def messages_of_float32_are_sent_as_float16(tensor):
    if tensor.dtype == torch.float32:
        tensor.copy_(tensor.half().float())


@defect(after("send"), RECEIVED)
def send_changes_its_tensor(group, tensors, *_):
    bump(tensors[0], 0)


add(
    "a_receive_is_complete_at_once",
    work_method("is_completed", "recv"),
    Done.is_completed,
    "messages.a_receive_waits_for_its_tag",
)


@defect(in_class, "messages.both_directions")
def isend_waits_for_the_receiver(cls):
    """A rendezvous: the send ends when the receiver has answered."""

    def meet(name, answer):
        def method(self, tensors, rank, tag):
            work = call_gloo(self, name, tensors, rank, tag)
            work.wait()
            call_gloo(self, answer, [torch.zeros(1)], rank, 1 << 24).wait()
            return work

        return method

    cls.send, cls.recv = meet("send", "recv"), meet("recv", "send")


@defect(outputs_of("recv"), "messages.batch_of_several", "messages.batch_in_a_ring")
def only_the_first_part_of_a_message_is_sent(tensor):
    tensor.view(-1)[100:].zero_()


@defect(in_class, "messages.messages_in_a_sub_group", "messages.any_source_in_a_sub_group", size=4)
def groups_share_the_channels_of_messages(cls):
    def through_world(name):
        def method(self, *arguments):
            return getattr(self.gloo if self.is_part else memory["world"], name)(*arguments)

        return method

    note_world(cls)
    for name in ("send", "recv", "recv_anysource"):
        setattr(cls, name, through_world(name))


@defect(before("recv"), "messages.messages_in_a_sub_group", size=4)
def the_receiver_is_taken_for_a_global_rank(group, tensors, rank, tag):
    return tensors, (rank + 1) % group.size() if group.is_part else rank, tag


# Works and futures.
COMPLETED = "works.completed_after_wait"
VALUE = "works.value_of_the_future"
IN_FLIGHT = "works.many_in_flight"
wait_of_all_reduce = work_method("wait", "allreduce")
future_of_all_reduce = work_method("get_future", "allreduce")

add(
    "works_are_complete_at_once",
    work_method("is_completed", "allreduce", "allgather", "barrier"),
    Done.is_completed,
    "works.no_completion_before_arrival",
)
add("wait_does_not_wait", wait_of_all_reduce, Done.wait, IN_FLIGHT, "values.all_reduce_sizes")


@defect(around("allreduce"), "contract.wait_unregisters")
def works_stay_in_the_registry(call, group, *arguments):
    work = Wrapped(call(*arguments), *arguments)
    if c10d._allow_inflight_collective_as_graph_input():
        c10d._register_work(arguments[0][0], work)
    return work


@defect(work_method("_get_sequence_number", "allreduce"), "contract.numbers_of_works")
def all_works_have_the_same_number(self):
    return 7


@defect(in_class, "contract.numbers_of_works")
def groups_count_the_calls_of_each_other(cls):
    groups = []
    creation_hooks.append(lambda group: groups.append(group.gloo))
    cls._get_sequence_number_for_group = lambda self: sum(
        gloo._get_sequence_number_for_group() for gloo in groups
    )


@defect(work_method("_get_duration", "allreduce"), "contract.durations")
def durations_are_in_nanoseconds(self):
    return 1e6


@defect(
    work_method("is_completed", "allreduce", "send", "recv", "barrier"),
    "messages.both_directions",
    COMPLETED,
)
def works_are_never_complete(self):
    return False


@defect(work_method("wait", "broadcast"), COMPLETED)
def wait_with_a_timeout_returns_false(self, timeout=timedelta(0)):
    return self.work.wait(timeout) and not timeout


@defect(around("allreduce"), IN_FLIGHT)
def only_64_works_fit_at_once(call, group, *arguments):
    """The works in flight beyond them lose their result."""
    flying = memory.setdefault("flying", set())

    class InFlight(Wrapped):
        is_lost = len(flying) >= 64

        def wait(self, timeout=timedelta(0)):
            result = self.work.wait(timeout)
            flying.discard(id(self))
            if self.is_lost:
                self.arguments[0][0].zero_()
            return result

    work = InFlight(call(*arguments), *arguments)
    flying.add(id(work))
    return work


def leave_early(operation):
    """Do not wait on the ranks for which `function(group, opts)` is true."""

    def place(function):
        @around(operation)
        def install(call, group, tensors, opts, *rest):
            leaves = function(group, opts) and tensors[0].dtype == torch.float32
            work = call(tensors, opts, *rest)
            kept_forever.append(work)  # gloo would cancel it
            return Finished(work) if leaves else work

        return install

    return place


@defect(leave_early("broadcast"), IN_FLIGHT)
def the_root_leaves_a_broadcast_too_early(group, opts):
    return opts.rootRank == group.rank()


@defect(leave_early("reduce"), IN_FLIGHT)
def ranks_leave_a_reduce_too_early(group, opts):
    return opts.rootRank != group.rank()


@defect(leave_early("send"), "messages.a_late_receiver")
def a_send_is_over_before_its_data_are_read(group, target):
    return True


@defect(after("allreduce"), IN_FLIGHT)
def the_256th_operation_is_wrong(group, tensors, *_):
    memory[group] = memory.get(group, 0) + 1
    if memory[group] == 256:
        tensors[0].zero_()


def future_of(value):
    future = torch.futures.Future()
    future.set_result(value)
    return future


@defect(future_of_all_reduce, VALUE, "values.sparse")
def futures_have_a_tensor_in_place_of_the_list(self):
    return self.work.get_future().then(lambda future: future.value()[0])


@defect(future_of_all_reduce, "works.callbacks")
def futures_are_complete_before_the_data(self):
    return future_of(self.arguments[0])


@defect(future_of_all_reduce, VALUE)
def a_second_future_never_completes(self):
    if getattr(self, "is_used", False):
        return torch.futures.Future()
    self.is_used = True
    return self.work.get_future()


@defect(instead("allreduce"), "works.dropped_works")
def works_that_nobody_keeps_are_cancelled(self, tensors, opts):
    """Rank 0 runs an operation when it waits, and so drops it; rank 1 runs it at once."""
    if not opts.asyncOp or self.rank():
        return self.gloo.allreduce(tensors, opts)
    return Late(lambda: self.gloo.allreduce(tensors, opts).wait())


@defect(wait_of_all_reduce, "works.waiting_releases_the_gil")
def waiting_holds_the_gil(self, timeout=None):
    while not self.work.is_completed():
        ctypes.PyDLL(None).usleep(900_000)  # PyDLL keeps the GIL
    return self.work.wait()


@defect(
    work_method("wait", "allreduce", "broadcast"),
    "works.call_in_another_thread",
    "works.wait_in_another_thread",
)
def only_the_first_thread_may_call(self, timeout=None):
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("wrong thread")
    return self.work.wait()


def keep_memory(*_):
    kept_forever.append(torch.ones(8192) + 1)


MEMORY = "works.memory_stays"
add("memory_is_kept_for_each_call", before("allreduce"), keep_memory, MEMORY)
add("memory_is_kept_for_each_message", before("send"), keep_memory, MEMORY)


@defect(before("allgather"), MEMORY)
def a_descriptor_stays_open_for_each_call(*_):
    os.open(os.devnull, os.O_RDONLY)


@defect(at_creation, "works.destroyed_groups_leave_nothing")
def memory_is_kept_for_each_group(group):
    kept_forever.append(torch.ones(1 << 20) + 1)


@defect(at_creation, "works.destroyed_groups_leave_nothing")
def threads_stay(group):
    start_thread(time.sleep, 60)


def start_thread(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()


# Groups and processes.


@defect(in_class, "lifecycle.again")
def a_sub_group_of_the_second_default_group_is_dead(cls):
    defaults = []
    creation_hooks.append(lambda group: dist.is_initialized() or defaults.append(group))

    def change(group, tensors, opts):
        if len(defaults) > 1 and group not in defaults:
            raise RuntimeError("")

    before("allreduce")(change)(cls)


@defect(after("allgather"), "lifecycle.again_with_other_ranks")
def a_second_start_has_the_ranks_of_the_first(group, outputs, *_):
    """As in a library that numbers processes once."""
    if not group.is_part and memory.setdefault("first rank", group.rank()) != group.rank():
        for tensor, other in zip(outputs[0], [x.clone() for x in outputs[0][::-1]], strict=True):
            tensor.copy_(other)


@defect(before("allreduce"), "lifecycle.again_with_other_ranks")
def a_second_start_waits_for_the_processes_of_the_first(group, tensors, opts):
    if dist.get_world_size() < memory.setdefault("first size", dist.get_world_size()):
        time.sleep(60)


@defect(before("allreduce"), "lifecycle.after_a_kill")
def a_start_finds_the_keys_of_a_killed_one(group, tensors, opts):
    if group.generation:
        raise RuntimeError("")


@defect(around("allreduce"), "groups.across_programs")
def a_group_across_programs_is_the_default_group(call, group, *arguments):
    """As in a library that knows ranks by their numbers in the default group."""
    is_across = not group.ranks and group is not dist.group.WORLD
    return dist.group.WORLD.gloo.allreduce(*arguments) if is_across else call(*arguments)


@defect(after("allreduce"), "groups.made_again")
def a_new_group_has_the_values_of_an_old_one(group, tensors, *_):
    key = group.size(), tensors[0].shape
    if group.number and key in memory:
        tensors[0].copy_(memory[key])
    memory.setdefault(key, tensors[0].clone())


@defect(before("allreduce"), "groups.with_a_timeout")
def the_second_group_is_dead(group, tensors, opts):
    if group.number:
        raise RuntimeError("")


@defect(after("allreduce"), "groups.many")
def the_17th_group_is_wrong(group, tensors, *_):
    if group.number > 16:
        tensors[0].zero_()


@defect(in_class, "groups.halves")
def a_sub_group_waits_for_all_ranks(cls):
    def wait(group, *_):
        if group.is_part:
            memory["world"].barrier(dist.BarrierOptions()).wait()

    note_world(cls)
    before("allreduce")(wait)(cls)


@defect(in_class, "groups.one_destroyed")
def destroying_one_group_destroys_all(cls):
    def shutdown(self):
        memory["closed"] = True
        self.gloo.shutdown()

    def change(group, tensors, opts):
        if "closed" in memory:
            raise RuntimeError("closed")

    cls.shutdown = shutdown
    before("allreduce")(change)(cls)


@defect(after("allreduce"), "groups.members", size=4)
def a_sub_group_speaks_to_all_ranks(group, tensors, *_):
    if group.is_part:
        tensors[0].mul_(2)


@defect(instead("reduce_scatter"), "groups.alone")
def a_group_of_one_rank_leaves_its_output(self, *arguments):
    return Done() if self.size() == 1 else self.gloo.reduce_scatter(*arguments)


@defect(at_creation, "groups.on_a_bound_device")
def a_split_needs_what_gloo_lacks(group):
    """Gloo supports splitting, and its class in Python has no perform_nocolor_split."""
    if group.made_for:
        group.bound_device_id = group.made_for


@defect(after("allreduce"), "groups.mesh_on_a_bound_device", size=4)
def a_bound_group_has_one_sub_group(group, tensors, *_):
    if group.number > 1 and dist.group.WORLD.made_for:
        tensors[0].zero_()


@defect(instead("allreduce"), "groups.overlapping", size=4)
def async_operations_are_synchronous(self, tensors, opts):
    work = self.gloo.allreduce(tensors, opts)
    work.wait()
    return work


@defect(before("allreduce"), "groups.threads")
def groups_in_threads_share_a_buffer(group, tensors, opts):
    memory["buffer"] = tensors[0].clone()
    time.sleep(0.002)
    count = tensors[0].numel()
    tensors[0].copy_(memory["buffer"].repeat(count)[:count])


@defect(in_class, "lifecycle.silent_import")
def the_import_prints(cls):
    print("hello from the backend")


@defect(in_class, "lifecycle.silent_import")
def the_import_starts_a_thread(cls):
    start_thread(time.sleep, 60)


@defect(in_class, "lifecycle.registered")
def the_device_is_not_registered(cls):
    dist.Backend.backend_capability["defective"] = ["cuda"]


@defect(in_class, "lifecycle.exit_without_destroy")
def the_exit_of_a_process_crashes(cls):
    atexit.register(os.kill, os.getpid(), signal.SIGSEGV)


@defect(in_class, "lifecycle.fork")
def a_fork_breaks_the_group(cls):
    os.register_at_fork(after_in_parent=lambda: memory.update(broken=True))
    outputs_of("allreduce")(lambda tensor: "broken" in memory and tensor.zero_())(cls)


@defect(instead("barrier"), "lifecycle.leaves_early", size=4)
def the_first_rank_to_leave_ends_the_others(self, opts=None):
    work = self.gloo.barrier(opts)
    if self.rank() == 0:
        return work
    work.wait()
    return Late(lambda: os._exit(1))


# Apply these when the module is imported, before there is a class.
AT_IMPORT = {"the_import_prints", "the_import_starts_a_thread", "the_exit_of_a_process_crashes"}


# Failures.
@defect(
    with_timeout,
    "failure.timeout_of_all_reduce",
    "failure.timeout_of_barrier",
    "failure.timeout_of_recv",
    "failure.a_rank_that_never_comes",
    "failure.other_operation",
)
def the_timeout_of_a_group_is_ignored(given):
    return _LONG


@defect(with_timeout, "failure.timeout_of_a_group", "failure.late_within_the_timeout")
def the_timeout_is_always_one_second(given):
    return timedelta(seconds=1)


@defect(with_timeout, "failure.timeout_of_a_group", "lifecycle.options")
def sub_groups_have_the_timeout_of_the_default_group(given):
    return memory.setdefault("timeout", given)


@defect(instead("set_timeout"), "failure.timeout_that_is_changed")
def the_timeout_of_a_group_cannot_be_changed(self, timeout):
    return None


@defect(wait_of_all_reduce, "failure.after_the_others_have_failed")
def the_last_rank_does_not_notice_that_it_is_late(self, timeout=timedelta(0)):
    try:
        return self.work.wait(timeout)
    except RuntimeError:
        if dist.get_rank() < dist.get_world_size() - 1:
            raise
        return True


@defect(wait_of_all_reduce, "failure.timeout_of_wait")
def the_timeout_of_wait_is_ignored(self, timeout=None):
    return self.work.wait(_LONG)


def at_error(*operations):
    """Call `function()` when the operation or a wait raises; its result is that of the wait."""

    def place(function):
        def wait(self, timeout=timedelta(0)):
            try:
                return self.work.wait(timeout)
            except RuntimeError:
                return function()

        changed = type("Changed", (Wrapped,), {"wait": wait})

        @around(*operations)
        def install(call, group, *arguments):
            try:
                return changed(call(*arguments))
            except (RuntimeError, ValueError):
                function()
                return Done()

        return install

    return place


@defect(
    at_error(*_WITH_INPUTS, "allreduce", "broadcast", "barrier", "recv"),
    *checks_of("failure", "killed_all_reduce killed_all_reduce_large killed_async_and_wait"),
    *checks_of("failure", "killed_all_gather killed_barrier killed_recv exits_recv"),
    *checks_of("failure", "timeout_of_barrier timeout_of_async_and_wait timeout_of_all_gather"),
    *checks_of("failure", "timeout_of_broadcast too_few_outputs too_many_outputs another_dtype"),
    *checks_of("failure", "too_small_an_output inputs_that_do_not_divide too_few_inputs"),
    *checks_of("failure", "splits_that_do_not_fit a_rank_that_does_not_exist"),
)
def errors_are_swallowed():
    return True


@defect(
    at_error("allreduce", "broadcast"),
    "failure.killed_broadcast",
    "failure.timeout_of_all_reduce",
)
def errors_have_no_text():
    raise RuntimeError("")


@defect(at_error("allreduce"), "failure.killed_all_reduce", "failure.exits_all_reduce")
def a_lost_rank_is_not_noticed():
    time.sleep(60)


add(
    "a_loss_during_an_operation_ends_the_process",
    at_error("allreduce"),
    os.abort,
    "failure.killed_during_an_operation",
)


@defect(
    future_of_all_reduce,
    "failure.error_in_the_future",
    "failure.killed_future",
    "failure.timeout_of_future",
)
def a_failed_work_completes_its_future(self):
    future = torch.futures.Future()

    def run():
        with contextlib.suppress(RuntimeError):
            self.work.wait()
        future.set_result([torch.zeros(4)])

    start_thread(run)
    return future


@defect(instead("shutdown"), "failure.destroy_after_a_loss")
def destroying_a_failed_group_hangs(self):
    time.sleep(60)


@defect(before("allgather"), "failure.too_few_outputs")
def a_wrong_argument_crashes(group, outputs, inputs, opts):
    if len(outputs[0]) != group.size():
        os.kill(os.getpid(), signal.SIGSEGV)


@defect(in_class, "failure.works_after_a_refusal")
def a_refused_call_breaks_the_group(cls):
    def note(group, outputs, inputs, opts):
        memory["refused"] = len(outputs[0]) != group.size()

    before("allgather")(note)(cls)
    outputs_of("allreduce")(lambda tensor: memory.get("refused") and tensor.zero_())(cls)


# Debugging.
SEQUENCE = "debug.sequence_number"


@defect(instead("_get_sequence_number_for_group"), SEQUENCE)
def the_sequence_number_stands_still(self):
    return 7


@defect(instead("_get_sequence_number_for_group"), SEQUENCE)
def the_sequence_number_differs_between_ranks(self):
    return self.gloo._get_sequence_number_for_group() * (self.rank() + 1)


@defect(instead("monitored_barrier"), "debug.monitored_barrier")
def monitored_barrier_does_not_wait(self, timeout=None, wait_all_ranks=False):
    return None


@defect(instead("monitored_barrier"), "debug.monitored_barrier_names_the_rank")
def monitored_barrier_names_another_rank(self, timeout=None, wait_all_ranks=False):
    try:
        self.gloo.monitored_barrier(timeout, wait_all_ranks)
    except RuntimeError as error:
        text = str(error).replace(f"ank {self.size() - 1}", "ank 0")
        raise RuntimeError(text) from None


@defect(instead("monitored_barrier"), "debug.monitored_barrier_names_the_rank", size=4)
def monitored_barrier_names_one_rank_of_two(self, timeout=None, wait_all_ranks=False):
    self.gloo.monitored_barrier(timeout)


@defect(at_creation, "debug.detail")
def debug_level_detail_is_an_error(group):
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        raise RuntimeError("")


@defect(in_class, "failure.detail_finds_another_operation")
def debug_level_detail_checks_nothing(cls):
    dist.distributed_c10d._create_process_group_wrapper = lambda gloo, *_: gloo


# Features on top of the backend go through PyTorch's C++, and through the same methods.


# These compute with all_reduce, mostly in another group or through another layer.
ALL_REDUCING = (
    *checks_of("lifecycle", "one_store one_rank init_methods chosen_for_a_device beside_gloo"),
    *checks_of("groups", "new_subgroups device_mesh split"),
    *checks_of("features", "ddp_trains ddp_hooks ddp_buckets ddp_unused ddp_join averaging"),
    *checks_of("features", "tensor_parallel dtensor functional compiled compiled_ddp"),
    "lifecycle.default_timeout",
    "debug.nan_check",
)


@defect(outputs_of("allreduce"), *ALL_REDUCING)
def sums_are_one_percent_too_large(tensor):
    if tensor.is_floating_point():
        tensor.mul_(1.01)


@defect(instead("broadcast"), "features.ddp_starts_alike")
def the_first_broadcast_of_a_group_is_lost(self, tensors, opts):
    if self in memory or not tensors[0].is_floating_point():
        return self.gloo.broadcast(tensors, opts)
    memory[self] = True
    return self.gloo.broadcast([tensor.clone() for tensor in tensors], opts)


@defect(
    in_class,
    "objects.all_gather_object",
    "objects.objects_in_a_sub_group",
    "features.checkpoint",
)
def objects_of_other_sizes_are_cut(cls):
    def change(tensor):
        if tensor.dtype == torch.uint8:
            tensor.view(-1)[-500:] = 0

    after("all_gather_single")(lambda group, output, *_: change(output))(cls)
    after("allgather")(lambda group, outputs, *_: change(outputs[0][-1]))(cls)


@defect(
    outputs_of("scatter", "gather", "broadcast", "recv"),
    "objects.scatter_object_list",
    "objects.gather_object",
    "objects.broadcast_object_list",
    "messages.objects_between_two_ranks",
)
def bytes_are_sent_as_signed_numbers(tensor):
    if tensor.dtype == torch.uint8:
        tensor.bitwise_and_(0x7F)


# Only drawn inputs have what these need; see checks/generated.py of the suite.


def lose_last_of_a_matrix(self, timeout=timedelta(0)):
    """Other checks have matrices of 4 bytes an element, or with 126 elements or more."""
    result = self.work.wait(timeout)
    for tensor in tensors_of(self.arguments[0])[-1:]:
        if tensor.itemsize != 4 and tensor.dim() != 1 and tensor.numel() < 100:
            bump(tensor, -1)
    return result


for _name in (*_WRITING[:-1], *_WITH_INPUTS[:-1]):
    _public = _PUBLIC.get(_name, _name)
    _text = f"{_public}_loses_the_last_of_a_small_matrix_not_of_4_bytes_an_element"
    add(_text, work_method("wait", _name), lose_last_of_a_matrix, f"generated.{_public}")


@defect(after("all_to_all_single"), "generated.all_to_all_single")
def a_split_of_nothing_shifts_what_follows_by_2_bytes(group, output, tensor, receiving, *_):
    if output.itemsize == 2 and 0 in receiving and any(receiving):
        bump(output, -1)


@defect(work_method("wait", "recv"), "generated.messages")
def messages_of_2_bytes_an_element_end_early_with_a_tag(self, timeout=timedelta(0)):
    result = self.work.wait(timeout)
    tensors, _, tag = self.arguments
    if tag and tensors[0].itemsize == 2:
        bump(tensors[0], -1)
    return result


@defect(in_class, "generated.sequences")
def two_roots_of_two_groups_follow_each_other(cls):
    """With a root in each of two new groups, the second operation gets another first element."""

    def change(group, outputs, *_):
        before, memory["rooted"] = memory.get("rooted", group), group
        if group is not before and group.number and before.number:
            for tensor in tensors_of(outputs)[:1]:
                bump(tensor, 0)

    creation_hooks.append(lambda group: memory.pop("rooted", None))
    after("broadcast", "reduce", "gather", "scatter")(change)(cls)


@defect(before("all_to_all_single"), "generated.limits")
def sums_of_splits_are_cut_to_32_bits(group, output, tensor, receiving, sending, opts):
    if sum(receiving) != output.shape[0] and sum(receiving) % (1 << 32) == output.shape[0]:
        ctypes.string_at(0)


def create(opts, _):
    """Make a group of gloo, with the defect that the variable C10D_DEFECT names."""
    name = os.environ.get("C10D_DEFECT", "")
    if not hasattr(create, "cls"):
        create.cls = type("Defective", (Group,), {})
        if name and name not in AT_IMPORT:
            DEFECTS[name].install(create.cls)
    timeout = opts.timeout
    for hook in timeout_hooks:
        timeout = hook(timeout)
    # Gloo would find the addresses of an earlier start, whose processes may have been killed.
    generation = (opts.store.add("starts", 1) - 1) // opts.group_size
    store = dist.PrefixStore(str(generation), opts.store)
    gloo = ProcessGroupGloo(store, opts.group_rank, opts.group_size, timeout=timeout)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        gloo = dist.distributed_c10d._create_process_group_wrapper(
            gloo, opts.group_id, opts.store, opts.group_rank, opts.group_size, timeout
        )
    group = create.cls(opts.store, opts.group_rank, opts.group_size, gloo)
    group.made_for = opts.process_group.bound_device_id
    group.ranks, group.generation = opts.global_ranks_in_group, generation
    for hook in creation_hooks:
        hook(group)
    group.number = next(_numbers)
    return group


dist.Backend.register_backend("defective", create, extended_api=True, devices=["cpu"])
if os.environ.get("C10D_DEFECT") in AT_IMPORT:
    DEFECTS[os.environ["C10D_DEFECT"]].install(None)
