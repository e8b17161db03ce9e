"""A rank that is lost or late is soon an error on the others, which names it."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from programs import (
    MISMATCHES,
    OF_TWO,
    assert_described,
    assert_timeouts_are_right,
    mismatches,
    polls,
    timeouts_at_the_limits,
    without_rank_2,
)
from ranks import error_of, in_ranks, run, run_by_server, start_by_server
from shm_collectives import Options

from tools.project.paths import EXTENSIONS, HEADERS


def all_reduce():
    dist.all_reduce(torch.ones(1))


BEGIN = partial(start_by_server, "shm")
ONLY_YIELDS = Options()
ONLY_YIELDS.yield_for = timedelta(hours=1)  # Before a rank sleeps, it checks anyway.


@pytest.mark.parametrize(
    ("how", "reason", "options"),
    [
        ("killed", "rank 2 has died", None),
        ("killed", "rank 2 has died", ONLY_YIELDS),
        ("destroys", "rank 2 has left", None),
        ("aborts", "rank 2 has aborted", None),
    ],
)
def test_a_lost_rank_is_named_before_the_time_is_over(how, reason, options):
    for errors in run_by_server(BEGIN, without_rank_2, 3, how, options=options)[:2]:
        for name, (_, text, _) in errors.items():
            assert reason in text, f"{name}: {text}"


@in_ranks(3)
def test_a_receive_from_anybody_waits_for_those_who_have_not_left(rank):
    """Rank 2 goes, and its process ends, while rank 1 is still to send."""
    tensor = torch.full((1,), float(rank))
    if rank == 1:
        time.sleep(1)
        dist.send(tensor, 0)
    elif rank == 0:
        assert dist.recv(tensor) == 1 and float(tensor) == 1
        kind, text, _ = error_of(dist.recv, tensor)
        assert kind == "DistBackendError" and "all other ranks have left" in text


@in_ranks(2, group_timeout=6)
def test_a_timeout_begins_with_the_first_step(rank):
    works = []
    for _ in range(2):
        if rank == 1:
            time.sleep(3.5)  # twice that is longer than the timeout
        works.append(dist.all_reduce(torch.ones(1), async_op=True))
    for work in works:
        work.wait()


@in_ranks(2, options=ONLY_YIELDS)
def test_a_late_rank_is_noticed_beside_its_messages(rank):
    """Wait for rank 1 in a collective, while its messages keep this rank busy."""
    dist.set_timeout(timedelta(seconds=0.5))
    if rank == 1:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                dist.send(torch.ones(1), 0, tag=1)
            except dist.DistBackendError:
                break
        return
    missing = dist.barrier(async_op=True)

    def receive_others():
        while not missing.is_completed():
            dist.irecv(torch.ones(1), 1, tag=1).wait()
        missing.wait()

    kind, text, _ = error_of(receive_others)
    assert kind == "DistBackendError"
    assert "Timed out after 500 ms: rank 0 has waited in barrier" in text


@in_ranks(2)
def test_a_late_message_fails_only_the_wait_for_it(rank):
    """Let messages take longer than the timeout of the group; wait in vain for one of them."""
    tensor = torch.zeros(1)
    if rank == 1:
        dist.barrier()
        dist.send(torch.ones(1), 0)
        dist.recv(tensor, 0, tag=1)
        assert float(tensor) == 1
        return
    dist.set_timeout(timedelta(seconds=0.6))
    early, unwaited = dist.irecv(tensor, 1), dist.isend(torch.ones(1), 1, tag=1)
    kind, text, _ = error_of(early.wait)
    dist.set_timeout(timedelta(seconds=300))
    dist.barrier()
    early.wait()
    unwaited.wait()
    assert float(tensor) == 1
    assert kind == "DistBackendError"
    assert "recv of 4 bytes of float32 with tag 0 from rank 1" in text
    assert "600 ms of this wait" in text


@in_ranks(2)
def test_a_group_ends_beside_a_message_that_nobody_takes(rank):
    for call in (dist.isend, dist.irecv):
        group = dist.new_group()
        dist.barrier(group)
        if rank == 0:
            work = call(torch.ones(1), 1, group=group)
            dist.destroy_process_group(group)
            assert error_of(work.wait)[0] == "DistBackendError"
        dist.barrier()


@in_ranks(2)
def test_a_message_is_delivered_although_its_group_ends(rank):
    """Send more than the memory has room for, and leave before it is received."""
    tensor = torch.full((1_000_000,), float(rank))
    if rank == 0:
        dist.isend(tensor, 1)
    else:
        time.sleep(0.4)
        dist.recv(tensor, 0)
        assert not tensor.any()


def test_timeouts_at_the_limits():
    assert_timeouts_are_right(run(timeouts_at_the_limits, 2))


def test_a_work_ends_for_a_program_that_only_polls():
    assert run_by_server(BEGIN, polls, 2, options=None) == [(2.0, 7.0)] * 2


@pytest.mark.parametrize("days", [109_500, -1])
def test_a_time_to_yield_may_be_longer_than_the_clock_counts(days):
    options = Options()
    options.yield_for = timedelta(days=days)
    assert run_by_server(BEGIN, polls, 2, options=options) == [(2.0, 7.0)] * 2


@in_ranks(2)
def test_coalescing_ends_after_an_abort(rank):
    world, device = dist.group.WORLD, torch.device("cpu")
    world._start_coalescing(device)
    if rank == 0:
        world.allreduce([torch.ones(1)])  # Rank 1 makes no call.
    world._get_backend(device).abort()
    work = world._end_coalescing(device)
    if rank == 0:
        kind, text, _ = error_of(work.wait)
        assert kind == "DistBackendError" and "abort" in text
    else:
        work.wait()


@in_ranks(2)
def test_an_abort_ends_the_threads_of_its_group(rank):
    """Abort groups in which threads of this rank wait."""
    groups = [dist.new_group() for _ in range(20)]
    for group in groups if rank == 0 else []:
        with ThreadPoolExecutor(4) as threads:
            work = [group.recv([torch.ones(1)], 1, tag) for tag in range(4)]
            for each in work:
                threads.submit(error_of, each.wait)
            group.abort()
        dist.destroy_process_group(group)
        assert drivers() == len(groups), "that of the default group, and of those to come"
        groups = groups[1:]
    dist.barrier()


def drivers():
    """Return how many groups have a thread that drives their transport."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count("shm_driver")


