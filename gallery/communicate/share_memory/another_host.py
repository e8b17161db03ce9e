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
    keys = dist.PrefixStore("0//cpu//shm/2", store)  # those of the group "0" of 2 ranks
    keys.set("answer/" + keys.get("member/1").decode(), "7")
    keys.wait(["7/came/1"])
    keys.set("7/came/verdict", "ready")
    keys.set("7/memory", "1 3 42 host elsewhere")  # process, descriptor, nonce, home
    keys.set("7/made/verdict", "rank 1: " + keys.get("7/made/1").decode())
    print("rank 0 reads:", keys.get("7/made/verdict").decode().split(": it is")[0])
    # [/another]
