"""A backend, "defective", which is gloo with one mistake that the variable C10D_DEFECT names.

Each defect is a small function that changes the class of the groups, or the way they are made. The
table `DEFECTS` has for each name the checks of the suite that must notice it.
"""

import ctypes
import itertools
import os
import signal
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo
from torch.distributed import ReduceOp

DEFECTS = {}  # name -> (function, ids of the checks, world size)
_GLOO = dist.ProcessGroup.BackendType.GLOO
_numbers = itertools.count()  # of the groups of this process

# The operation's outputs and inputs, as lists of tensors, from its arguments.
_OUTPUTS = {
    "allreduce": lambda tensors, *_: tensors,
    "broadcast": lambda tensors, *_: tensors,
    "reduce": lambda tensors, *_: tensors,
    "allgather": lambda outputs, *_: outputs[0],
    "all_gather_single": lambda output, *_: [output],
    "gather": lambda outputs, *_: outputs[0] if outputs else [],
    "scatter": lambda outputs, *_: outputs,
    "reduce_scatter": lambda outputs, *_: outputs,
    "reduce_scatter_single": lambda output, *_: [output],
    "alltoall": lambda outputs, *_: outputs,
    "all_to_all_single": lambda output, *_: [output],
    "recv": lambda tensors, *_: tensors,
}
_INPUTS = {
    "allgather": lambda _, inputs, *__: inputs,
    "all_gather_single": lambda _, tensor, *__: [tensor],
    "gather": lambda _, inputs, *__: inputs,
    "reduce_scatter": lambda _, inputs, *__: inputs[0],
    "reduce_scatter_single": lambda _, tensor, *__: [tensor],
    "alltoall": lambda _, inputs, *__: inputs,
    "all_to_all_single": lambda _, tensor, *__: [tensor],
    "send": lambda tensors, *_: tensors,
}
_PUBLIC = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}


class Group(dist.ProcessGroup):
    """A group whose calls go to gloo, unless a defect has put a method in between."""

    def __init__(self, store, rank, size, gloo):
        super().__init__(store, rank, size)
        self.gloo = gloo
        self._set_default_backend(_GLOO)
        self._register_backend(torch.device("cpu"), _GLOO, gloo)


def _forward(name):
    """Return a method that calls gloo.

    Without it, PyTorch's PyProcessGroup would call gloo and keep the GIL, which one thread of gloo
    needs to free a tensor while it holds the lock of the queue: a deadlock now and then.
    """

    def method(self, *arguments, **options):
        return gloo_of(self, name)(*arguments, **options)

    return method


for _name in (*_OUTPUTS, "send", "recv_anysource", "barrier", "allreduce_coalesced"):
    setattr(Group, _name, _forward(_name))
for _name in ("all_gather_single_coalesced", "reduce_scatter_single_coalesced"):
    if hasattr(ProcessGroupGloo, _name):
        setattr(Group, _name, _forward(_name))


def defect(*checks, size=2):
    """Put the decorated function into the table, with the checks that must notice it."""

    def register(function):
        DEFECTS[function.__name__] = function, checks, size
        return function

    return register


def named(name, function, *checks, size=2):
    """Put a function that is made in a loop into the table."""
    function.__name__ = name
    defect(*checks, size=size)(function)


def gloo_of(group, name):
    """Return the method of gloo; some have another name on older releases."""
    older = {"all_gather_single": "_allgather_base", "all_to_all_single": "alltoall_base"}
    older["reduce_scatter_single"] = "_reduce_scatter_base"
    return getattr(group.gloo, name, None) or getattr(group.gloo, older[name])


def after(name, change):
    """Return a defect that waits for an operation and then calls `change(group, *arguments)`."""

    def install(cls):
        def method(self, *arguments):
            work = gloo_of(self, name)(*arguments)
            work.wait()
            change(self, *arguments)
            return Finished(work)  # a second wait of gloo may write the output again

        setattr(cls, name, method)

    return install


def before(name, change):
    """Return a defect that calls an operation with `change(group, *arguments)` in their place."""

    def install(cls):
        def method(self, *arguments):
            return gloo_of(self, name)(*change(self, *arguments))

        setattr(cls, name, method)

    return install


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


class Finished(Wrapped):
    """A work that is complete."""

    def wait(self, timeout=timedelta(0)):
        return True

    def is_completed(self):
        return True


def works(names, **methods):
    """Return a defect that returns works with other methods."""

    def install(cls):
        changed = type("Changed", (Wrapped,), methods)
        for name in names:

            def method(self, *arguments, _name=name, **options):
                return changed(gloo_of(self, _name)(*arguments, **options), *arguments)

            setattr(cls, name, method)

    return install


def _bump(tensor, place):
    """Change one element of a tensor, of whatever dtype and layout."""
    if tensor.numel():
        flat = tensor.flatten()
        flat[place] = ~flat[place] if tensor.dtype == torch.bool else flat[place] + 1
        tensor.copy_(flat.view(tensor.shape))


COLLECTIVES = [name for name in _OUTPUTS if name != "recv"]

# Values: every operation, at its last element, and its outputs without any change.
for _name in COLLECTIVES:
    _public = _PUBLIC.get(_name, _name)

    def _last(group, *arguments, _name=_name):
        for tensor in _OUTPUTS[_name](*arguments)[-1:]:
            _bump(tensor, -1)

    named(f"{_public}_has_a_wrong_last_element", after(_name, _last), f"values.{_public}_types")

for _name in (
    "allgather",
    "all_gather_single",
    "gather",
    "reduce_scatter",
    "reduce_scatter_single",
    "alltoall",
    "all_to_all_single",
):
    _public = _PUBLIC.get(_name, _name)

    def _spoil(group, *arguments, _name=_name):
        _bump(_INPUTS[_name](*arguments)[0], 0)

    named(f"{_public}_changes_its_input", after(_name, _spoil), f"values.{_public}_types")

for _name in ("broadcast", "allreduce", "allgather", "scatter", "alltoall"):
    _public = _PUBLIC.get(_name, _name)

    def _around(group, *arguments, _name=_name):
        for tensor in _OUTPUTS[_name](*arguments):
            end = tensor.storage_offset() + tensor.numel()
            if tensor.numel() and end < tensor.untyped_storage().nbytes() // tensor.itemsize:
                tensor.as_strided((1,), (1,), end).fill_(1)

    named(
        f"{_public}_writes_one_element_too_much", after(_name, _around), f"values.{_public}_layouts"
    )


def _cut(limit):
    def cut(group, tensors, *_):
        for tensor in tensors:
            if tensor.numel() > limit:
                tensor.view(-1)[limit:] = 0

    return cut


