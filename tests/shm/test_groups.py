"""How the ranks of a group wait for each other."""

import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import run, start_group
from shm_collectives import Options


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
