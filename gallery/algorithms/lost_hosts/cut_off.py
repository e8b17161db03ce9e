"""Program: cut the connections between two ranks, and print what the ranks raise."""

import ctypes
import multiprocessing
import os
import re
import socket
import struct
import tempfile
import time

import psutil
import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"


# [cut]
def cut():
    """Let the kernel drop what arrives at the connections of this process, from now on."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0
    program = struct.pack("HP", 1, ctypes.addressof(drop_all))
    for connection in psutil.Process().net_connections("tcp"):
        with socket.socket(fileno=os.dup(connection.fd)) as end:
            end.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER


# [/cut]
# [ways]
def reduce(rank):
    """Each rank has sent data that the other one does not acknowledge."""
    dist.all_reduce(torch.ones(1000))


def receive(rank):
    """Rank 0 waits, and nothing is on its way."""
    if rank == 0:
        dist.recv(torch.empty(1), src=1)


# [/ways]
def start(rank, way, path, errors, barrier):
    """Run a rank, and send its error to the parent, with the seconds that it took."""
    torch.set_num_threads(1)
    options = tcp_collectives.Options()
    options.interface = "lo"
    store = dist.FileStore(path, 2)
    dist.init_process_group("tcp", store=store, rank=rank, world_size=2, pg_options=options)
    dist.all_reduce(torch.ones(1000))
    barrier.wait()
    cut()
    barrier.wait()
    text, begin = "no error", time.monotonic()
    try:
        way(rank)
    except dist.DistBackendError as error:
        text = re.sub(r".* failed on rank \d: rank \d", "a rank", str(error).splitlines()[0])
    errors.send((text, time.monotonic() - begin))
    barrier.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ranks = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in [reduce, receive]:  # at the same time, because both take long
            barrier = context.Barrier(2)
            for rank in range(2):
                receiving, sending = context.Pipe(duplex=False)
                arguments = [rank, way, f"{folder}/{way.__name__}", sending, barrier]
                process = context.Process(target=start, args=arguments)
                process.start()
                ranks[way.__name__, rank] = process, receiving
        for (way, rank), (process, receiving) in ranks.items():
            text, seconds = receiving.recv()
            process.join()
            late = ", after more than 10 seconds" if seconds > 10 else ""
            print(f"{way}, rank {rank}{late}: {text}")
