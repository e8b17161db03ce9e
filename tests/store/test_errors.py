"""Errors of the backend `store`, and with it of the frame: each names what the reader must know."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import store_collectives
import torch
import torch.distributed as dist
from programs import (
    SOON,
    assert_described,
    assert_names_the_shortage,
    assert_timeouts_are_right,
    mismatches,
    numbers_at_the_limits,
    ones,
    timeouts_at_the_limits,
    without_rank_2,
    without_threads,
)
from ranks import client, error_of
from store_ranks import run, start

BOTH_WAYS = pytest.mark.parametrize("can_block", [True, False], ids=["thread", "caller"])


def backend(group):
    return group._get_backend(torch.device("cpu"))


@BOTH_WAYS
def test_a_killed_rank_is_named_when_the_time_is_over(can_block):
    answers = run(without_rank_2, 3, "killed", SOON, can_block=can_block)[:2]
    for rank, errors in enumerate(answers):
        for name, (kind, text, _) in errors.items():
            assert kind == "DistBackendError", name
            operation = "all_reduce" if name == "future" else name.split()[0]
            assert text.startswith(("Backend store: " + operation, "Rank 1 successfully")), text
            # The group, the sequence number or the tag, and the ranks; or what rank 0 has said.
            assert re.search(r'of group "\d+" (failed on|has not ended)', text), text
            assert re.search(r"#[12]|with tag 0", text), text
            late = "any rank" if name == "recv of any rank" else "Rank 2"
            assert late in text and "500 ms" in text, (rank, text)


@pytest.mark.parametrize(
    ("how", "reason", "can_block"),
    [
        ("destroyed", "rank 2 has left the group", True),
        ("aborts", "rank 2 has aborted the group", False),
    ],
)
def test_a_rank_that_leaves_is_named(how, reason, can_block):
    for errors in run(without_rank_2, 3, how, can_block=can_block)[:2]:
        for name, (_, text, _) in errors.items():
            assert reason in text, f"{name}: {text}"


def dies_in_the_middle(rank):
    """Rank 2 dies when it has shown a part of its data."""
    if rank == 2:
        dist.all_reduce(ones(10_000_000), async_op=True)
        store = dist.PrefixStore("group", client())
        while not any("/1/2/all/0" in key for key in store.list_keys()):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return error_of(dist.all_reduce, ones(10_000_000))


def test_a_rank_dies_in_the_middle_of_its_data():
    # Time enough for the survivors to write their own data on a busy machine.
    for _, text, _ in run(dies_in_the_middle, 3, seconds=8)[:2]:
        late = "Ranks? (0, |1, )?2$"  # a survivor may be slow
        assert re.search("all_reduce #1 of 40000000 bytes of float32 .*" + late, text, re.M)


def timeout_in_options(rank):
    start(options=store_collectives.Options(SOON))
    if rank == 1:
        client().wait(["done"])
        return None
    error = error_of(dist.barrier)
    client().set("done", "")
    return error


def test_a_timeout_in_the_options_wins_over_that_of_the_group():
    _, text, _ = run(timeout_in_options, 2, init=False)[0]
    assert "500 ms" in text and "Rank 1" in text, text


@BOTH_WAYS
def test_calls_that_do_not_agree_are_described(can_block):
    assert_described(run(mismatches, 2, can_block=can_block))


def test_numbers_at_the_limits_of_their_types_are_refused():
    assert run(numbers_at_the_limits, 3) == [([], 3.0)] * 3


@BOTH_WAYS
def test_timeouts_at_the_limits(can_block):
    assert_timeouts_are_right(run(timeouts_at_the_limits, 2, can_block=can_block))


def test_a_shortage_of_threads_is_an_error_on_all_ranks():
    assert_names_the_shortage(run(without_threads, 2, start, init=False), "store")


def test_ranks_that_do_not_come_are_named():
    error, *_ = run(lambda rank: None if rank else error_of(start, seconds=0.5), 3, init=False)
    assert error[0] == "DistStoreError"
    names = "rank 1, rank 2 did not come within 500 ms"
    assert re.search(rf'Backend store: rank 0 of 3 cannot join group "\d+": {names}', error[1])


def after_another_run(rank):
    """Meet in the store of a run whose rank 1 has started more often, and which was killed."""
    if rank == 1:
        for _ in range(2):
            if os.fork() == 0:
                error_of(start, seconds=0.2)
                os.kill(os.getpid(), signal.SIGKILL)
            os.wait()
        client().set("killed", "")
    client().wait(["killed"])
    start()
    total = ones()
    dist.all_reduce(total)
    return float(total)


def test_keys_of_an_earlier_run_do_no_harm():
    assert run(after_another_run, 2, init=False) == [2, 2]


def test_python_exits_without_destroy():
    """A rank exits at once: with calls that have not ended, callbacks and a waiting thread."""
    command = [sys.executable, Path(__file__).with_name("exits.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


def server_dies(rank):
    dist.all_reduce(ones())
    store = client()
    if rank == 0:
        store.set("rank 0", "")
    else:
        store.wait(["rank 0"])
        os.kill(int(os.environ["STORE_SERVER"]), signal.SIGKILL)
    return error_of(dist.all_reduce, ones()), error_of(dist.all_reduce, ones())


@BOTH_WAYS
def test_the_server_of_the_store_dies(can_block):
    for errors in run(server_dies, 2, can_block=can_block):
        for _, text, _ in errors:
            assert "all_reduce #" in text and "the store is lost: " in text
