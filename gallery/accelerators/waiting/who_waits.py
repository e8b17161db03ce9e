"""Worker: find out who waits in a call while the communication is held: one JSON line."""

import json
import threading
from datetime import timedelta

import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, hold_communication, rank


# [program]
def all_reduce(number, group):
    return dist.all_reduce(number, group=group, async_op=True)


def barrier(number, group):
    return dist.barrier(group, async_op=True, device_ids=[rank])


def who_waits(call, begin=all_reduce, blocking_wait=False):
    """Return who waits in a call, for a communication that a gate holds."""
    options = stream_collectives.Options(timedelta(seconds=60))
    options.blocking_wait = blocking_wait
    group = dist.new_group(backend="simccl", pg_options=options)
    number = torch.ones(1, device=device)
    torch.accelerator.synchronize()
    gate = hold_communication(group)
    work = begin(number, group)
    errors = []

    def run():
        torch.accelerator.set_device_index(rank)
        try:
            call(work, number)
        except dist.DistBackendError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and not torch.sim.waiting_threads():
        pass
    if thread.is_alive():
        who = "the host"
    elif errors:
        who = "the host, until the timeout"
    else:
        torch.sim.settle()
        waits = not torch.accelerator.current_stream().query()
        who = "the current stream" if waits else "neither"
    gate.open()
    thread.join()
    torch.accelerator.synchronize()
    return who


# [/program]
# [calls]
limit = timedelta(milliseconds=50)
rows = {
    "work.wait()": who_waits(lambda work, number: work.wait()),
    "work.get_future().wait()": who_waits(lambda work, number: work.get_future().wait()),
    "work.is_completed()": who_waits(lambda work, number: work.is_completed()),
    "work.wait(timeout)": who_waits(lambda work, number: work.wait(limit)),
    "work.wait() with blocking_wait": who_waits(
        lambda work, number: work.wait(), blocking_wait=True
    ),
    "work.wait() of a barrier": who_waits(lambda work, number: work.wait(), barrier),
    "work.wait(), then tensor.item()": who_waits(
        lambda work, number: (work.wait(), number.item())
    ),
    "torch.accelerator.synchronize()": who_waits(
        lambda work, number: torch.accelerator.synchronize()
    ),
}
# [/calls]
print(json.dumps(rows))
end()
