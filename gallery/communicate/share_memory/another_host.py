"""Worker: rank 0 plays a rank of another host, with keys that it writes itself."""

import re
import time

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

    def await_list(name):
        while not keys.check([name]):  # append() does not end a wait()
            time.sleep(0.001)

    await_list("lobby")  # rank 1 has come
    keys.append("lobby", "0 7\0")
    await_list("7/came")
    keys.append("7/came", "0 ready 7 1 host elsewhere\0")  # number, process, home
    keys.set("7/came/verdict", "ready")
    await_list("7/made")
    keys.set("7/made/verdict", "rank " + keys.get("7/made").decode().replace(" ", ": ", 1))
    print("rank 0 reads:", keys.get("7/made/verdict").decode().split(": it is")[0])
    # [/another]
