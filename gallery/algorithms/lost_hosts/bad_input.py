"""Worker: give one rank options that cannot be used."""

import re

import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"

options = tcp_collectives.Options()
options.interface = "lo"
dist.init_process_group("tcp", pg_options=options)
rank = dist.get_rank()


def show(reasons):
    """Print each reason on a line, without the list of names and the version of the frame."""
    reasons = re.sub(r" all_reduce=ring .*", " ...", re.sub(r"frame \d+", "frame ...", reasons))
    print("\n    ".join(reasons.split("; rank")).replace("\n     ", "\n    rank "))


# [attempts]
for name, value in [
    ("interface", "fast0"),
    ("algorithms", "all_reduce=rign"),
    ("algorithms", "all_reduce=ring"),
]:
    options = tcp_collectives.Options()
    options.interface = "lo"
    if rank == 1:
        setattr(options, name, value)
    try:
        dist.new_group(pg_options=options)
    except dist.DistStoreError as error:
        reasons = str(error).splitlines()[0].partition('": ')[2]
        if rank == 0:
            show(f"{name}={value} on rank 1; {reasons}")
# [/attempts]

dist.all_reduce(total := torch.ones(1))
if rank == 0:
    print(f"afterwards, an all-reduce of ones in the default group gives {total.item():.0f}")
dist.destroy_process_group()
