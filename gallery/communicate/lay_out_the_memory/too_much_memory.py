"""Worker: ranks that request far too much memory."""

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

# [too-much]
options = shm_collectives.Options()
options.slot_bytes = 1 << 44
try:
    dist.init_process_group("shm", pg_options=options)
except dist.DistStoreError as error:
    print(str(error).splitlines()[0])
# [/too-much]
