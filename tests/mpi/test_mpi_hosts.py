"""The backend `mpich` on two hosts, which are namespaces of Linux."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from c10d_conformance.hosts import HostsError, simulated_hosts

HERE = Path(__file__).parent
PORT = "29500"  # free on a new host


@pytest.fixture
def hosts():
    try:
        with simulated_hosts(2) as two:
            yield two
    except HostsError as error:
        pytest.skip(str(error))


def start(hosts, what, ranks=2):
    """Start the ranks of two_hosts.py without a launcher, for they may be killed."""
    processes = []
    for rank in range(2 * ranks):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ["PYTHONPATH"]]),
            "RANK": str(rank),
            "WORLD_SIZE": str(2 * ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": PORT,
        }
        processes.append(
            hosts[rank // ranks].popen(
                [sys.executable, HERE / "two_hosts.py", what],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return processes


def test_torchrun_starts_ranks_on_two_hosts(hosts):
    path = os.pathsep.join([str(HERE.parent), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
    command += [f"--master-addr={hosts[0].name}", f"--master-port={PORT}"]
    launchers = [
        host.popen(
            [*command, f"--node-rank={number}", HERE / "two_hosts.py", "work"],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, host in enumerate(hosts)
    ]
    outputs = [launcher.communicate(timeout=60) for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], outputs
    lines = sorted(line for out, _ in outputs for line in out.splitlines())
    assert lines == ["(10, 10, 0, 5)", "(10, 10, 1, 5)", "(10, 10, 2, 1)", "(10, 10, 3, 1)"]


def answers(processes):
    """Let all ranks go on, and return what each prints about its error."""
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        with contextlib.suppress(BrokenPipeError):
            print(file=process.stdin, flush=True)
    return [process.communicate(timeout=60)[0] for process in processes]


def test_a_rank_that_dies_on_another_host_is_named(hosts):
    *others, _ = answers(start(hosts, "kill"))
    for line in others:
        kind, seconds, text = line.split(" ", 2)
        assert kind == "DistBackendError", line
        assert "rank 3 has" in text and float(seconds) < 4, line
    # The host of rank 3 sees its process; the other one hears of it no more, or hears the reason.
    assert "rank 3 has died" in others[2]


def test_a_cut_link_ends_every_rank_at_its_deadline(hosts):
    """Those on the side of the store, and those on the other one."""
    processes = start(hosts, "cut")
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    hosts[1].cut()
    for process in processes:
        print(file=process.stdin, flush=True)
    for rank, process in enumerate(processes):
        line = process.communicate(timeout=60)[0]
        kind, seconds, text = line.split(" ", 2)
        assert kind == "DistBackendError" and float(seconds) < 7, line
        if rank < 2:  # the store is on this side
            assert "has not been heard of for 1000 ms" in text, line
