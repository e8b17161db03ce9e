"""Worker: watch when the memory of an input is free again, while the communication is held."""

import torch
import torch.distributed as dist
from two_ways import device, end, hold_communication, new_group, rank


# [release]
def gather(drop):
    """Print how much of the input's memory is in use after each step."""
    group = new_group()
    outputs = [torch.empty(1024, device=device) for _ in range(2)]
    before = torch.accelerator.memory_allocated()
    number = torch.full((1024,), rank + 1.0, device=device)
    address = number.data_ptr()
    gate = hold_communication(group)
    work = dist.all_gather(outputs, number, group=group, async_op=True)
    del number

    def note(step):
        print(f"{step}: {torch.accelerator.memory_allocated() - before} bytes")

    note("after the call")
    if drop:
        del work
        note("after the work is dropped")
    else:
        work.wait()
        note("after wait()")
        other = torch.full((1024,), 99.0, device=device)
        print("the next tensor has the same memory:", other.data_ptr() == address)
        del other
    gate.open()
    torch.accelerator.synchronize()
    note("after the communication")
    dist.barrier(group, device_ids=[rank])
    note("after the next call")
    print("gathered:", [output[0].item() for output in outputs])


# [/release]
gather(drop=False)
gather(drop=True)
end()
