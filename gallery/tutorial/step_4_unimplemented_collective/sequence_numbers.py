"""Worker: a backend in Python for one rank, with sequence numbers."""

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend


class Work(dist.Work):
    def wait(self, timeout=None):
        return True


# [numbered]
backends = []


class Numbered(Backend):
    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.collectives, self.asked = 0, []
        backends.append(self)  # Keeps the Python object alive, which C++ does not.

    def _get_sequence_number_for_group(self):
        self.asked.append(self.collectives)
        return self.collectives

    def allreduce(self, tensors, options):
        self.collectives += 1
        return Work()

    # [/numbered]
    def getBackendName(self):
        return "numbered"

    @property
    def options(self):
        return Backend.Options("numbered")


dist.Backend.register_backend("numbered", Numbered, devices=["cpu"])
dist.set_debug_level(dist.DebugLevel.DETAIL)
dist.init_process_group("numbered")
backends[0].asked.clear()
for _ in range(2):
    dist.all_reduce(torch.ones(2))
print("PyTorch asked for the sequence numbers", backends[0].asked)
assert backends[0].asked == [0, 1]
dist.destroy_process_group()
