"""A backend in Python, "defective_contract", which is simccl with one mistake in its contract.

The backends "defective" and "defective_streams" are groups. PyTorch asks the backend of a group,
and not the group, for options, splits, hooks and records, so this one is a backend. The variable
C10D_DEFECT names its mistake, and `DEFECTS` has for each name the checks that must notice it.
"""

import os
import threading
import time

import torch
import torch.distributed as dist
from defective import Defect, Done
from torch._C import _distributed_c10d as c10d

_CUSTOM = dist.ProcessGroup.BackendType.CUSTOM
DEFECTS: dict[str, Defect] = {}


class Contract(c10d.Backend):
    """A backend whose calls go to simccl, and which calls abort hooks, too."""

    def __init__(self, rank, size, simccl):
        super().__init__(rank, size)
        self.simccl = simccl
        self.hooks = {}

    def name(self):
        return "defective_contract"

    getBackendName = name

    @property
    def options(self):
        return self.simccl.options

    @property
    def supports_splitting(self):
        return True

    @property
    def supports_reconfigure(self):  # PyTorch's own, of a backend in Python, calls itself
        return False

    def split(self, store, ranks, opts):
        simccl = self.simccl.split(store, ranks, opts)
        return simccl and type(self)(simccl.rank(), simccl.size(), simccl)

    def perform_nocolor_split(self, device):
        """Do nothing on a rank outside of a new group: create() splits nothing, either."""

    @property
    def supports_abort_hooks(self):
        return True

    def register_abort_hook(self, hook_id, hook):
        self.hooks[hook_id] = hook

    def unregister_abort_hook(self, hook_id):
        del self.hooks[hook_id]

    def allreduce(self, tensors, opts):
        work = self.simccl.allreduce(tensors, opts)
        threading.Thread(target=self.watch, args=[work], daemon=True).start()
        return work

    def watch(self, work):
        while not work.is_completed() and not work.exception():
            time.sleep(0.01)
        if work.exception():
            for hook in self.hooks.values():
                hook()

    def start_coalescing(self):
        self.simccl._start_coalescing()

    def end_coalescing(self):
        return self.simccl._end_coalescing()


def _forward(name):
    def method(self, *arguments):
        return getattr(self.simccl, name)(*arguments)

    return method


for _name in ("abort", "all_gather_single", "allgather", "barrier", "broadcast", "shutdown"):
    setattr(Contract, _name, _forward(_name))


def defect(*checks):
    """Put the decorated function, which changes the class of backends, into the table."""

    def register(change):
        DEFECTS[change.__name__] = Defect(change, checks, 2)
        return change

    return register


@defect("contract.split_in_another_order")
def a_split_sorts_its_ranks(cls):
    split = cls.split
    cls.split = lambda self, store, ranks, opts: split(self, store, sorted(ranks), opts)


@defect("contract.options_of_splits")
def a_split_has_the_options_of_its_parent(cls):
    def split(self, store, ranks, opts):
        self.simccl.options._timeout = opts._timeout
        return Contract.split(self, store, ranks, opts)

    cls.split = split


@defect("contract.group_of_a_device")
def only_groups_of_a_bound_default_group_connect(cls):
    def connect(self, device):
        if dist.is_initialized() and dist.group.WORLD.bound_device_id is None:
            raise RuntimeError("")

    cls.eager_connect_single_device = connect


@defect("groups.on_a_bound_device")
def only_ranks_outside_of_a_group_split(cls):
    """As if a library's split needed all ranks of the parent, and create() ignored split_from."""
    cls.perform_nocolor_split = lambda self, device: self.barrier(dist.BarrierOptions()).wait()


@defect("contract.mixed_devices")
def the_backend_takes_the_tensors_of_the_cpu(cls):
    cls.takes_cpu = True


@defect("contract.reconfigure")
def reconfigure_does_nothing(cls):
    cls.supports_reconfigure = property(lambda self: True)
    cls.get_reconfigure_handle = lambda self: str(self.rank())
    cls.reconfigure = lambda self, opts: Done()


@defect("contract.reconfigure")
def there_is_a_handle_but_no_reconfigure(cls):
    cls.get_reconfigure_handle = lambda self: str(self.rank())


@defect("contract.flight_recorder")
def completion_hooks_are_never_called(cls):
    cls.supports_completion_hooks = property(lambda self: True)


@defect("contract.flight_recorder")
def all_reduce_has_another_name_for_the_flight_recorder(cls):
    cls.getBackendName = lambda self: "simccl"


@defect("failure.abort_hooks")
def abort_hooks_are_never_called(cls):
    cls.watch = lambda self, work: None


@defect("failure.abort_hooks")
def abort_hooks_cannot_be_unregistered(cls):
    cls.unregister_abort_hook = lambda self, hook_id: None


@defect("failure.abort_hooks")
def abort_hooks_are_refused_although_they_are_supported(cls):
    def refuse(self, hook_id, hook):
        raise RuntimeError("no hooks")

    cls.register_abort_hook = refuse


@defect("failure.abort_while_coalescing")
def abort_leaves_coalesced_calls_alone(cls):
    def start(self):
        self.coalescing = True
        self.simccl._start_coalescing()

    cls.start_coalescing = start
    cls.abort = lambda self: None if hasattr(self, "coalescing") else self.simccl.abort()


def create(opts, _):
    """Make a backend around simccl, with the defect that the variable C10D_DEFECT names."""
    import stream_collectives

    name = os.environ.get("C10D_DEFECT", "")
    if not hasattr(create, "cls"):
        create.cls = type("Defective", (Contract,), {})
        if name:
            DEFECTS[name].install(create.cls)
    options = stream_collectives.Options(opts.timeout)
    simccl = dist.Backend._plugins["SIMCCL"].creator_fn(opts, options)
    backend = create.cls(opts.group_rank, opts.group_size, simccl)
    if hasattr(create.cls, "takes_cpu"):
        opts.process_group._register_backend(torch.device("cpu"), _CUSTOM, backend)
    return backend


dist.Backend.register_backend("defective_contract", create, extended_api=True, devices=["sim"])