@pytest.mark.parametrize("size", [2, 3])
def test_calls_that_do_not_agree_are_described(size):
    calls = {name: call for name, call in MISMATCHES.items() if size == 2 or name not in OF_TWO}
    assert_described(run(mismatches, size, calls), calls)


@in_ranks(2)
def test_a_fork_does_not_have_the_group(rank):
    all_reduce()
    receives = [dist.irecv(torch.ones(1), 1 - rank) for _ in range(2)]
    receives[0].get_future()
    work = dist.all_reduce(torch.ones(1), async_op=True)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            calls = [all_reduce, dist.group.WORLD.barrier]
            calls += [receive.get_future for receive in receives]
            texts = [error_of(call)[1] for call in calls]
            dist.group.WORLD._get_backend(torch.device("cpu")).abort()
            dist.destroy_process_group()
            dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
            texts.append(f"a group of its own: {all_reduce()}")
            os.write(writing, "\n".join(texts).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    work.wait()
    for receive in receives:
        dist.isend(torch.ones(1), 1 - rank)
        receive.wait()
    all_reduce()  # the parent's group is as good as before
    text = os.read(reading, 10000).decode()
    assert text.count("belongs to the process that created it") == 4
    assert text.count("call init_process_group in the new process") == 4
    assert text.endswith("a group of its own: None")


def compiled(name, folder):
    """Compile a program of this folder with the headers of the backend, and return its path."""
    shm = next(x for x in EXTENSIONS if x.name == "shm_collectives")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{HEADERS}", f"-I{shm}/src"]
    command += [Path(__file__).with_name(f"{name}.cpp"), "-o", folder / name]
    subprocess.run(command, check=True)
    return folder / name


def test_a_long_reason_ends_with_a_whole_letter(tmp_path):
    program = compiled("reason", tmp_path)
    for before in range(3):  # A letter has three bytes.
        reason = "." * before + "\uac00" * 2000
        done = subprocess.run([program, reason], capture_output=True, check=True)
        assert reason.startswith(done.stdout.decode()) and len(done.stdout) > 1900


def test_a_message_comes_after_a_shortage_of_memory(tmp_path):
    program = compiled("shortage", tmp_path)
    error, received = subprocess.check_output(program, text=True, timeout=60).splitlines()
    assert "cannot reserve 131136 bytes of memory" in error
    assert received == "42"


def test_all_pages_are_reserved_on_an_old_kernel(tmp_path):
    assert subprocess.check_output(compiled("old_kernel", tmp_path), text=True, timeout=60) == "0"


START = """
import contextlib, functools, os, sys, tempfile, threading, time
import shm_collectives, torch, torch.distributed as dist
for folder in sys.argv[1:]:
    for rank in range(2):
        if os.fork() == 0:
            break
    else:
        continue
    break
else:
    statuses = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2 * len(sys.argv[1:]))]
    os._exit(any(statuses))
for number, name in enumerate(("out", "err"), 1):
    os.dup2(os.open(f"{folder}/{name}-{rank}", os.O_CREAT | os.O_WRONLY), number)
store = dist.FileStore(f"{folder}/store", 2)
dist.init_process_group("shm", store=store, rank=rank, world_size=2)
dist.all_reduce(torch.ones(1))
if rank == 1:
    time.sleep(1)
    sys.exit()
exec(open(f"{folder}/program.py").read())
"""
AT_EXIT = {
    "a work": """
work = dist.all_reduce(torch.ones(1), async_op=True)
work.get_future().then(lambda future: future.value())
work.get_future().add_done_callback(lambda future: print("ended"))
""",
    "daemon threads": """
for tag in range(20):
    call = functools.partial(dist.recv, torch.ones(1), 1, tag=tag)
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
""",
    "a thread that destroys the group": """
dist.all_reduce(torch.ones(1), async_op=True)
threading.Thread(target=dist.destroy_process_group, daemon=True).start()
time.sleep(0.3)
""",
    "a thread that tries again": """
def retry():
    while True:
        with contextlib.suppress(dist.DistBackendError):
            dist.barrier(async_op=True)
threading.Thread(target=retry, daemon=True).start()
time.sleep(0.3)
""",
    "a lock of a thread": """
lock = threading.Lock()
first = dist.all_reduce(torch.ones(1), async_op=True)
first.get_future().then(lambda _: lock.acquire())
def receive():
    with lock:
        dist.recv(torch.ones(1), 1)
threading.Thread(target=receive, daemon=True).start()
time.sleep(0.3)
""",
}


def test_exit_without_destroying_the_group(tmp_path):
    """Let forks of one Python, two ranks for each program, end as a Python does that has begun."""
    folders = [tmp_path / name for name in AT_EXIT]
    for folder, program in zip(folders, AT_EXIT.values(), strict=True):
        folder.mkdir()
        (folder / "program.py").write_text(program)
    status = subprocess.run([sys.executable, "-c", START, *folders], timeout=600).returncode
    for folder in folders:
        for rank in range(2):
            error = (folder / f"err-{rank}").read_text()
            assert "Traceback" not in error and "terminate" not in error, f"{folder}: {error}"
            assert "Fatal" not in error and "Exception" not in error, f"{folder}: {error}"
            output = "ended\n" if (folder.name, rank) == ("a work", 0) else ""
            assert (folder / f"out-{rank}").read_text() == output, folder
    assert status == 0
