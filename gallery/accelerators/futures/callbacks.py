"""Worker: look at a callback while the communication is held."""

import threading

import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, hold_communication, new_group, rank

# [callback]
group = new_group()
program = torch.accelerator.current_stream()
communication = stream_collectives.communication_stream(device, group)
main_thread = threading.get_ident()


def ten_times(future):
    here = torch.accelerator.current_stream()
    print("the callback runs on the thread that attaches it:", threading.get_ident() == main_thread)
    print("its stream is another one:", here not in (program, communication))
    result = future.value()[0] * 10
    print("its stream has ended the kernel:", here.query())
    return result


number = torch.full((1,), rank + 1.0, device=device)
gate = hold_communication(group)
work = dist.all_reduce(number, group=group, async_op=True)
future = work.get_future()
print("the future is complete:", future.done())
print("the work is completed:", work.is_completed())
result = future.then(ten_times).wait()
print("wait() has returned, and the program's stream has ended:", program.query())
gate.open()
print("ten times the sum:", result.item())
# [/callback]
end()
