"""Groups in Python that forward their calls to another group, and record or change them."""

import torch
import torch.distributed as dist

CPU = torch.device("cpu")


class ForwardingGroup(dist.ProcessGroup):
    def __init__(self, inner):
        super().__init__(inner.rank(), inner.size())
        self.inner = inner
        # For the name of the group, and for what a class does not override:
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._register_backend(CPU, kind, inner._get_backend(CPU))
        self._set_default_backend(kind)

    def getBackendName(self):
        return "forwarding"


def new_group(group_class):
    """Return a group of this class, as that of a backend, which forwards to a new group of store."""
    name = group_class.__name__.lower()
    inner = dist.new_group(backend="store")  # not the default group: both get the same name
    dist.Backend.register_backend(name, lambda *_: group_class(inner), devices=["cpu"])
    return dist.new_group(backend=name)


calls = []


class RecordedWork(dist.Work):
    """A work that notes which of its methods are called."""

    def __init__(self, work, note):
        super().__init__()
        self.work, self.note = work, note

    def wait(self, *timeout):
        self.note("wait")
        return self.work.wait(*timeout)

    def get_future(self):
        self.note("get_future")
        return self.work.get_future()


# [record]
def recorded(name):
    """Return a method that notes its name and its ReduceOp, and forwards the call."""

    def method(self, *arguments):
        work = getattr(self.inner, name)(*arguments)
        reduce = getattr(arguments[-1], "reduceOp", None)  # the options come last
        call = [name, reduce.op.name if reduce else ""]
        calls.append(call)
        return work and RecordedWork(work, call.append)

    return method


class RecordingGroup(ForwardingGroup):
    allreduce = recorded("allreduce")
    all_gather_single = recorded("all_gather_single")
    reduce_scatter_single = recorded("reduce_scatter_single")
    send = recorded("send")
    recv = recorded("recv")


# [/record]


# [mistake]
class IgnoresOp(ForwardingGroup):
    """What a backend does that knows the sum only."""

    def allreduce(self, tensors, options):
        options.reduceOp = dist.ReduceOp.SUM
        return self.inner.allreduce(tensors, options)

    def reduce_scatter_single(self, output, input, options):
        options.reduceOp = dist.ReduceOp.SUM
        return self.inner.reduce_scatter_single(output, input, options)


# [/mistake]


# [cure]
class RefusesOp(ForwardingGroup):
    """Refuses other reductions, the least that a backend must do if it only sums."""

    def reduce_scatter_single(self, output, input, options):
        if options.reduceOp != dist.ReduceOp.SUM:
            raise ValueError(f"this backend has no {options.reduceOp.op.name}")
        return self.inner.reduce_scatter_single(output, input, options)


# [/cure]
