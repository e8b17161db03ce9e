"""Worker: messages with tags, which the ranks send and receive in different orders."""

import torch
import torch.distributed as dist
from two_ways import device, end, new_group, rank


gate = torch.sim.Gate()  # open after the first exchange has begun both messages


# [messages]
def exchange(group, wait_for_each):
    """Rank 0 sends tag 1 and then tag 2, and rank 1 receives tag 2 first."""
    numbers = {tag: torch.full((1,), 10.0 * tag * (rank == 0), device=device) for tag in (1, 2)}
    works = []
    for tag in [1, 2] if rank == 0 else [2, 1]:
        call = dist.isend if rank == 0 else dist.irecv
        works.append(call(numbers[tag], 1 - rank, group, tag))
        if wait_for_each:
            works[-1].wait()
    for work in works:
        work.wait()
    gate.open(), torch.accelerator.synchronize()
    for work in works:
        work.wait()  # raises what the host could not know before
    return [number.item() for number in numbers.values()]


# [/messages]


torch.sim.start_trace()
gate.hold()
print("wait at the end:", exchange(new_group(), wait_for_each=False))
trace = torch.sim.stop_trace()
streams = {stream for what, name, _, stream in trace if name in ("send", "recv")}
print("streams for messages:", len(streams))
try:
    exchange(new_group(seconds=1), wait_for_each=True)
except dist.DistBackendError as error:
    print("wait for each:", type(error).__name__)
end()
