# [use]
import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy")
rank = dist.get_rank()
tensor = torch.ones(2)
dist.all_reduce(tensor)
print(f"rank {rank}: the dummy returns {tensor.tolist()}")
# [/use]

# [missing]
try:
    dist.broadcast(tensor, src=0)
except RuntimeError as error:
    print(f"rank {rank}: {error}")
dist.destroy_process_group()
# [/missing]

# [devices]
dist.init_process_group("cpu:gloo,cuda:dummy")
for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
    tensor = torch.ones(2, device=device)
    dist.all_reduce(tensor)
    print(f"rank {rank}: on {device}, all-reduce returns {tensor.tolist()}")
dist.destroy_process_group()
# [/devices]
