"""Program: ranks that mp.spawn starts form a group, in two ways."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 2


def work(rank, port, other_port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    os.environ["RANK"] = str(rank)
    os.environ["WORLD_SIZE"] = str(WORLD_SIZE)
    dist.init_process_group("gloo")
    add_up("the environment")

    address = f"tcp://localhost:{other_port}"
    dist.init_process_group("gloo", address, rank=rank, world_size=WORLD_SIZE)
    add_up("an address")


def add_up(origin):
    tensor = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(tensor)
    if dist.get_rank() == 0:
        print(f"group from {origin}: {dist.get_world_size()} ranks, sum {tensor.item():g}")
    assert tensor.item() == 1 + 2
    dist.destroy_process_group()


def reserve_port(reserved):
    """Return a free port, which no other program gets while the socket is open."""
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("localhost", 0))
    return reserved.getsockname()[1]


if __name__ == "__main__":
    with socket.socket() as one, socket.socket() as another:
        ports = reserve_port(one), reserve_port(another)
        mp.spawn(work, args=ports, nprocs=WORLD_SIZE)
