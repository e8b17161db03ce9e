"""Groups of some of the ranks, and how the ranks of a group wait for each other."""

import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import run, start_group
from shm_collectives import Options
from torch.distributed.device_mesh import init_device_mesh


def sum_in(group):
    tensor = torch.tensor([dist.get_rank()])
    dist.all_reduce(tensor, group=group)
    return int(tensor)


def parts(rank, size):
    """Return sums in a part of the ranks, or nothing outside it, and along a mesh's dimensions."""
    start_group(device_id=torch.device("cpu", 0))
    part = dist.new_group(range(size // 2))
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    inside = sum_in(part) if rank < size // 2 else part
    return inside, sum_in(mesh.get_group("rows")), sum_in(mesh.get_group("columns"))


def test_groups_with_a_device():
    outside = dist.GroupMember.NON_GROUP_MEMBER
    assert run(parts, 2, 2, init=False) == [(0, 1, 0), (outside, 1, 1)]
    four = [(1, 2, 1), (1, 4, 1), (outside, 2, 5), (outside, 4, 5)]
    assert run(parts, 4, 4, init=False) == four


def way_to_wait(rank, own_session, yield_for=None):
    if own_session:
        os.setsid()
    options = Options()
    options.yield_for = yield_for
    start_group(options=options)
    return dist.group.WORLD._get_backend(torch.device("cpu")).yield_for


# More ranks than processors, and not; a session is what torchrun gives each rank.
@pytest.mark.parametrize("own_session", [False, True])
@pytest.mark.parametrize("size", [2, os.cpu_count() + 1])
def test_ranks_of_several_sessions_sleep_at_once_where_they_outnumber_processors(size, own_session):
    sleeps = own_session and size > os.cpu_count()
    expected = timedelta(microseconds=0 if sleeps else 500)
    assert run(way_to_wait, size, own_session, init=False) == [expected] * size
    chosen = timedelta(milliseconds=3)
    assert run(way_to_wait, size, own_session, chosen, init=False) == [chosen] * size
