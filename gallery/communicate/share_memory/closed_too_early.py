"""Worker: rank 0 closes the file of the memory before rank 1 has opened it."""

import os

import torch.distributed as dist

store, rank, size = next(dist.rendezvous("env://"))

# [early]
if rank == 0:
    file = os.memfd_create("memory")
    os.write(file, b"the memory that was meant")
    store.set("memory", f"{os.getpid()} {file}")
    os.close(file)  # does not wait for rank 1
    store.set("closed", "")
    store.wait(["first try"])
    other = os.memfd_create("other")
    os.write(other, b"something else")
    print("the next file has the same number:", other == file)
    store.set("another file", "")
    store.wait(["second try"])
else:
    process, number = store.get("memory").decode().split()
    store.wait(["closed"])
    try:
        open(f"/proc/{process}/fd/{number}")
    except FileNotFoundError as error:
        print("first try:", error.strerror)
    store.set("first try", "")
    store.wait(["another file"])
    with open(f"/proc/{process}/fd/{number}") as file:
        print("second try:", file.read())
    store.set("second try", "")
# [/early]
