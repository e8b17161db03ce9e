"""The backend `tcp` on two hosts, which are namespaces of Linux with one file for the store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from several_hosts import hosts_or_skip

HERE = Path(__file__).parent


@pytest.fixture
def hosts():
    with hosts_or_skip(2) as two:
        yield two


def start(hosts, path, ranks=4, heartbeat=300):
    """Return ranks that wait for an order, half of them on each host."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ["PYTHONPATH"]]),
    }
    started = [
        hosts[rank * 2 // ranks].popen(
            [sys.executable, HERE / "host_rank.py", path, *map(str, [rank, ranks, heartbeat])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    total = sum(range(ranks))
    for process in started:
        line = process.stdout.readline()
        assert line == f"{total:.1f}\n", process.communicate(timeout=600)[1]
    return started


def answers(ranks, *orders):
    for process, order in zip(ranks, orders, strict=True):
        print(order, file=process.stdin, flush=True)
    return [process.communicate(timeout=600)[0] for process in ranks]


def test_ipv6_alone(hosts, tmp_path):
    """Hosts without an address of IPv4 connect by IPv6."""
    for number, host in enumerate(hosts):
        for command in (
            "ip -4 address flush dev eth0",
            f"ip address add fd77::{number + 1}/64 dev eth0 nodad",
        ):
            assert host.popen(command.split()).wait(60) == 0
    assert answers(start(hosts, tmp_path / "store"), *[""] * 4) == [""] * 4


def test_a_rank_that_dies_on_another_host_closes_its_connections(hosts, tmp_path):
    texts = answers(start(hosts, tmp_path / "store"), "call", "call", "call", "die")
    for text in texts[:3]:
        assert text.startswith("DistBackendError") and "rank 3" in text, texts
    # Its host sees its process, and the other one its connections, or the reason of the others.
    assert "rank 3 has died" in texts[2]


def test_a_cut_link_is_found_by_the_connections(hosts, tmp_path):
    """The store is reached all the same: only data that is not acknowledged tells."""
    ranks = start(hosts, tmp_path / "store", ranks=2)
    hosts[1].cut()
    for text in answers(ranks, "call", "call"):
        assert " is lost: " in text, text  # as the first one says that finds it
