"""Worker: what c10d does with a Work that has no result, or with no Work at all."""

import faulthandler
import json
import multiprocessing
import resource

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import Backend
from torch.nn.parallel import DistributedDataParallel

# A crash writes neither its stack nor a core file.
faulthandler.disable()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Complete(dist.Work):
    def __init__(self, tensors):
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(tensors)

    def wait(self, timeout=None):
        return True

    def get_future(self):
        return self.future


class Answering(Backend):
    """A backend for one rank, whose ``allreduce`` returns ``answer(tensors)``."""

    options = property(lambda self: Backend.Options("answering"))

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)

    def getBackendName(self):
        return "answering"

    def allreduce(self, tensors, options):
        return answer(tensors)

    def broadcast(self, tensors, options):
        return Complete(tensors)

    def allgather(self, output_lists, inputs, options):
        output_lists[0][0].copy_(inputs[0])
        return Complete(output_lists[0])


def run(use):
    dist.init_process_group("answering", store=dist.HashStore(), rank=0, world_size=1)
    use()
    dist.destroy_process_group()


dist.Backend.register_backend("answering", Answering, devices=["cpu"])


# [cases]
def call_functional():
    summed = funcol.all_reduce(torch.ones(2), "sum", dist.group.WORLD)
    funcol.wait_tensor(summed)


def train_with_ddp():
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()


CASES = {
    "a Work with an empty list, DDP": (train_with_ddp, lambda tensors: Complete([])),
    "no Work, a functional collective": (call_functional, lambda tensors: None),
}
# [/cases]

for name, (use, answer) in CASES.items():
    process = multiprocessing.get_context("fork").Process(target=run, args=[use])
    process.start()
    process.join()
    print(f"{name}: ended by signal {-process.exitcode}")
    assert process.exitcode < 0

# With a Work that has the tensors, both end well.
answer = Complete
run(call_functional)
run(train_with_ddp)

# Since PyTorch 2.15, its flight recorder lists the calls. One without a Work never ends there.
if hasattr(c10d, "_reset_fr_trace"):
    for answer in [Complete, lambda tensors: None]:
        run(lambda: dist.all_reduce(torch.ones(2)))
        entries = json.loads(c10d._dump_fr_trace_json(backend="answering"))["entries"]
        assert entries[-1]["profiling_name"] == "answering:all_reduce", entries[-1]
        assert entries[-1]["retired"] == (answer is Complete), entries[-1]