named("all_reduce_ends_after_64_KiB", after("allreduce", _cut(16384)), "values.all_reduce_sizes")
named("all_reduce_ends_after_16_MiB", after("allreduce", _cut(1 << 22)), "values.all_reduce_sizes")
named("broadcast_ends_after_16_MiB", after("broadcast", _cut(1 << 22)), "values.broadcast_sizes")
named("all_reduce_ends_after_4_MiB", after("allreduce", _cut(1 << 20)), "values.all_reduce_sizes")
named("broadcast_ends_after_4_MiB", after("broadcast", _cut(1 << 20)), "values.broadcast_sizes")


def _round_down(group, tensors, *_):
    flat = tensors[0].view(-1)
    flat[len(flat) // 4 * 4 :] = 0


named(
    "all_reduce_leaves_the_tail_of_a_vector",
    after("allreduce", _round_down),
    "values.all_reduce_types",
)


def _op(source, target):
    def change(group, tensors, opts, *_):
        if opts.reduceOp == source:
            opts.reduceOp = target
        return tensors, opts

    return change


named(
    "all_reduce_sums_for_a_mean",
    before("allreduce", _op(ReduceOp.AVG, ReduceOp.SUM)),
    "values.all_reduce_types",
)
named(
    "all_reduce_takes_max_for_min",
    before("allreduce", _op(ReduceOp.MIN, ReduceOp.MAX)),
    "values.all_reduce_types",
)
named(
    "all_reduce_adds_for_a_product",
    before("allreduce", _op(ReduceOp.PRODUCT, ReduceOp.SUM)),
    "values.all_reduce_types",
)
named(
    "reduce_takes_bor_for_bxor",
    before("reduce", _op(ReduceOp.BXOR, ReduceOp.BOR)),
    "values.reduce_types",
)
named(
    "all_reduce_ignores_the_factor_of_a_sum",
    before(
        "allreduce",
        lambda group, tensors, opts: (
            tensors,
            _plain_sum() if opts.reduceOp == ReduceOp.PREMUL_SUM else opts,
        ),
    ),
    "values.premultiplied",
)


def _plain_sum():
    return dist.AllreduceOptions()


def _through(dtype, wide, *ops):
    """Return a defect that reduces one dtype, with some operations, as if it were another one."""

    def install(cls):
        def allreduce(self, tensors, opts):
            tensor = tensors[0]
            if tensor.dtype != dtype or (ops and not any(opts.reduceOp == op for op in ops)):
                return self.gloo.allreduce(tensors, opts)
            other = tensor.to(wide)
            work = self.gloo.allreduce([other], opts)
            work.wait()
            tensor.copy_(other.to(dtype))
            return work

        cls.allreduce = allreduce

    return install


named("int64_is_added_as_double", _through(torch.int64, torch.float64), "values.all_reduce_types")
named("int32_is_added_as_float", _through(torch.int32, torch.float32), "values.all_reduce_types")
named("uint8_is_compared_as_int8", _through(torch.uint8, torch.int8), "values.all_reduce_types")
named(
    "float64_is_added_as_float", _through(torch.float64, torch.float32), "values.all_reduce_types"
)
named("int8_is_added_as_bool", _through(torch.int8, torch.bool), "values.all_reduce_types")


for _name, _dtype, _other, *_ops in (
    ("the_minimum_of_int64_goes_through_double", torch.int64, torch.float64, ReduceOp.MIN),
    ("the_product_of_int64_goes_through_double", torch.int64, torch.float64, ReduceOp.PRODUCT),
    ("the_maximum_of_float64_goes_through_float", torch.float64, torch.float32, ReduceOp.MAX),
    ("the_maximum_of_bfloat16_goes_through_half", torch.bfloat16, torch.float16, ReduceOp.MAX),
    ("int16_is_added_as_half", torch.int16, torch.float16, ReduceOp.SUM),
    ("int32_is_joined_as_one_byte", torch.int32, torch.uint8, ReduceOp.BXOR, ReduceOp.BAND),
):
    named(_name, _through(_dtype, _other, *_ops), "values.all_reduce_types")


@defect("values.broadcast_types", "values.all_gather_types")
def float32_is_sent_as_float16(cls):
    def change(name):
        def cut(group, *arguments):
            for tensor in _OUTPUTS[name](*arguments):
                if tensor.dtype == torch.float32:
                    tensor.copy_(tensor.half().float())

        return cut

    for name in ("broadcast", "allgather"):
        after(name, change(name))(cls)


@defect("values.reduce_scatter_types", "values.reduce_types")
def float32_is_added_as_bfloat16(cls):
    def change(group, tensors, *_):
        if tensors[0].dtype == torch.float32:
            tensors[0].copy_(tensors[0].bfloat16().float())

    after("reduce_scatter", change)(cls)
    after("reduce", change)(cls)


@defect("values.not_a_number")
def the_maximum_starts_at_the_lowest_number(cls):
    def allreduce(self, tensors, opts):
        tensor, op = tensors[0], opts.reduceOp
        work = self.gloo.allreduce(tensors, opts)
        work.wait()
        if op == ReduceOp.MAX and tensor.is_floating_point():
            tensor.clamp_(min=torch.finfo(tensor.dtype).min)
        return work

    cls.allreduce = allreduce


@defect("values.broadcast_types")
def broadcast_adds_zeros(cls):
    """What the receivers had may be NaN, which times 0 is NaN."""

    def broadcast(self, tensors, opts):
        if tensors[0].dtype != torch.float32:
            return self.gloo.broadcast(tensors, opts)
        tensors[0].mul_(float(opts.rootRank == self.rank()))
        return self.gloo.allreduce(tensors, _plain_sum())

    cls.broadcast = broadcast


@defect("groups.every_operation", size=4)
def a_mean_divides_by_the_number_of_all_ranks(cls):
    def allreduce(self, tensors, opts):
        mean = opts.reduceOp == ReduceOp.AVG
        work = self.gloo.allreduce(tensors, opts)
        if mean:
            work.wait()
            tensors[0].mul_(self.size() / dist.get_world_size())
        return work

    cls.allreduce = allreduce


@defect("values.all_reduce_sizes", size=4)
def the_last_of_fewer_elements_than_ranks_is_lost(cls):
    def change(group, tensors, *_):
        if 1 < tensors[0].numel() < group.size():
            tensors[0].view(-1)[-1:] = 0

    after("allreduce", change)(cls)


@defect("values.all_gather_types", "values.all_gather_sizes")
def gathered_tensors_are_replaced(cls):
    """As `tensor.set_` does: other views of the memory have what they had."""

    def allgather(self, outputs, inputs, opts):
        copies = [tensor.clone() for tensor in outputs[0]]
        work = self.gloo.allgather([copies], inputs, opts)
        work.wait()
        for tensor, copy in zip(outputs[0], copies, strict=True):
            if tensor.dtype == torch.float32 and tensor.shape[-1:] != (2,):  # not complex
                tensor.set_(copy)
            else:
                tensor.copy_(copy)
        return Finished(work)

    cls.allgather = allgather


for _name in ("allreduce", "allgather", "reduce_scatter", "alltoall"):

    def _odd(group, *arguments, _name=_name):
        if group.size() & (group.size() - 1):
            _bump(_OUTPUTS[_name](*arguments)[-1], -1)

    named(
        f"{_PUBLIC.get(_name, _name)}_needs_a_power_of_two",
        after(_name, _odd),
        "groups.every_operation",
        size=4,
    )


@defect("groups.alone")
def a_group_of_one_rank_leaves_its_output(cls):
    def reduce_scatter(self, *arguments):
        return Done() if self.size() == 1 else self.gloo.reduce_scatter(*arguments)

    cls.reduce_scatter = reduce_scatter


@defect("groups.on_a_bound_device")
def a_split_needs_what_gloo_lacks(cls):
    """Gloo supports splitting, and its class in Python has no perform_nocolor_split."""

    def hook(group):
        if group.made_for:
            group.bound_device_id = group.made_for

    _when_made(hook)


@defect("groups.mesh_on_a_bound_device", size=4)
def a_bound_group_has_one_sub_group(cls):
    def change(group, tensors, *_):
        if group.number > 1 and dist.group.WORLD.made_for:
            tensors[0].zero_()

    after("allreduce", change)(cls)


@defect("values.same_bits")
def bfloat16_is_cut_after_each_addition(cls):
    def allreduce(self, tensors, opts):
        work = self.gloo.allreduce(tensors, opts)
        work.wait()
        if tensors[0].dtype == torch.bfloat16:
            tensors[0].view(torch.int16).bitwise_and_(~0x3)
        return work

    cls.allreduce = allreduce


@defect("values.same_bits")
def every_rank_rounds_in_its_own_way(cls):
    def allreduce(self, tensors, opts):
        work = self.gloo.allreduce(tensors, opts)
        work.wait()
        if tensors[0].dtype == torch.float32 and self.rank() and tensors[0].numel():
            tensors[0].view(torch.int32).bitwise_xor_(1)
        return work

    cls.allreduce = allreduce


@defect("values.not_a_number")
def not_a_number_becomes_zero(cls):
    after("allreduce", lambda group, tensors, *_: tensors[0].nan_to_num_(0.0))(cls)


@defect("values.all_reduce_types")
def the_imaginary_part_is_lost(cls):
    """dist.all_reduce hands over complex tensors as real ones, with 2 numbers an element."""

    def change(group, tensors, *_):
        if tensors[0].dim() > 1 and tensors[0].shape[-1] == 2:
            tensors[0][..., 1] = 0

    after("allreduce", change)(cls)


@defect("values.all_gather_types")
def complex_numbers_are_conjugated(cls):
    def change(group, outputs, *_):
        for tensor in outputs[0]:
            if tensor.dim() > 1 and tensor.shape[-1] == 2:
                tensor[..., 1].neg_()

    after("allgather", change)(cls)


def _through_a_copy(make):
    """Return a defect whose all_reduce has a copy, which `make` lets a work write back."""

    def install(cls):
        def allreduce(self, tensors, opts):
            copies = [tensor.contiguous().clone() for tensor in tensors]
            work = make(tensors)(self.gloo.allreduce(copies, opts), tensors)
            work.copies = copies
            return work

        cls.allreduce = allreduce

    return install


class _Copying(Wrapped):
    """A work that writes its outputs when somebody waits for it."""

    def copy(self, *_):
        for target, source in zip(self.arguments[0], self.copies, strict=True):
            target.copy_(source)
        return self.arguments[0]

    def wait(self, timeout=timedelta(0)):
        done = self.work.wait(timeout)
        self.copy()
        return done


class _CopyingFuture(_Copying):
    """A work that writes its outputs also for a future."""

    def get_future(self):
        return self.work.get_future().then(self.copy)


named(
    "strided_outputs_are_written_by_wait_alone",
    _through_a_copy(lambda tensors: _CopyingFuture if tensors[0].is_contiguous() else _Copying),
    "values.all_reduce_layouts",
)
named(
    "a_completed_work_has_not_written_its_output",
    _through_a_copy(lambda tensors: _CopyingFuture),
    "values.all_reduce_sizes",
)


@defect("values.all_gather_layouts")
def the_layout_is_taken_for_contiguous(cls):
    def change(group, outputs, inputs, opts):
        flat = [x.as_strided((x.numel(),), (1,), x.storage_offset()) for x in outputs[0]]
        if any(not x.is_contiguous() for x in outputs[0]):
            raw = inputs[0]
            inputs = [raw.as_strided((raw.numel(),), (1,), raw.storage_offset())]
            return [flat], inputs, opts
        return outputs, inputs, opts

    before("allgather", change)(cls)


@defect("values.expanded_input")
def a_dense_input_is_sent_as_it_lies(cls):
    def change(group, outputs, inputs, opts):
        tensor = inputs[0]
        if outputs[0][0].is_contiguous() and tensor.numel() == tensor.untyped_storage().size() // 4:
            inputs = [tensor.as_strided(tensor.shape, outputs[0][0].stride())]
        return outputs, inputs, opts

    before("allgather", change)(cls)


@defect("values.all_reduce_layouts")
def the_offset_of_a_view_is_ignored(cls):
    def change(group, tensors, opts):
        tensor = tensors[0]
        return [tensor.as_strided(tensor.shape, tensor.stride(), 0)], opts

    before("allreduce", change)(cls)


@defect("values.all_gather_layouts")
def an_empty_tensor_is_an_error(cls):
    def change(group, outputs, inputs, opts):
        if not inputs[0].numel():
            raise RuntimeError("division by zero")
        return outputs, inputs, opts

    before("allgather", change)(cls)


@defect("values.broadcast_types")
def one_rank_refuses_and_the_others_wait(cls):
    def change(group, tensors, opts):
        if tensors[0].dtype == torch.int64 and group.rank() == 0:
            raise ValueError("broadcast: the dtype int64 is not supported")
        return tensors, opts

    before("broadcast", change)(cls)


@defect("values.broadcast_layouts")
def an_empty_tensor_crashes(cls):
    def change(group, tensors, opts):
        if not tensors[0].numel():
            ctypes.string_at(0)
        return tensors, opts

    before("broadcast", change)(cls)


@defect("values.all_reduce_layouts")
def an_empty_tensor_hangs(cls):
    def change(group, tensors, opts):
        while not tensors[0].numel():
            time.sleep(1)
        return tensors, opts

    before("allreduce", change)(cls)


def _root(shift):
    def change(group, tensors, opts, *rest):
        opts.rootRank = shift(opts.rootRank, group)
        return tensors, opts, *rest

    return change


named(
    "broadcast_takes_the_next_root",
    before("broadcast", _root(lambda root, group: (root + 1) % group.size())),
    "values.broadcast_roots",
)
named(
    "broadcast_is_always_from_rank_0",
    before("broadcast", _root(lambda root, group: 0)),
    "values.broadcast_roots",
)
named(
    "reduce_is_always_to_rank_0",
    before("reduce", _root(lambda root, group: 0)),
    "values.reduce_roots",
)


@defect("groups.roots_in_a_group", size=4)
def the_root_is_taken_for_a_global_rank(cls):
    def change(group, tensors, opts):
        if group.size() < dist.get_world_size():
            opts.rootRank = max(0, opts.rootRank - 1)
        return tensors, opts

    before("broadcast", change)(cls)


@defect("values.gather_roots", "values.gather_types")
def gather_is_in_the_reverse_order(cls):
    before(
        "gather",
        lambda group, outputs, inputs, opts: (
            [outputs[0][::-1]] if outputs else outputs,
            inputs,
            opts,
        ),
    )(cls)


@defect("values.all_gather_types")
def all_gather_is_in_the_reverse_order(cls):
    before("allgather", lambda group, outputs, inputs, opts: ([outputs[0][::-1]], inputs, opts))(
        cls
    )


@defect("values.all_gather_types")
def all_gather_forgets_the_own_tensor(cls):
    after("allgather", lambda group, outputs, *_: outputs[0][group.rank()].zero_())(cls)


@defect("values.all_gather_single_types")
def stale_padding_is_sent(cls):
    """As if each rank's part began at a multiple of 16 bytes of a buffer."""

    def change(group, output, *_):
        part = output.numel() // group.size()
        if part % 4 and group.size() > 1:
            output.view(-1)[part] = output.view(-1)[part - 1]

    after("all_gather_single", change)(cls)


@defect("values.scatter_types", "values.scatter_roots")
def scatter_is_rotated(cls):
    before(
        "scatter",
        lambda group, outputs, inputs, opts: (
            outputs,
            [[*inputs[0][1:], inputs[0][0]]] if inputs else inputs,
            opts,
        ),
    )(cls)


@defect("values.reduce_scatter_types")
def reduce_scatter_keeps_the_wrong_part(cls):
    before(
        "reduce_scatter", lambda group, outputs, inputs, opts: (outputs, [inputs[0][::-1]], opts)
    )(cls)


@defect("values.all_to_all_types")
def all_to_all_is_not_transposed(cls):
    def change(group, outputs, inputs, *_):
        for output, content in zip(outputs, inputs, strict=True):
            output.copy_(content)

    after("alltoall", change)(cls)


@defect("values.uneven_all_to_all_single")
def uneven_splits_are_taken_for_even(cls):
    def change(group, output, tensor, receiving, sending, opts):
        return output, tensor, [], [], opts

    before("all_to_all_single", change)(cls)


@defect("values.uneven_all_to_all_single")
def the_last_split_is_forgotten(cls):
    def change(group, output, tensor, receiving, *_):
        if receiving and output.numel():
            output[output.shape[0] - receiving[-1] :] = 99

    after("all_to_all_single", change)(cls)


@defect("values.uneven_all_to_all_single")
def uneven_splits_are_counted_in_words_of_4_bytes(cls):
    def change(group, output, tensor, receiving, *_):
        if receiving and output.itemsize > 4:
            output.view(-1)[output.numel() * 4 // output.itemsize :] = 99

    after("all_to_all_single", change)(cls)


@defect("values.uneven_all_to_all_single")
def uneven_splits_are_kept_for_tensors_of_one_size(cls):
    kept = {}

    def change(group, output, tensor, receiving, sending, opts):
        sizes = output.shape, tensor.shape, bool(receiving)
        return output, tensor, *kept.setdefault(sizes, (receiving, sending)), opts

    before("all_to_all_single", change)(cls)


@defect("values.in_place")
def reduce_scatter_single_clears_its_output_first(cls):
    before(
        "reduce_scatter_single",
        lambda group, output, tensor, opts: (output.zero_(), tensor, opts),
    )(cls)


@defect("values.in_place")
def all_gather_single_clears_its_output_first(cls):
    before("all_gather_single", lambda group, output, tensor, opts: (output.zero_(), tensor, opts))(
        cls
    )


@defect("values.barrier_waits")
def barrier_does_not_wait(cls):
    def barrier(self, opts=None):
        return Done()

    cls.barrier = barrier


@defect("groups.members", size=4)
def the_barrier_of_a_sub_group_does_not_wait(cls):
    def barrier(self, opts=None):
        return Done() if self.size() < dist.get_world_size() else self.gloo.barrier(opts)

    cls.barrier = barrier


@defect("groups.members", size=4)
def the_barrier_of_a_sub_group_waits_for_all_ranks(cls):
    world = []
    _when_made(lambda group: world or world.append(group.gloo))
    cls.barrier = lambda self, opts=None: world[0].barrier(dist.BarrierOptions())


class Done(dist.distributed_c10d.Work):
    """A work that has nothing to do."""

    def wait(self, timeout=timedelta(0)):
        return True

    def is_completed(self):
        return True


@defect("values.coalesced")
def only_the_first_coalesced_tensor_is_reduced(cls):
    def allreduce_coalesced(self, tensors, opts):
        return self.gloo.allreduce_coalesced(tensors[:1], opts)

    cls.allreduce_coalesced = allreduce_coalesced


@defect("values.coalesced")
def coalesced_tensors_are_always_added(cls):
    def allreduce_coalesced(self, tensors, opts):
        opts.reduceOp = ReduceOp.SUM
        return self.gloo.allreduce_coalesced(tensors, opts)

    cls.allreduce_coalesced = allreduce_coalesced


@defect("values.coalesced")
def only_the_last_coalesced_tensor_is_gathered(cls):
    def all_gather_single_coalesced(self, outputs, inputs, opts):
        return gloo_of(self, "all_gather_single")(outputs[-1], inputs[-1], opts)

    cls.all_gather_single_coalesced = all_gather_single_coalesced
    cls.allgather_into_tensor_coalesced = all_gather_single_coalesced


# Messages.
@defect("messages.tags_choose_the_message")
def tags_are_ignored(cls):
    _tag(cls, lambda tag: 0)


@defect("messages.tags_choose_the_message")
def tags_are_cut_to_one_bit(cls):
    _tag(cls, lambda tag: tag % 2)


def _tag(cls, change):
    def send(self, tensors, rank, tag):
        return self.gloo.send(tensors, rank, change(tag))

    def recv(self, tensors, rank, tag):
        return self.gloo.recv(tensors, rank, change(tag))

    cls.send, cls.recv = send, recv


named(
    "tags_are_cut_to_a_byte",
    lambda cls: _tag(cls, lambda tag: tag % 256),
    "messages.tags_choose_the_message",
)
named(
    "tags_are_cut_to_16_bits",
    lambda cls: _tag(cls, lambda tag: tag % (1 << 16)),
    "messages.tags_choose_the_message",
)


@defect("messages.messages_stay_in_order")
def messages_overtake_each_other(cls):
    """Every second message is sent before the one before it."""

    def send(self, tensors, rank, tag):
        held = getattr(self, "held", None)
        self.held = None if held else (tensors, rank, tag)
        if not held:
            return Late(lambda: self.release())
        works = [self.gloo.send(tensors, rank, tag), self.gloo.send(*held)]
        return Late(lambda: [work.wait() for work in works])

    def release(self):
        if getattr(self, "held", None):
            held, self.held = self.held, None
            self.gloo.send(*held).wait()

    cls.send, cls.release = send, release


class Late(Done):
    """A work that does something when somebody waits for it."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def wait(self, timeout=timedelta(0)):
        self.action()
        return True


@defect("messages.any_source", size=4)
def any_source_returns_the_wrong_rank(cls):
    works(["recv_anysource"], _source_rank=lambda self: 0)(cls)


@defect("messages.any_source", size=4)
def any_source_takes_only_the_next_rank(cls):
    def recv_anysource(self, tensors, tag):
        work = self.gloo.recv(tensors, (self.rank() + 1) % self.size(), tag)
        return type(
            "Next", (Wrapped,), {"_source_rank": lambda _: (self.rank() + 1) % self.size()}
        )(work)

    cls.recv_anysource = recv_anysource


@defect("messages.any_source_with_tags")
def any_source_ignores_the_tag(cls):
    def recv_anysource(self, tensors, tag):
        return self.gloo.recv_anysource(tensors, 1 if tag == 2 else 2 if tag == 1 else tag)

    cls.recv_anysource = recv_anysource


@defect("messages.send_recv_types")
def recv_leaves_the_last_element(cls):
    after("recv", lambda group, tensors, *_: tensors[0].view(-1)[-1:].zero_())(cls)


def _received(change):
    """Return a defect that changes what was received, when somebody waits for it."""

    def wait(self, timeout=timedelta(0)):
        done = self.work.wait(timeout)
        change(self, *self.arguments)
        return done

    return works(["recv"], wait=wait)


named("recv_ends_after_16_MiB", _received(_cut(1 << 22)), "messages.send_recv_sizes")


@defect("messages.send_recv_types")
def messages_of_float32_are_sent_as_float16(cls):
    def change(_, tensors, *rest):
        if tensors[0].dtype == torch.float32:
            tensors[0].copy_(tensors[0].half().float())

    _received(change)(cls)


@defect("messages.send_recv_types")
def send_changes_its_tensor(cls):
    after("send", lambda group, tensors, *_: _bump(tensors[0], 0))(cls)


@defect("messages.send_recv_types")
def recv_returns_before_the_data(cls):
    works(["recv"], wait=lambda self, timeout=None: True)(cls)


@defect("messages.a_receive_waits_for_its_tag")
def a_receive_is_complete_at_once(cls):
    works(["recv"], is_completed=lambda self: True)(cls)


@defect("messages.both_directions")
def isend_waits_for_the_receiver(cls):
    """A rendezvous: the send ends when the receiver has answered."""

    def send(self, tensors, rank, tag):
        work = self.gloo.send(tensors, rank, tag)
        work.wait()
        self.gloo.recv([torch.zeros(1)], rank, 1 << 24).wait()
        return work

    def recv(self, tensors, rank, tag):
        work = self.gloo.recv(tensors, rank, tag)
        work.wait()
        self.gloo.send([torch.zeros(1)], rank, 1 << 24).wait()
        return work

    cls.send, cls.recv = send, recv


@defect("messages.batch_of_several", "messages.batch_in_a_ring")
def only_the_first_part_of_a_message_is_sent(cls):
    after("recv", lambda group, tensors, *_: tensors[0].view(-1)[100:].zero_())(cls)


@defect("messages.messages_in_a_sub_group", "messages.any_source_in_a_sub_group", size=4)
def groups_share_the_channels_of_messages(cls):
    world = []
    _when_made(lambda group: world or world.append(group.gloo))

    def channels(self):
        return world[0] if self.size() == dist.get_world_size() else self.gloo

    for name in ("send", "recv", "recv_anysource"):
        method = lambda self, *x, name=name: getattr(channels(self), name)(*x)  # noqa: E731
        setattr(cls, name, method)


@defect("messages.messages_in_a_sub_group", size=4)
def the_receiver_is_taken_for_a_global_rank(cls):
    def recv(self, tensors, rank, tag):
        if self.size() < dist.get_world_size():
            rank = (rank + 1) % self.size()
        return self.gloo.recv(tensors, rank, tag)

    cls.recv = recv


@defect("messages.both_directions", "works.completed_after_wait")
def works_of_messages_and_barriers_are_never_complete(cls):
    works(["send", "recv", "barrier"], is_completed=lambda self: False)(cls)


# Works and futures.
@defect("works.no_completion_before_arrival")
def works_are_complete_at_once(cls):
    works(["allreduce", "allgather", "barrier"], is_completed=lambda self: True)(cls)


@defect("works.completed_after_wait")
def works_are_never_complete(cls):
    works(["allreduce"], is_completed=lambda self: False)(cls)


@defect("works.completed_after_wait")
def wait_returns_false(cls):
    works(["allreduce"], wait=lambda self, timeout=None: self.work.wait() and False)(cls)


@defect("works.many_in_flight", "values.all_reduce_sizes")
def wait_does_not_wait(cls):
    works(["allreduce"], wait=lambda self, timeout=None: True)(cls)


def _slots(name, count):
    """Return a defect that has so many slots, and spoils what is in flight beyond them."""

    def install(cls):
        flying = set()

        def wait(self, timeout=timedelta(0)):
            done = self.work.wait(timeout)
            flying.discard(id(self))
            if self.lost:
                self.arguments[0][0].zero_()
            return done

        changed = type("Changed", (Wrapped,), {"wait": wait})

        def method(self, *arguments):
            work = changed(gloo_of(self, name)(*arguments), *arguments)
            work.lost = len(flying) >= count
            flying.add(id(work))
            return work

        setattr(cls, name, method)

    return install


named("only_64_works_fit_at_once", _slots("allreduce", 64), "works.many_in_flight")
named("only_64_messages_fit_at_once", _slots("recv", 64), "messages.messages_stay_in_order")


def _without_waiting(name, is_early):
    """Return a defect whose works do not wait on some ranks: those that only give their data."""

    def install(cls):
        works = []  # gloo would cancel what nobody keeps

        def method(self, tensors, opts, *rest):
            leaves = is_early(self, opts) and tensors[0].dtype == torch.float32
            works.append(gloo_of(self, name)(tensors, opts, *rest))
            return Finished(works[-1]) if leaves else works[-1]

        setattr(cls, name, method)

    return install


named(
    "the_root_leaves_a_broadcast_too_early",
    _without_waiting("broadcast", lambda group, opts: opts.rootRank == group.rank()),
    "works.many_in_flight",
)
named(
    "ranks_leave_a_reduce_too_early",
    _without_waiting("reduce", lambda group, opts: opts.rootRank != group.rank()),
    "works.many_in_flight",
)
named(
    "a_send_is_over_before_its_data_are_read",
    _without_waiting("send", lambda group, target: True),
    "messages.a_late_receiver",
)
named(
    "wait_with_a_timeout_returns_false",
    works(
        ["broadcast"],
        wait=lambda self, timeout=timedelta(0): self.work.wait(timeout) and not timeout,
    ),
    "works.completed_after_wait",
)


@defect("works.completed_after_wait")
def a_second_wait_is_an_error(cls):
    def wait(self, timeout=None):
        if getattr(self, "waited", False):
            raise RuntimeError("")
        self.waited = True
        return self.work.wait()

    works(["broadcast"], wait=wait)(cls)


def _future(value):
    future = torch.futures.Future()
    future.set_result(value)
    return future


@defect("works.value_of_the_future", "features.ddp_trains")
def futures_have_no_value(cls):
    works(["allreduce"], get_future=lambda self: self.work.wait() and _future(None))(cls)


@defect("works.value_of_the_future")
def futures_have_a_tensor_in_place_of_the_list(cls):
    works(
        ["allreduce"],
        get_future=lambda self: self.work.get_future().then(lambda future: future.value()[0]),
    )(cls)


@defect("works.callbacks")
def futures_are_complete_before_the_data(cls):
    works(["allreduce"], get_future=lambda self: _future(self.arguments[0]))(cls)


@defect("works.value_of_the_future")
def futures_never_complete(cls):
    works(["allreduce"], get_future=lambda self: torch.futures.Future())(cls)


@defect("works.value_of_the_future")
def a_second_future_never_completes(cls):
    def get_future(self):
        self.taken, taken = True, getattr(self, "taken", False)
        return torch.futures.Future() if taken else self.work.get_future()

    works(["allreduce"], get_future=get_future)(cls)


@defect("works.dropped_works")
def works_that_nobody_keeps_are_cancelled(cls):
    def allreduce(self, tensors, opts):
        if not opts.asyncOp:
            return self.gloo.allreduce(tensors, opts)
        # It runs when somebody waits: rank 0 drops it, rank 1 runs it.
        if self.rank():
            return self.gloo.allreduce(tensors, opts)
        return Late(lambda: self.gloo.allreduce(tensors, opts).wait())

    cls.allreduce = allreduce


@defect("works.waiting_releases_the_gil")
def waiting_holds_the_gil(cls):
    def wait(self, timeout=None):
        while not self.work.is_completed():
            ctypes.PyDLL(None).usleep(900_000)  # PyDLL keeps the GIL
        return self.work.wait()

    works(["allreduce"], wait=wait)(cls)


@defect("works.call_in_another_thread", "works.wait_in_another_thread")
def only_the_first_thread_may_call(cls):
    first = threading.get_ident()

    def wait(self, timeout=None):
        if threading.get_ident() != first:
            raise RuntimeError("wrong thread")
        return self.work.wait()

    works(["allreduce", "broadcast"], wait=wait)(cls)


@defect("works.memory_stays")
def memory_is_kept_for_each_call(cls):
    kept = []

    def change(group, tensors, opts):
        kept.append(torch.ones(8192) + 1)
        return tensors, opts

    before("allreduce", change)(cls)


@defect("works.many_in_flight")
def the_256th_operation_is_wrong(cls):
    def change(group, tensors, *_):
        group.count = getattr(group, "count", 0) + 1
        if group.count == 256:
            tensors[0].zero_()

    after("allreduce", change)(cls)


def _for_each(name, action):
    return before(name, lambda group, *arguments: (action(), arguments)[1])


_kept = []
named(
    "memory_is_kept_for_each_message",
    _for_each("send", lambda: _kept.append(torch.ones(8192) + 1)),
    "works.memory_stays",
)
named(
    "memory_is_kept_for_each_broadcast",
    _for_each("broadcast", lambda: _kept.append(torch.ones(8192) + 1)),
    "works.memory_stays",
)
named(
    "a_descriptor_stays_open_for_each_call",
    _for_each("allgather", lambda: os.open(os.devnull, os.O_RDONLY)),
    "works.memory_stays",
)


@defect("works.destroyed_groups_leave_nothing")
def memory_is_kept_for_each_group(cls):
    _when_made(lambda group: _kept.append(torch.ones(1 << 20) + 1))


@defect("works.destroyed_groups_leave_nothing")
def descriptors_stay_open(cls):
    _when_made(lambda group: [os.open(os.devnull, os.O_RDONLY) for _ in range(2)])


@defect("works.destroyed_groups_leave_nothing")
def threads_stay(cls):
    _when_made(lambda group: threading.Thread(target=time.sleep, args=(60,), daemon=True).start())


# Groups and processes.
_made_hooks = []


def _when_made(hook):
    _made_hooks.append(hook)


@defect("lifecycle.again")
def the_second_group_is_dead(cls):
    def change(group, tensors, opts):
        if group.number:
            raise RuntimeError("")
        return tensors, opts

    before("allreduce", change)(cls)


@defect("lifecycle.again")
def a_sub_group_of_the_second_default_group_is_dead(cls):
    defaults = []
    _when_made(lambda group: dist.is_initialized() or defaults.append(group))

    def change(group, tensors, opts):
        if len(defaults) > 1 and group not in defaults:
            raise RuntimeError("")
        return tensors, opts

    before("allreduce", change)(cls)


@defect("groups.made_again")
def a_new_group_has_the_values_of_an_old_one(cls):
    old = {}

    def change(group, tensors, *_):
        key = group.size(), tensors[0].shape
        if group.number and key in old:
            tensors[0].copy_(old[key])
        old.setdefault(key, tensors[0].clone())

    after("allreduce", change)(cls)


@defect("groups.one_destroyed")
def destroying_one_group_destroys_all(cls):
    dead = []

    def shutdown(self):
        dead.append(True)
        self.gloo.shutdown()

    def change(group, tensors, opts):
        if dead:
            raise RuntimeError("closed")
        return tensors, opts

    cls.shutdown = shutdown
    before("allreduce", change)(cls)


@defect("groups.members", size=4)
def a_sub_group_speaks_to_all_ranks(cls):
    def change(group, tensors, *_):
        if group.size() < dist.get_world_size():
            tensors[0].mul_(2)

    after("allreduce", change)(cls)


@defect("groups.alone")
def a_group_of_one_rank_is_an_error(cls):
    def hook(group):
        if group.size() == 1:
            raise AssertionError

    _when_made(hook)


@defect("groups.overlapping", size=4)
def async_operations_are_synchronous(cls):
    def allreduce(self, tensors, opts):
        work = self.gloo.allreduce(tensors, opts)
        work.wait()
        return work

    cls.allreduce = allreduce


@defect("groups.threads")
def groups_in_threads_share_a_buffer(cls):
    buffer = []

    def allreduce(self, tensors, opts):
        buffer[:] = [tensors[0].clone()]
        time.sleep(0.002)
        tensors[0].copy_(
            buffer[0].expand_as(tensors[0])
            if buffer[0].numel() == 1
            else buffer[0][: tensors[0].numel()].repeat(9)[: tensors[0].numel()]
        )
        return self.gloo.allreduce(tensors, opts)

    cls.allreduce = allreduce


@defect("lifecycle.silent_import")
def the_import_prints(cls):
    print("hello from the backend")


@defect("lifecycle.silent_import")
def the_import_starts_a_thread(cls):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


@defect("lifecycle.registered")
def the_device_is_not_registered(cls):
    dist.Backend.backend_capability["defective"] = ["cuda"]


@defect("lifecycle.exit_without_destroy")
def the_exit_of_a_process_crashes(cls):
    import atexit

    atexit.register(os.kill, os.getpid(), signal.SIGSEGV)


@defect("lifecycle.fork")
def a_fork_breaks_the_group(cls):
    state = {}
    os.register_at_fork(after_in_parent=lambda: state.update(broken=True))

    def change(group, tensors, *_):
        if state:
            tensors[0].zero_()

    after("allreduce", change)(cls)


@defect("lifecycle.leaves_early", size=4)
def who_leaves_takes_the_others_along(cls):
    def barrier(self, opts=None):
        if self.rank() == 0:
            return self.gloo.barrier(opts)
        self.gloo.barrier(opts).wait()
        return Late(lambda: os._exit(1))

    cls.barrier = barrier


# These happen when the module is imported, before there is a class.
AT_IMPORT = {"the_import_prints", "the_import_starts_a_thread", "the_exit_of_a_process_crashes"}


# Failures.
_long = timedelta(seconds=600)
_making = {"timeout": None}  # what a defect makes of the timeout of a group


@defect("failure.timeout_of_all_reduce", "failure.timeout_of_barrier", "failure.timeout_of_recv")
def the_timeout_of_a_group_is_ignored(cls):
    _making["timeout"] = lambda timeout: _long


@defect("failure.timeout_of_a_group", "failure.late_within_the_timeout")
def the_timeout_is_always_one_second(cls):
    _making["timeout"] = lambda timeout: timedelta(seconds=1)


@defect("failure.timeout_of_a_group", "lifecycle.options")
def sub_groups_have_the_timeout_of_the_default_group(cls):
    first = []

    def make(timeout):
        first.append(timeout)
        return first[0]

    _making["timeout"] = make


@defect("failure.timeout_of_wait")
def timeouts_are_cut_to_seconds(cls):
    def wait(self, timeout=timedelta(0)):
        return self.work.wait(timedelta(seconds=int(timeout.total_seconds())))

    works(["allreduce"], wait=wait)(cls)


@defect("failure.timeout_of_wait")
def the_timeout_of_wait_is_ignored(cls):
    works(["allreduce"], wait=lambda self, timeout=None: self.work.wait(_long))(cls)


def _quiet(names):
    """Return works whose failures nobody sees."""

    def wait(self, timeout=None):
        try:
            return self.work.wait()
        except RuntimeError:
            return True

    return works(names, wait=wait)


named(
    "errors_are_swallowed",
    _quiet(["allreduce", "barrier", "recv"]),
    "failure.killed_all_reduce",
    "failure.timeout_of_barrier",
)


def _textless(self, timeout=None):
    try:
        return self.work.wait()
    except RuntimeError:
        raise RuntimeError("") from None


named(
    "errors_have_no_text",
    works(["allreduce", "broadcast"], wait=_textless),
    "failure.killed_broadcast",
    "failure.timeout_of_all_reduce",
)


@defect("failure.timeout_of_all_gather", "failure.timeout_of_broadcast")
def all_gather_and_broadcast_have_no_timeout(cls):
    def wait(self, timeout=timedelta(0)):
        try:
            return self.work.wait(timeout)
        except RuntimeError:
            time.sleep(60)

    def get_future(self):
        future = torch.futures.Future()

        def run():
            self.wait()
            future.set_result(self.arguments[0])

        threading.Thread(target=run, daemon=True).start()
        return future

    works(["allgather", "broadcast"], wait=wait, get_future=get_future)(cls)


@defect("failure.error_in_the_future")
def a_failed_work_completes_its_future(cls):
    def get_future(self):
        future = torch.futures.Future()

        def run():
            try:
                self.work.wait()
            except RuntimeError:
                pass
            future.set_result([torch.zeros(4)])

        threading.Thread(target=run, daemon=True).start()
        return future

    works(["allreduce"], get_future=get_future)(cls)


@defect("failure.killed_all_reduce", "failure.exits_all_reduce")
def a_lost_rank_is_not_noticed(cls):
    def wait(self, timeout=None):
        try:
            return self.work.wait()
        except RuntimeError:
            time.sleep(60)

    works(["allreduce"], wait=wait)(cls)


@defect("failure.destroy_after_a_loss")
def destroying_a_failed_group_hangs(cls):
    def shutdown(self):
        time.sleep(60)

    cls.shutdown = shutdown


@defect("failure.killed_during_an_operation")
def a_loss_during_an_operation_ends_the_process(cls):
    def wait(self, timeout=None):
        try:
            return self.work.wait()
        except RuntimeError:
            os.abort()

    works(["allreduce"], wait=wait)(cls)


@defect("failure.too_few_outputs", "failure.too_many_outputs")
def the_number_of_outputs_is_not_checked(cls):
    def allgather(self, outputs, inputs, opts):
        lists = [*outputs[0], *(torch.empty_like(inputs[0]) for _ in range(self.size()))]
        return self.gloo.allgather([lists[: self.size()]], inputs, opts)

    cls.allgather = allgather


@defect("failure.too_few_outputs")
def a_wrong_argument_crashes(cls):
    def change(group, outputs, inputs, opts):
        if len(outputs[0]) != group.size():
            os.kill(os.getpid(), signal.SIGSEGV)
        return outputs, inputs, opts

    before("allgather", change)(cls)


@defect("failure.works_after_a_refusal")
def a_refused_call_breaks_the_group(cls):
    state = {}

    def allgather(self, outputs, inputs, opts):
        state["bad"] = len(outputs[0]) != self.size()
        return self.gloo.allgather(outputs, inputs, opts)

    cls.allgather = allgather
    after("allreduce", lambda group, tensors, *_: state.get("bad") and tensors[0].zero_())(cls)


@defect("failure.inputs_that_do_not_divide", "failure.too_small_an_output")
def sizes_are_not_checked(cls):
    def reduce_scatter_single(self, output, tensor, opts):
        return gloo_of(self, "reduce_scatter_single")(
            output, tensor.flatten()[: output.numel() * self.size()].contiguous(), opts
        )

    def all_gather_single(self, output, tensor, opts):
        return gloo_of(self, "all_gather_single")(
            torch.empty(tensor.numel() * self.size()), tensor, opts
        )

    cls.reduce_scatter_single, cls.all_gather_single = reduce_scatter_single, all_gather_single


@defect("failure.other_operation")
def another_operation_hangs(cls):
    _making["timeout"] = lambda timeout: _long


# Debugging.
@defect("debug.sequence_number")
def the_sequence_number_stands_still(cls):
    cls._get_sequence_number_for_group = lambda self: 7


@defect("debug.sequence_number")
def the_sequence_number_differs_between_ranks(cls):
    def _get_sequence_number_for_group(self):
        return self.gloo._get_sequence_number_for_group() * (self.rank() + 1)

    cls._get_sequence_number_for_group = _get_sequence_number_for_group


@defect("debug.monitored_barrier")
def monitored_barrier_does_not_wait(cls):
    cls.monitored_barrier = lambda self, timeout=None, wait_all_ranks=False: None


@defect("debug.monitored_barrier_names_the_rank")
def monitored_barrier_names_another_rank(cls):
    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        try:
            self.gloo.monitored_barrier(timeout, wait_all_ranks)
        except RuntimeError as error:
            text = str(error).replace(f"ank {self.size() - 1}", "ank 0")
            raise RuntimeError(text) from None

    cls.monitored_barrier = monitored_barrier


@defect("debug.monitored_barrier_names_the_rank", size=4)
def monitored_barrier_names_one_rank_of_two(cls):
    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        self.gloo.monitored_barrier(timeout)

    cls.monitored_barrier = monitored_barrier


@defect("debug.detail")
def debug_level_detail_is_an_error(cls):
    def hook(group):
        if dist.get_debug_level() == dist.DebugLevel.DETAIL:
            raise RuntimeError("")

    _when_made(hook)


# What is built on the backend: these go through PyTorch's C++, and through the same methods.
named(
    "gradients_are_not_divided",
    after(
        "allreduce",
        lambda group, tensors, *_: (
            tensors[0].mul_(1.01) if tensors[0].is_floating_point() else None
        ),
    ),
    "features.ddp_trains",
    "features.ddp_hooks",
    "features.averaging",
)


@defect("features.ddp_starts_alike")
def the_first_broadcast_of_a_group_is_lost(cls):
    def broadcast(self, tensors, opts):
        kept = [tensor.clone() for tensor in tensors]
        work = self.gloo.broadcast(tensors, opts)
        work.wait()
        if not getattr(self, "sent", False) and tensors[0].is_floating_point():
            self.sent = True
            for tensor, old in zip(tensors, kept, strict=True):
                tensor.copy_(old)
        return work

    cls.broadcast = broadcast


@defect("objects.all_gather_object")
def objects_of_other_sizes_are_cut(cls):
    def change(group, output, tensor, *_):
        if output.dtype == torch.uint8:
            output.view(-1)[-500:] = 0

    after("all_gather_single", change)(cls)

    def lists(group, outputs, *_):
        if outputs[0][0].dtype == torch.uint8:
            outputs[0][-1].view(-1)[-500:] = 0

    after("allgather", lists)(cls)


@defect("objects.scatter_object_list", "objects.gather_object")
def bytes_are_sent_as_signed_numbers(cls):
    def change(tensors):
        for tensor in tensors:
            if tensor.dtype == torch.uint8:
                tensor.bitwise_and_(0x7F)

    after("scatter", lambda group, outputs, *_: change(outputs))(cls)
    after("gather", lambda group, outputs, *_: change(outputs[0] if outputs else []))(cls)


def create(opts, _):
    """Make a group of gloo, with the defect that the variable C10D_DEFECT names."""
    name = os.environ.get("C10D_DEFECT", "")
    if not hasattr(create, "cls"):
        create.cls = type("Defective", (Group,), {})
        if name and name not in AT_IMPORT:
            DEFECTS[name][0](create.cls)
    timeout = _making["timeout"](opts.timeout) if _making["timeout"] else opts.timeout
    gloo = ProcessGroupGloo(opts.store, opts.group_rank, opts.group_size, timeout=timeout)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        gloo = dist.distributed_c10d._create_process_group_wrapper(
            gloo, opts.group_id, opts.store, opts.group_rank, opts.group_size, timeout
        )
    group = create.cls(opts.store, opts.group_rank, opts.group_size, gloo)
    group.made_for = opts.process_group.bound_device_id
    for hook in _made_hooks:
        hook(group)
    group.number = next(_numbers)
    return group


dist.Backend.register_backend("defective", create, extended_api=True, devices=["cpu"])
if os.environ.get("C10D_DEFECT") in AT_IMPORT:
    DEFECTS[os.environ["C10D_DEFECT"]][0](None)
