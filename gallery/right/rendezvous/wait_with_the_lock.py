"""Worker: a create function waits in C for another thread, with the lock and without."""

import _thread
import ctypes
import os
import select
import struct
import sys

import torch.distributed as dist

import store_collectives  # importing it registers "store"

create_store = dist.Backend._plugins["STORE"].creator_fn
reader, writer = os.pipe()
byte_to_read = ctypes.create_string_buffer(struct.pack("ihh", reader, select.POLLIN, 0))
sys.setswitchinterval(100)  # Python does not run the other thread before poll.


# [waits]
def create(group, pg_options):
    """Wait in C for another thread, for 2 seconds at most. Then create the backend "store"."""
    _thread.start_new_thread(os.write, (writer, b"!"))
    came = poll(byte_to_read, 1, 2000) == 1
    print(f"{name} the lock, the other thread came in time: {came}")
    os.read(reader, 1)
    return create_store(group, pg_options)


dist.Backend.register_backend("waiting", create, extended_api=True, devices=["cpu"])
for name, library in [("with", ctypes.PyDLL(None)), ("without", ctypes.CDLL(None))]:
    poll = library.poll
    dist.init_process_group("waiting", store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
# [/waits]
