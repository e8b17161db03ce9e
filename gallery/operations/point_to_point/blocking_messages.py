"""Worker: rank 0 sends two tagged messages, rank 1 receives them."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")

if dist.get_rank() == 0:
    dist.send(torch.tensor([1.0]), dst=1, tag=10)
    dist.send(torch.tensor([2.0]), dst=1, tag=20)
    print("sent 1 with tag 10, then 2 with tag 20")
else:
    first, second = torch.empty(1), torch.empty(1)
    dist.recv(first, src=0, tag=10)
    dist.recv(second, src=0, tag=20)
    print(f"tag 10: {first.item():g}, tag 20: {second.item():g}")
    assert (first.item(), second.item()) == (1.0, 2.0)

dist.destroy_process_group()
