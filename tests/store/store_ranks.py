"""Run a function in several ranks of a group of `store`, which know the server of its keys."""

import os
from datetime import timedelta

import ranks
import store_collectives
import torch.distributed as dist


def run(function, size, *arguments, init=True, **group):
    """Return what `function(rank, *arguments)` returns in each rank, or `ranks.Killed`.

    With `init`, it begins in a group, for which `start` takes the other arguments. All have a
    minute.
    """

    def in_group(rank):
        if init:
            start(**group)
        return function(rank, *arguments)

    with ranks.store_server() as (server, port):
        os.environ["STORE_SERVER"] = str(server)
        return ranks.run(in_group, size, timeout=60, init=False, port=port, may_be_killed=True)


def client():
    """Return a connection to the store of the ranks, whose keys gate what they do."""
    return dist.TCPStore("127.0.0.1", int(os.environ["STORE"]), wait_for_workers=False)


def start(seconds=30, can_block=True, options=None):
    """Make the default group, with a timeout of `seconds`."""
    options = options or store_collectives.Options()
    options.can_block = can_block
    dist.init_process_group(
        "store",
        store=dist.PrefixStore("group", client()),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=seconds),
        pg_options=options,
    )
