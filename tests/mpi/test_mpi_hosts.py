"""The backend `mpich` on two hosts, which are namespaces of Linux."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from several_hosts import hosts_or_skip

HERE = Path(__file__).parent
PORT = "29500"  # free on a new host


@pytest.fixture
def hosts():
    with hosts_or_skip(2) as two:
        yield two


@pytest.fixture
def ranks(hosts):
    """Return four ranks in a group, started without a launcher, for they may be killed."""
    processes = []
    for rank in range(4):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ["PYTHONPATH"]]),
            "RANK": str(rank),
            "WORLD_SIZE": "4",
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": PORT,
        }
        processes.append(
            hosts[rank // 2].popen(
                [sys.executable, HERE / "two_hosts.py"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return processes


def errors(ranks, *orders):
    """Let all ranks go on, and return the kind and the text of each one's error."""
    for process, order in zip(ranks, orders, strict=True):
        print(order, file=process.stdin, flush=True)
    lines = [process.communicate(timeout=600)[0] for process in ranks]
    return [line.split(" ", 1) for line in lines if line]


def test_a_rank_that_dies_on_another_host_is_named(ranks):
    others = errors(ranks, "", "", "", "die")
    assert len(others) == 3
    for kind, text in others:
        assert kind == "DistBackendError" and "rank 3 has" in text, text
    # The host of rank 3 sees its process; the other one hears of it no more, or hears the reason.
    assert "rank 3 has died" in others[2][1]


@pytest.mark.parametrize("orders", [["die", "", "", ""], ["die", "die", "", ""]])
def test_the_rank_that_hosts_the_store_dies(ranks, orders):
    """Those on other hosts notice it after a heartbeat, and not at the deadline."""
    others = errors(ranks, *orders)
    assert len(others) == orders.count("")
    for kind, text in others:
        assert kind == "DistBackendError", text
        noticed = "the store has not answered for 3000 ms" in text
        assert noticed or "rank 0 has died" in text or "rank 1 has died" in text, text


def test_a_host_dies(hosts, ranks):
    """All ranks that live learn it, although the first of them ends with the store."""
    others = errors(ranks, "", "", "die", "die")
    assert len(others) == 2
    for kind, text in others:
        assert kind == "DistBackendError", text
        assert "has not been heard from for 3000 ms" in text, text


def test_a_cut_link_ends_every_rank(hosts, ranks):
    """Those on the side of the store, and those on the other one."""
    hosts[1].cut()
    answers = errors(ranks, "", "", "", "")
    assert len(answers) == 4
    for rank, (kind, text) in enumerate(answers):
        assert kind == "DistBackendError", text
        if rank < 2:  # the store is on this side
            assert "has not been heard from for 3000 ms" in text, text
