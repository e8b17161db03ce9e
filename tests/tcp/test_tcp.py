"""The backend over sockets: its algorithms by name, its options, and strangers at its ports."""

import os
import re
import signal
import subprocess
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
import tcp_collectives
import torch
import torch.distributed as dist
from ranks import client, error_of, run_by_server, start_by_server

from tools.project.paths import FRAME_PACKAGE, HEADERS, ROOT

TABLE = (HEADERS / "frame" / "algorithms" / "algorithms.hpp").read_text()
NAMED = re.findall(r"\{Kind::(\w+), \"(\w+)\"", TABLE)

start = partial(start_by_server, "tcp", None)
run = partial(run_by_server, start)


def options(**values):
    made = tcp_collectives.Options()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def start_with(**values):
    start_by_server("tcp", options(**values))


def results(rank, size, group=None):
    """Return what all operations give, with tensors whose values say where they belong."""
    root, given = size - 1, []
    mine = (torch.arange(5000) + 10000 * rank).to(torch.int32)
    pieces = [torch.full((5000,), 100 * rank + to, dtype=torch.int32) for to in range(size)]
    every = [torch.empty(5000, dtype=torch.int32) for _ in range(size)]

    def keep(*tensors):
        given.extend(each.tolist() for each in tensors)

    dist.barrier(group)
    dist.all_reduce(summed := mine.clone(), group=group)
    dist.broadcast(sent := mine.clone(), root, group)
    dist.reduce(reduced := mine.clone(), root, group=group)
    keep(summed, sent, *([reduced] if rank == root else []))
    dist.all_gather(every, mine, group)
    keep(*every)
    dist.gather(mine, every if rank == root else None, root, group)
    dist.scatter(one := mine.clone(), pieces if rank == root else None, root, group)
    keep(*every, one)
    dist.reduce_scatter(one, pieces, group=group)
    keep(one)
    dist.all_to_all(every, pieces, group)
    keep(*every)
    return given


@pytest.mark.parametrize("size", [3, 4])
def test_every_algorithm_gives_what_the_chosen_ones_give(size):
    def compare(rank):
        expected = results(rank, size)
        return [
            (kind, name)
            for kind, name in NAMED
            if results(rank, size, dist.new_group(pg_options=options(algorithms=f"{kind}={name}")))
            != expected
        ]

    assert len(NAMED) > 20
    assert run(compare, size) == [[]] * size


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"algorithms": "all_reduce=rign"}, 'no algorithm "all_reduce=rign"; there are: all_red'),
        ({"interface": "none0"}, 'no network interface "none0"'),
        (
            {"algorithms": "all_reduce=ring"},
            "rank 1: rank 1 has another version or other algorithms",
        ),
    ],
)
def test_options_that_cannot_be_used(values, text):
    """All ranks say so, also those with other options, before there is a group."""

    def create(rank):
        return error_of(start_with, **(values if rank == 1 else {}))

    for kind, error, seconds in run(create, 2, init=False):
        assert text in error
        assert kind == "DistStoreError"
        assert seconds < 60


def compiled(name, folder):
    """Compile a program of this folder. Return a function that returns what it prints."""
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-pthread"]
    flags += [f"-I{include}" for include in (HEADERS, FRAME_PACKAGE, ROOT / "extension")]
    source, program = Path(__file__).with_name(f"{name}.cpp"), folder / name
    subprocess.run([os.environ.get("CXX", "c++"), *flags, source, "-o", program], check=True)

    def output(*arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100)
        return done.stdout + done.stderr

    return output


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    return compiled("strangers", tmp_path_factory.mktemp("tcp"))


def test_strangers_hold_up_nobody(strangers):
    """They call before the other rank: silent ones, and such as say half of a hello or garbage."""
    assert strangers() == "11 10\n"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("protocol 2, frame 10000, more\nand more", "rank 1 has another version or other algo"),
        ("protocol 1, frame 10001", "rank 1 has another version or other algorithms than rank 0"),
        ("garbage", 'the store has "garbage" in the key "address/1"'),
    ],
)
def test_a_rank_that_says_something_else(strangers, said, text):
    assert text in strangers(said)


