"""A test of the dummy's author, beside which the suite runs its checks."""

import dummy_collectives
import torch
import torch.distributed as dist


def test_one_rank_all_reduces_zeros():
    dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert not tensor.any()
