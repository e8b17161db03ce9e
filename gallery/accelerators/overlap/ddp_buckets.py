"""Worker: draw the streams of rank 0 in a backward pass of DDP, while rank 1 is late."""

import torch
import torch.distributed as dist
from time_line import draw
from two_ways import device, end, new_group, rank

store = dist.distributed_c10d._get_default_store()


# [model]
def settle(tensor=None):
    """Let the streams go on as far as they can, so that the order is the same in each run."""
    torch.sim.settle(peers=False)


class Layer(torch.nn.Module):
    """Multiply by a weight of 1 MiB, which is a bucket of its own."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2**18, device=device))
        self.weight.register_post_accumulate_grad_hook(settle)

    def forward(self, numbers):
        if numbers.requires_grad:
            numbers.register_hook(settle)
        return numbers * self.weight


# [/model]
# [backward]
def draw_backward(broken=""):
    """Draw the kernel that ends the gradient of each layer, and the all-reduces."""
    group = new_group(broken)
    model = torch.nn.Sequential(Layer(), Layer(), Layer())
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=1)
    numbers = torch.ones(2**18, device=device)
    model(numbers).backward(numbers)  # after the first pass, DDP makes the buckets anew
    result = model(numbers)
    torch.accelerator.synchronize()
    key = f"the streams of rank 0 stand, {group.group_name}"
    if rank == 1:
        store.wait([key])
        return result.backward(numbers)
    torch.sim.start_trace()
    result.backward(numbers)
    settle()
    print("backward() has returned, and rank 1 has not called yet")
    store.set(key, "")
    torch.accelerator.synchronize()
    steps = [step for step in torch.sim.stop_trace() if step[1] in ("add", "all_reduce")]
    print(draw(steps, ["computation", "communication"]))


# [/backward]
draw_backward()
draw_backward("own_stream")
end()
