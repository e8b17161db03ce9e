"""Worker: abort a call that waits for rank 1, with a library that can abort and one that cannot."""

import time
from datetime import timedelta

import store_collectives  # importing it registers "store"
import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, rank

store = dist.distributed_c10d._get_default_store()


# [abort]
def abort(library):
    options = stream_collectives.Options(timedelta(seconds=3))
    options.library = library
    group = dist.new_group(backend="simccl", pg_options=options)
    if rank == 1:
        return store.wait([f"rank 0 has aborted {library}"])
    start = time.monotonic()
    work = dist.all_reduce(torch.ones(1, device=device), group=group, async_op=True)
    torch.sim.settle(peers=False)  # the library waits for rank 1
    group._get_backend(device).abort()
    torch.accelerator.synchronize()
    print(f"{library} has freed the stream before the deadline:", time.monotonic() - start < 3)
    try:
        work.wait()
    except dist.DistBackendError as error:
        print(str(error).splitlines()[0])
    store.set(f"rank 0 has aborted {library}", "")


abort("store")
abort("gloo")
# [/abort]
end()
