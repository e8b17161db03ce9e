"""Worker: first checks of a device with streams and its backend, which name neither of them."""

import importlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# [names]
MODULE, BACKEND = "stream_collectives", "simccl"  # yours
# [/names]
importlib.import_module(MODULE)
rank = int(os.environ["RANK"])
torch.accelerator.set_device_index(rank)
device = torch.device(torch.accelerator.current_accelerator().type, rank)
dist.init_process_group(BACKEND, device_id=device)
mine = [10.0 * (rank + 1)] * 3


# [checks]
def late_numbers():
    """Return the numbers of this rank, which a stream writes after much other work."""
    large, numbers = torch.ones(2_000_000, device=device), torch.zeros(3, device=device)
    for _ in range(20):
        large += 1
    numbers += 10.0 * (rank + 1)
    return numbers


def events_order_streams():
    one, other = torch.Stream(device), torch.Stream(device)
    with one:
        numbers = late_numbers()
    other.wait_stream(one)
    with other:
        result = numbers + 1
    numbers.record_stream(other)
    return result, [mine[0] + 1] * 3


def freed_memory_waits_for_recorded_streams():
    numbers, other = late_numbers(), torch.Stream(device)
    other.wait_stream(torch.accelerator.current_stream())
    with other:
        result = numbers + 1
    numbers.record_stream(other)
    del numbers
    torch.full((3,), 99.0, device=device)  # must not get that memory yet
    return result, [mine[0] + 1] * 3


def a_backward_pass_has_the_stream_of_the_forward_pass():
    weight = torch.ones(3, device=device, requires_grad=True)
    with torch.Stream(device):
        loss = (weight * 2 * late_numbers()).sum()
    loss.backward()
    return weight.grad, [2 * mine[0]] * 3


def the_communication_waits_for_the_input():
    numbers = late_numbers()
    dist.all_reduce(numbers)
    return numbers, [30.0] * 3


def wait_orders_the_current_stream():
    with torch.Stream(device):
        numbers = late_numbers()
        dist.all_reduce(numbers, async_op=True).wait()
        return numbers + 1, [31.0] * 3


def memory_lives_until_the_communication_has_read_it():
    gathered = torch.zeros(6, device=device)
    work = dist.all_gather_single(gathered, late_numbers(), async_op=True)
    torch.full((3,), 99.0, device=device)  # may get the memory of the input
    work.wait()
    return gathered, [10.0] * 3 + [20.0] * 3


def callbacks_see_the_result():
    work = dist.all_reduce(late_numbers(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0] + 1).wait(), [31.0] * 3


def a_completed_work_may_be_read_by_any_stream():
    work = dist.all_reduce(numbers := late_numbers(), async_op=True)
    while not work.is_completed():
        pass
    with torch.Stream(device):
        return numbers + 1, [31.0] * 3


def the_ranks_have_the_same_gradients():
    model = DistributedDataParallel(nn.Linear(3, 1, device=device))
    model(late_numbers()).backward()
    return model.module.weight.grad, [[15.0] * 3]


# [/checks]


checks = [events_order_streams, freed_memory_waits_for_recorded_streams]
checks += [a_backward_pass_has_the_stream_of_the_forward_pass]
checks += [the_communication_waits_for_the_input, wait_orders_the_current_stream]
checks += [memory_lives_until_the_communication_has_read_it, callbacks_see_the_result]
checks += [a_completed_work_may_be_read_by_any_stream, the_ranks_have_the_same_gradients]
for check in checks:
    result, expected = check()
    torch.accelerator.synchronize()
    right = result.tolist() == expected
    if rank == 0 or not right:
        print("right" if right else "WRONG", check.__name__.replace("_", " "))
dist.destroy_process_group()
