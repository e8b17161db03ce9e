"""Ranks that make each kind of call, with two backends for the CPU that move the data."""

from datetime import timedelta

import store_collectives  # noqa: F401  # importing it registers "store"
import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, rank


# [program]
def tensor(*numbers):
    return torch.tensor(numbers, dtype=torch.float, device=device)


def results(group):
    """Return what this rank gets from each kind of call; rank 0 has 1 and 2, rank 1 has 3 and 4."""
    mine = tensor(1, 2) + 2 * rank
    found, other = {}, 1 - rank

    def note(name, result):
        found[name] = result.tolist()

    dist.all_reduce(total := mine.clone(), group=group)
    note("all_reduce", total)
    dist.reduce(total := mine.clone(), dst=0, group=group)
    note("reduce to 0", total)
    dist.broadcast(copy := mine.clone(), src=1, group=group)
    note("broadcast from 1", copy)
    dist.all_gather_single(all_of_them := tensor(0, 0, 0, 0), mine, group=group)
    note("all_gather", all_of_them)
    dist.reduce_scatter_single(part := tensor(0), mine, group=group)
    note("reduce_scatter", part)
    rows = [tensor(0, 0), tensor(0, 0)] if rank == 0 else None
    dist.gather(mine, rows, 0, group=group)
    note("gather to 0", torch.cat(rows) if rows else mine)
    parts = list(all_of_them.chunk(2)) if rank == 0 else None
    dist.scatter(part := tensor(0, 0), parts, 0, group=group)
    note("scatter from 0", part)
    dist.all_to_all_single(swapped := tensor(0, 0), mine, group=group)
    note("all_to_all", swapped)
    send = dist.isend(mine, other, group=group)
    dist.recv(received := tensor(0, 0), other, group=group)
    send.wait()
    note("send and recv", received)
    return found


of_library = {}
for library in ["gloo", "store"]:
    options = stream_collectives.Options(timedelta(seconds=30))
    options.library = library
    of_library[library] = results(dist.new_group(backend="simccl", pg_options=options))
for name, result in of_library["gloo"].items():
    print(f"{name}: {result}")
print("the same with store:", of_library["store"] == of_library["gloo"])
# [/program]
end()
