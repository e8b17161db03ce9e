"""Ask for an interface that this host does not have, and then for one that it has."""

import mpi_collectives
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for interface in ["fast0", "lo"]:
    options = mpi_collectives.Options()
    options.interface = interface
    try:
        group = dist.new_group(backend="mpich", pg_options=options)
    except dist.DistStoreError as error:
        print(str(error).splitlines()[0])
    else:
        dist.all_reduce(number := torch.ones(1), group=group)
        print(f"{interface}: the sum is {number.item()}")
dist.destroy_process_group()
