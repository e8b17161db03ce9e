"""Worker: send what the other rank does not receive, and reduce meanwhile."""

import psutil
import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"

options = tcp_collectives.Options()
options.interface = "lo"
dist.init_process_group("tcp", pg_options=options)
rank = dist.get_rank()
MIB = 1 << 20


# [flow]
def memory():
    return psutil.Process().memory_info().rss // MIB


if rank == 0:
    works = [dist.isend(torch.ones(64 * MIB, dtype=torch.uint8), 1) for _ in range(4)]
    dist.all_reduce(torch.ones(1))
    print("a send has ended before its receive:", any(work.is_completed() for work in works))
    dist.barrier()
    for work in works:
        work.wait()
else:
    target = torch.zeros(64 * MIB, dtype=torch.uint8)
    before = memory()
    dist.all_reduce(total := torch.ones(1))
    print(f"meanwhile, the sum is {total.item():.0f}")
    dist.barrier()
    print("of 256 MiB, this rank keeps more than 32:", memory() - before > 32)
    for _ in range(4):
        dist.recv(target, 0)
        assert target.min() == 1
# [/flow]
dist.destroy_process_group()
