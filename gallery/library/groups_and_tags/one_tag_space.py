"""Worker: exchange heads before a collective, under tags that the program uses, too."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
other = 1 - dist.get_rank()


# [wrapper]
HEAD = 0  # the tag of heads


def exchange_heads(size):
    """Tell the other rank the size of the next collective; return what it says."""
    head = dist.isend(torch.tensor(size), other, tag=HEAD)
    dist.recv(its := torch.tensor(0), other, tag=HEAD)
    head.wait()
    return its.item()


# [/wrapper]
# [tags]
def same(tag):
    return tag


def above_the_head(tag):
    return tag + 1


# [/tags]
# [use]
for tag_of in [same, above_the_head]:
    if other == 1:
        message = dist.isend(torch.tensor(42), dst=1, tag=tag_of(0))
        size = exchange_heads(4096)
        message.wait()
        print(f"{tag_of.__name__}: the other rank reduces {size} bytes")
    else:
        size = exchange_heads(4096)
        dist.recv(message := torch.tensor(0), src=0, tag=tag_of(0))
        print(f"{tag_of.__name__}: the other rank reduces {size} bytes, the message is {message}")
# [/use]
dist.destroy_process_group()
