"""Worker: two ranks share memory that has no name."""

import mmap
import os

import torch.distributed as dist

store, rank, size = next(dist.rendezvous("env://"))


# [share]
def wait_for_all(key):
    """Return when all ranks have called this."""
    store.set(f"{key}/{rank}", "")
    store.wait([f"{key}/{other}" for other in range(size)])


if rank == 0:
    file = os.memfd_create("two_ranks")
    os.ftruncate(file, 4096)
    store.set("memory", f"{os.getpid()} {file}")
else:
    process, number = store.get("memory").decode().split()
    file = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR)
memory = mmap.mmap(file, 4096)
print("names in file systems:", os.fstat(file).st_nlink)
wait_for_all("mapped")
os.close(file)

text = f"rank {rank} was here"
memory[64 * rank : 64 * rank + len(text)] = text.encode()
wait_for_all("written")
print([memory[64 * other : 64 * other + len(text)].decode() for other in range(size)])
# [/share]
