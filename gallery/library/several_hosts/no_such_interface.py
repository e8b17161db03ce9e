"""Ask for an interface that this host does not have."""

import mpi_collectives
import torch.distributed as dist

options = mpi_collectives.Options()
options.interface = "fast0"
try:
    dist.init_process_group("mpich", pg_options=options)
except dist.DistStoreError as error:
    print(str(error).splitlines()[0])
