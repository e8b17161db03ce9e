"""Random operations of two groups have the results of plain PyTorch."""

import random

import pytest
import torch.distributed as dist
from random_operations import Operations
from ranks import run


def play(rank, size, seed):
    """Call operations of all ranks and of all but rank 0, in an order on which all ranks agree."""
    groups = [dist.group.WORLD]
    if size > 1:
        groups.append(dist.new_group(range(1, size), backend="shm"))
    players = [
        Operations(group, f"{seed} {number}", coalescing=True) if rank >= number else None
        for number, group in enumerate(groups)
    ]
    shared = random.Random(seed)
    for _ in range(150):
        kind, player = shared.choice(["collective", "messages"]), shared.choice(players)
        if player:
            getattr(player, kind)()
    for player in filter(None, players):
        player.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_random_operations(size):
    run(play, size, size, f"seed {size}")
