"""Worker: rank 0 plays a rank of another host, with keys that it writes itself."""

import re

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))

if rank == 1:
    try:
        dist.init_process_group("shm", store=store, rank=rank, world_size=size)
    except dist.DistStoreError as error:
        text = str(error).splitlines()[0]
        print(re.sub(r'it is ".*", rank 0', "it is ..., rank 0", text))
else:
    # [another]
    keys = dist.PrefixStore("0//cpu//shm", store)  # those of the group "0"
    number = keys.get("member/1").decode().split()[0]
    keys.set(f"answer/{number}", "7 1 -1 host elsewhere")
    print("rank 0 reads:", keys.get("refused/7/1").decode().split(":")[0])
    # [/another]
