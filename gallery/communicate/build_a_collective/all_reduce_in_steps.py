"""Worker: reduce tensors that need one step, and tensors that need many."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

# [numbers]
options = shm_collectives.Options()
options.slot_bytes = 4096  # 256 KiB by default
dist.init_process_group("shm", pg_options=options)
rank, world_size = dist.get_rank(), dist.get_world_size()

for numbers in (10, 100_000):
    # Most tenths are not exact in binary, so the order of the additions matters.
    ours = torch.full((numbers,), 0.1) * (rank + 1) + torch.arange(numbers)
    dist.all_reduce(ours)

    everyones = [torch.empty_like(ours) for _ in range(world_size)]
    dist.all_gather(everyones, ours)
    same = all(torch.equal(one, ours) for one in everyones)
    print(f"{numbers:,} numbers: the first is {ours[0]:.1f}, the same bits everywhere: {same}")
    # [/numbers]
    assert same and abs(ours[0].item() - 0.1 * sum(range(world_size + 1))) < 1e-6

dist.destroy_process_group()
