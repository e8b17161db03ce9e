"""Worker: a backend in Python that exchanges its data through the store."""

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch.nn.parallel import DistributedDataParallel


# [work]
class StoreWork(dist.Work):
    """An operation that is complete, with the tensors that it wrote."""

    def __init__(self, tensors):
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(tensors)

    def wait(self, timeout=None):
        self.future.wait()
        return True

    def get_future(self):
        return self.future


# [/work]
# [backend]
class StoreBackend(Backend):
    """A backend that sums, broadcasts and gathers CPU tensors."""

    supports_splitting = supports_coalescing = supports_shrinking = False
    supports_reconfigure = supports_window = _supports_time_estimate = False

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.store, self.timeout = store, timeout
        self.calls = 0

    def getBackendName(self):
        return "store"

    @property
    def options(self):
        return Backend.Options("store", self.timeout)

    def exchange(self, tensor):
        """Publish ``tensor``; return what each rank has published, by rank."""
        self.calls += 1
        keys = [f"{self.calls}/{rank}" for rank in range(self.size())]
        data = tensor.detach().reshape(-1).view(torch.uint8).numpy().tobytes()
        self.store.set(keys[self.rank()], data)
        self.store.wait(keys, self.timeout)
        published = [bytearray(self.store.get(key)) for key in keys]
        # A rank that publishes has read all keys of the call before.
        self.store.delete_key(f"{self.calls - 1}/{self.rank()}")
        return [
            torch.frombuffer(data, dtype=tensor.dtype).view(tensor.shape)
            for data in published
        ]

    # [/backend]
    # [operations]
    @torch.no_grad()
    def allreduce(self, tensors, options):
        if options.reduceOp != dist.ReduceOp.SUM:
            raise NotImplementedError("Backend store can only sum")
        for tensor in tensors:
            tensor.copy_(sum(self.exchange(tensor)))
        return StoreWork(tensors)

    @torch.no_grad()
    def broadcast(self, tensors, options):
        for tensor in tensors:
            tensor.copy_(self.exchange(tensor)[options.rootRank])
        return StoreWork(tensors)

    @torch.no_grad()
    def allgather(self, output_lists, inputs, options):
        for outputs, tensor in zip(output_lists, inputs, strict=True):
            for output, published in zip(outputs, self.exchange(tensor), strict=True):
                output.copy_(published)
        return StoreWork(output_lists[0])


# [/operations]
# [register]
dist.Backend.register_backend("store", StoreBackend, devices=["cpu"])
dist.init_process_group("store")
rank = dist.get_rank()
# [/register]

# [use]
tensor = torch.full((2,), rank + 1.0)
dist.all_reduce(tensor)
print("all_reduce:", tensor.tolist())
assert tensor.tolist() == [3.0, 3.0], "1 + 2"

tensor = torch.full((2,), rank + 1.0)
dist.broadcast(tensor, src=1)
print("broadcast: ", tensor.tolist())
assert tensor.tolist() == [2.0, 2.0], "what rank 1 had"

gathered = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
work = dist.all_gather(gathered, torch.tensor([rank]), async_op=True)
print("all_gather:", work.wait(), work.get_future().value(), work.is_completed())
assert [tensor.item() for tensor in gathered] == [0, 1]
# [/use]

# [errors]
for operation in [
    lambda: dist.all_reduce(tensor, op=dist.ReduceOp.MAX),
    lambda: dist.reduce(tensor, dst=0),
]:
    try:
        operation()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
# [/errors]


# [options]
class WithoutOptions(StoreBackend):
    options = Backend.options  # as if neither class had the property


try:
    print(WithoutOptions(None, rank, 2, None).options)
except RecursionError:
    print("RecursionError: options")
# [/options]


# [train]
def train(group):
    """Train a new model for one step; return its gradient and its weights."""
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.arange(3.0) + rank).sum().backward()
    optimizer.step()
    return model.module.weight.grad, model.module.weight


gradient, weights = train(dist.group.WORLD)
print("gradient:", gradient.tolist())
assert gradient.tolist() == [[0.5, 1.5, 2.5]], "the mean of 0, 1, 2 and 1, 2, 3"

gradient_of_gloo, weights_of_gloo = train(dist.new_group(backend="gloo"))
assert torch.equal(gradient, gradient_of_gloo)
assert torch.equal(weights, weights_of_gloo)
print("The gradient and the new weights equal those of gloo, bit for bit.")
# [/train]

dist.destroy_process_group()
