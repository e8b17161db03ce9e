"""Two tests of all_reduce. A backend that moves no data passes the first."""

import dummy_collectives  # importing it registers "dummy"
import torch
import torch.distributed as dist

# [mistake]
def test_with_zeros(rank, size):
    tensor = torch.zeros(4)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [0, 0, 0, 0], tensor.tolist()


# [/mistake]
# [cure]
def test_with_numbers(rank, size):
    tensor = torch.arange(4) + 10**rank
    dist.all_reduce(tensor)
    ranks = sum(10**r for r in range(size))
    assert tensor.tolist() == [size * i + ranks for i in range(4)], tensor.tolist()


# [/cure]
dist.init_process_group("dummy")
for test in (test_with_zeros, test_with_numbers):
    try:
        test(dist.get_rank(), dist.get_world_size())
        print(f"{test.__name__}: passed")
    except AssertionError as error:
        print(f"{test.__name__}: failed, got {error}")
dist.destroy_process_group()
assert dummy_collectives.__doc__
