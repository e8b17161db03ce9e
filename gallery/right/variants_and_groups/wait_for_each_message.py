"""Worker: pass numbers around a ring of ranks, one message after another and all at once."""

from datetime import timedelta

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world_size, (rank - 1) % world_size


# [mistake]
def one_after_another(messages):
    """Wait for each message before the next one begins."""
    for begin, *arguments in messages:
        begin(*arguments).wait(timedelta(seconds=1))


# [/mistake]
# [cure]
def all_at_once(messages):
    """Begin all messages before the first wait."""
    operations = [dist.P2POp(*message) for message in messages]
    works = dist.batch_isend_irecv(operations)
    assert len(works) == 2  # supports_coalescing is false
    for work in works:
        work.wait()


# [/cure]
# [use]
for exchange in [one_after_another, all_at_once]:
    group = dist.new_group()
    sent, received = torch.tensor(rank), torch.tensor(-1)
    try:
        exchange([(dist.isend, sent, right, group), (dist.irecv, received, left, group)])
    except dist.DistBackendError as error:
        print(str(error).splitlines()[0].removeprefix("Backend store: "))
        dist.barrier()  # now all ranks have their error
        group.abort()  # ends the send, which still waits
    print(f"{exchange.__name__}: received {received.item()}")
# [/use]
dist.destroy_process_group()
