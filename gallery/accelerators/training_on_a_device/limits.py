"""Worker: features that need more than a device and a backend, and the errors without it."""

import os

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory
from torch import nn

device = torch.device("sim", int(os.environ["RANK"]))
torch.accelerator.set_device_index(device)
dist.init_process_group("simccl", device_id=device)
number = torch.ones(4, 4, device=device)


# [features]
def generated_kernels():
    torch.compile(lambda x: x * 2 + 1)(number)


def batch_statistics():
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(4)).to(device)
    model(number)


def shared_memory_of_devices():
    symmetric_memory.empty(4, device=device)


def smaller_group():
    dist.shrink_group([1])


# [/features]


for feature in (generated_kernels, batch_statistics, shared_memory_of_devices, smaller_group):
    try:
        feature()
    except Exception as error:
        text = " ".join(str(error).splitlines()[:2]).split(". ")[0]
        if dist.get_rank() == 0:
            print(f"{feature.__name__}: {text}")
dist.destroy_process_group()