WAYS = {
    "leaves": (lambda: dist.destroy_process_group(), "rank 2 has left the group"),
    "aborts": (lambda: dist.group.WORLD.abort(), "rank 2 has aborted the group"),
    "is killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), "rank 2 has died (process"),
    "differs": (lambda: dist.all_reduce(torch.ones(9)), "the ranks do not agree: rank "),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_reason_counts_and_not_the_connection(way):
    """A connection closes before the reason arrives, which is in the store then."""
    act, text = WAYS[way]

    def lose_rank_2(rank):
        dist.all_reduce(torch.ones(1000))
        if rank < 2:
            return error_of(dist.barrier)[1]
        return act() if way != "differs" else error_of(act)[1]

    for error in run(lose_rank_2, 3)[:2]:
        assert text in error


def test_sockets_carry_what_the_simulator_counts(tmp_path):
    """Of each algorithm: 3 and 4 ranks, a small and a large tensor, 1 and 2 ranks on a host."""
    assert compiled("counts", tmp_path)() == f"{8 * len(NAMED)} cases\n"


def test_an_input_may_be_any_output_of_a_gather():
    """The root has what the others send when it begins to receive."""

    def gather(rank):
        outputs = [torch.full((3,), float(rank)) for _ in range(3)]
        if rank == 2:
            client().wait(["0 has sent", "1 has sent"])
        dist.gather(outputs[0], outputs if rank == 2 else None, 2)
        client().set(f"{rank} has sent", "")
        return [output.tolist() for output in outputs]

    assert run(gather, 3)[2] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


def test_messages_wait_with_their_sender():
    """Memory does not grow by messages that no receive waits for."""

    def send_many(rank):
        if rank == 0:
            works = [dist.isend(torch.full((1 << 20,), float(i)), 1) for i in range(100)]
            dist.all_reduce(torch.ones(1))
            for work in works:
                work.wait()
            return True
        before = resident()
        dist.all_reduce(torch.ones(1))  # All messages have been begun.
        grown = resident() - before
        numbers = torch.empty(1 << 20)
        for i in range(100):
            dist.recv(numbers, 0)
            assert numbers[0] == numbers[-1] == i
        return grown < 100 << 20

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    assert run(send_many, 2) == [True, True]


def test_a_rank_that_is_late_keeps_its_connections():
    """It does not read meanwhile. Its kernel answers probes, and acknowledges no data."""

    def add(rank):
        numbers = torch.ones(16 << 20)  # more than the kernel keeps
        if rank == 1:
            time.sleep(18)
        dist.all_reduce(numbers)
        return numbers[0].item(), numbers[-1].item()

    assert run(add, 2) == [(2.0, 2.0)] * 2


def test_no_call_succeeds_that_has_failed_on_another_rank():
    """Also at the moment at which that rank raises the error, and with a recent look."""

    def call(rank):
        errors = []
        for number in range(5):
            group, soon = dist.new_group(timeout=timedelta(seconds=20)), timedelta(seconds=0.5)
            dist.all_reduce(torch.ones(1), group=group)
            if rank == 0:
                errors.append(error_of(dist.barrier, group, timeout=soon)[1])
                client().set(f"{number} has failed", "")
            else:
                dist.irecv(torch.ones(1), 0, group=group, tag=1)  # looks while it waits
                client().wait([f"{number} has failed"])
                errors.append(error_of(dist.barrier, group)[1])
        return errors

    for errors in run(call, 2):
        for text in errors:
            assert "Timed out after 500 ms: rank 0 has waited in barrier" in text, text


def test_an_error_says_that_no_more_messages_are_kept():
    def receive_the_last(rank):
        numbers, count = torch.ones(1 << 18), 80
        if rank == 0:
            works = [dist.isend(numbers, 1, tag=tag) for tag in range(count)]
            client().wait(["the receive is late"])
            return len(works)
        work = dist.irecv(numbers, 0, tag=count - 1)
        text = error_of(work.wait, timedelta(seconds=3))[1]
        client().set("the receive is late", "")
        return text

    text = run(receive_the_last, 2)[1]
    assert re.search(r"waits for Rank 0, of which \d{8} bytes of messages without a receive", text)


def test_connections_end_with_the_group():
    """Also where the program keeps what belongs to it."""

    def count(rank):
        kept = []
        for _ in range(3):
            group = dist.new_group()
            kept += [group, dist.all_reduce(torch.ones(1000), group=group, async_op=True)]
            kept[-1].wait()
            dist.destroy_process_group(group)
        return len(psutil.Process().net_connections("tcp"))

    before, after = (run(way, 2) for way in (connections, count))
    assert after == before


def connections(rank):
    return len(psutil.Process().net_connections("tcp"))


@pytest.mark.parametrize("interface", ["lo", ""])
def test_interfaces(interface):
    def add(rank):
        dist.all_reduce(numbers := torch.ones(1))
        return numbers.item()

    assert run_by_server(partial(start_with, interface=interface), add, 2) == [2.0, 2.0]
