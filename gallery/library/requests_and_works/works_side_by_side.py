"""Worker: let three all-reduces wait for rank 1, while a message overtakes them."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("mpich", store=store, rank=rank, world_size=size)
tensors = [torch.full((2000,), float(number)) for number in (1, 2, 3)]
message = torch.full((4000,), float(rank))
ended = []

# [program]
if rank == 0:
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [
        work.get_future().then(lambda _, number=number: ended.append(number))
        for number, work in enumerate(works, 1)
    ]
    dist.send(message, dst=1)  # returns when rank 1 has received the message
    print("completed before rank 1 calls:", [work.is_completed() for work in works])
    store.set("rank 0 has looked", "")
    for future in futures:
        future.wait()
    print("callbacks ran in the order", ended)
else:
    dist.recv(message, src=0)
    print("received a message of", message[0].item())
    store.wait(["rank 0 has looked"])
    for tensor in tensors:
        dist.all_reduce(tensor)
# [/program]
print("sums:", [tensor[0].item() for tensor in tensors])
dist.destroy_process_group()
