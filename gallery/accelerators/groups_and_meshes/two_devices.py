"""Worker: one group whose ranks have two devices each, and the CPU."""

import os

import stream_collectives
import time_line
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])

# [backends]
dist.init_process_group("cpu:gloo,sim:simccl")
for device in ("cpu", "sim"):
    backend = dist.group.WORLD._get_backend(torch.device(device))
    number = torch.ones(1, device=device)
    dist.all_reduce(number)
    print(f"{device}: {backend.name()}, sum {number.item():.0f}")
only_streams = dist.new_group(backend="simccl")
try:
    dist.all_reduce(torch.ones(1), group=only_streams)
except RuntimeError as error:
    print(str(error).splitlines()[0])
# [/backends]
# [gloo]
gloo = dist.new_group(backend="sim:gloo")
try:
    dist.all_reduce(torch.ones(1, device="sim"), group=gloo)
except RuntimeError as error:
    print(str(error).splitlines()[0])
# [/gloo]

# [devices]
numbers = [torch.ones(1, device=f"sim:{index}") for index in range(2)]
gate = torch.sim.Gate()
torch.accelerator.synchronize(0), torch.accelerator.synchronize(1)
torch.sim.start_trace()
with stream_collectives.communication_stream("sim:0"):
    gate.hold()
works = [dist.all_reduce(number, async_op=True) for number in numbers]
torch.sim.settle(peers=False)
gate.open()
for work in works:
    work.wait()
torch.accelerator.synchronize(0), torch.accelerator.synchronize(1)
print(time_line.draw(torch.sim.stop_trace(), ["sim:0", "sim:1"]))
# [/devices]
print("sums:", [number.item() for number in numbers])
dist.destroy_process_group()
