"""The rendezvous of a group: names, timeouts, strangers and memory."""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import resource
import signal
import threading
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import shm_collectives
import torch
import torch.distributed as dist
from programs import assert_names_the_shortage, without_threads
from ranks import (
    client,
    error_of,
    in_ranks,
    refuse,
    run,
    run_by_server,
    start_by_server,
    start_group,
    store_of_rank_0,
    store_server,
)
from shm_collectives import Options


def two_of_rank_1(process):
    os.environ.update(RANK=str(min(process, 1)), WORLD_SIZE="2")
    with contextlib.suppress(dist.DistStoreError):
        start_group(timeout=5)
        return True


def test_two_processes_of_one_rank():
    joined = run(two_of_rank_1, 3, init=False)
    assert joined[0] and joined[1:].count(True) == 1


def leaves_with_the_store(rank, path):
    """Rank 0 hosts the store, and leaves as soon as it has joined."""
    store = store_of_rank_0(rank, path)
    dist.init_process_group("shm", store=store, rank=rank, world_size=3)


def test_the_host_of_the_store_may_leave_first(tmp_path):
    for start in range(5):
        run(leaves_with_the_store, 3, tmp_path / f"port-{start}", init=False)


@pytest.mark.parametrize("slot_bytes", [10, 2**61, 2**64 - 1])
def test_slots_too_small_or_too_large_for_any_memory(slot_bytes):
    options = Options()
    options.slot_bytes = slot_bytes
    with pytest.raises(
        dist.DistStoreError, match=f"slot_bytes must be from 128 to .* {slot_bytes}"
    ):
        dist.init_process_group(
            "shm", store=dist.HashStore(), rank=0, world_size=1, pg_options=options
        )


def in_a_sub_group(rank):
    """Return the error of rank 2 of the world, which is 0 in its group; rank 3 does not come."""
    if rank == 2:
        return error_of(dist.new_group, [2, 3], timeout=timedelta(seconds=0.5))
    time.sleep(0.7)
    return None


def test_errors_of_a_sub_group_name_global_ranks():
    text = run(in_a_sub_group, 4)[2][1]
    names = r"rank 0 \(global rank 2\) of 2 .* rank 1 \(global rank 3\) did not come"
    assert re.search(names, text)


@pytest.fixture
def store():
    """Return a process with a store, and its port."""
    with store_server() as server:
        yield server


def meet_at(rank, port, without_files=None):
    """Return the error of a group of two ranks whose store is at a port; one can open one file."""
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    if rank == without_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        opened = []
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        os.close(opened[0])  # for the connection of the group
    time_limit = timedelta(seconds=300)
    options = {"store": store, "rank": rank, "world_size": 2, "timeout": time_limit}
    return error_of(dist.init_process_group, "shm", **options)


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="it needs files, too")
@pytest.mark.parametrize("rank", [0, 1])
def test_too_many_open_files_are_the_reason(store, rank):
    _, port = store
    for kind, text, _ in run(meet_at, 2, port, rank, init=False):
        assert kind == "DistStoreError" and "gloo" not in text
        assert re.search(rf'Backend shm: .* group "\d+": .*rank {rank}: cannot', text), text
        assert "oo many open files (see the limits, ulimit -n" in text, text


def meet_as_nobody(rank, port, allow):
    """Return the sum of a group whose ranks were root before, or its error."""
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, int(allow), 0, 0, 0)  # PR_SET_DUMPABLE
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    options = {"store": store, "rank": rank, "world_size": 2}
    if not allow:
        return error_of(dist.init_process_group, "shm", **options)[1]
    dist.init_process_group("shm", **options)
    dist.all_reduce(numbers := torch.ones(1))
    return numbers.item()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_ranks_that_have_changed_their_user_learn_how_to_share_memory(store):
    _, port = store
    for text in run(meet_as_nobody, 2, port, False, init=False):
        assert re.search(r"rank 1: cannot open /proc/\d+/fd/\d+: Permission denied", text), text
        assert "It allows this with prctl(PR_SET_DUMPABLE, 1)" in text
    assert run(meet_as_nobody, 2, port, True, init=False) == [2.0, 2.0]


def test_a_store_that_is_lost_is_named(store):
    process, port = store
    killer = threading.Timer(1, os.kill, (process, signal.SIGKILL))
    killer.start()
    ((kind, text, _),) = run(meet_at, 1, port, init=False)
    killer.join()
    assert kind == "DistStoreError"
    assert "rank 0 of 2 cannot join group" in text and "the store is lost" in text


def await_list(keys, name):
    while not keys.check([name]):  # `append` does not end a `wait`
        time.sleep(0.001)


class Stranger:
    """A rank without a backend, which follows the rendezvous as far as a test wants it to."""

    BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    HOME = f"host {os.uname().nodename}, boot {BOOT}, {os.readlink('/proc/self/ns/pid')}"

    def __init__(self, rank, port):
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
        self.rank, self.lobby = rank, dist.PrefixStore("0//cpu//shm/2", store)
        if rank == 0:
            await_list(self.lobby, "lobby")
        self.lobby.append("lobby", f"{rank} 7\0")
        self.keys = dist.PrefixStore("7" if rank == 0 else self.answer(), self.lobby)
        home = f"user {os.geteuid()}, {self.HOME}"
        self.keys.append("came", f"{rank} ready 7 {os.getpid()} {home}\0")
        if rank == 0:
            while b"1 ready" not in self.keys.get("came"):
                time.sleep(0.001)
            self.keys.set("came/verdict", "ready")
        else:
            self.keys.wait(["came/verdict"], timedelta(seconds=300))
            self.keys.delete_key("came/verdict")  # as the last rank that has read it does

    def answer(self):
        while not (number := re.search(r"1 7\0.*0 (\d+)\0", self.lobby.get("lobby").decode())):
            time.sleep(0.001)
        return number[1]

    def said_in_made(self):
        await_list(self.keys, "made")
        return self.keys.get("made").decode().removeprefix("1 ").removesuffix("\0")


def beside_strangers(rank, strangers, port):
    """Start a group of two; return the error, or what a stranger in place of a rank returns."""
    dist.distributed_c10d._world.group_count = 0  # So the name of the group is "0".
    if rank in strangers:
        return strangers[rank](port)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    options = {"store": store, "rank": rank, "world_size": 2}
    return error_of(dist.init_process_group, "shm", timeout=timedelta(seconds=300), **options)


SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
USER, NOBODY = os.geteuid(), 65534


def share_memory(port, user=USER, seals=SEALS):
    """Say as rank 0 where memory is that is not to be trusted."""
    stranger = Stranger(0, port)
    os.setresuid(user, user, user)
    file = os.memfd_create("shm_collectives", os.MFD_ALLOW_SEALING)
    os.fchmod(file, 0o666)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    stranger.keys.set("memory", f"{os.getpid()} {file} 7")
    stranger.keys.set("made/verdict", stranger.said_in_made())


@pytest.mark.parametrize(
    ("user", "seals", "reason"),
    [
        (USER, SEALS, "it has 0 bytes, not "),
        (USER, SEALS & ~fcntl.F_SEAL_SHRINK, "it is not sealed, so it could shrink"),
        (NOBODY, SEALS, f"it belongs to user {NOBODY}"),
    ],
)
def test_memory_of_a_stranger_is_not_used(store, user, seals, reason):
    if user != USER and USER != 0:
        pytest.skip("only root can be another user")
    strangers = {0: partial(share_memory, user=user, seals=seals)}
    kind, text, _ = run(beside_strangers, 2, strangers, store[1], init=False)[1]
    assert kind == "DistStoreError" and "is not the memory of this group: " + reason in text


def mode_of_memory(port):
    """Return the mode of the memory that rank 0 shares."""
    keys = Stranger(1, port).keys
    process, file, _ = keys.get("memory").decode().split(" ")
    mode = oct(os.stat(f"/proc/{process}/fd/{file}").st_mode & 0o777)
    keys.append("made", "1 has seen enough\0")  # rank 0 keeps the file open until now
    return mode


def test_no_other_user_can_open_the_memory(store):
    assert run(beside_strangers, 2, {1: mode_of_memory}, store[1], init=False)[1] == "0o600"


def on_another_host(rank):
    if rank == 1:
        libc = ctypes.CDLL(None)
        if libc.unshare(0x04000000) != 0:  # CLONE_NEWUTS: a host name of its own
            return "skip"
        libc.sethostname(b"elsewhere", 9)
    return error_of(start_group)


def test_ranks_of_different_hosts_are_refused():
    answers = run(on_another_host, 2, init=False)
    if "skip" in answers:
        pytest.skip("this user cannot have another host name")
    for kind, text, _ in answers:
        assert kind == "DistStoreError"
        assert "rank 1: it cannot share memory with rank 0" in text and "elsewhere" in text
        assert "gloo" in text


def pages():
    """Return how many bytes of the memory this process has."""
    text = Path("/proc/self/smaps").read_text().partition("memfd:shm_collectives")[2]
    return 1024 * int(re.search(r"Rss: +(\d+) kB", text)[1])


def grows(rank, call_to_refuse=None):
    if call_to_refuse:
        refuse(*call_to_refuse)
    first = pages()
    dist.barrier()
    after_barrier = pages()
    (dist.recv if rank else dist.send)(torch.ones(1), 1 - rank)
    return first, after_barrier, pages()


MADVISE = 28 if os.uname().machine == "x86_64" else 233
MADV_POPULATE_WRITE = 23
PIDFD_OPEN = 434


@pytest.mark.parametrize("refused", [None, (MADVISE, errno.EINVAL, MADV_POPULATE_WRITE)])
def test_memory_is_reserved_when_it_is_used(refused):
    first, after_barrier, after_message = run(grows, 2, refused)[0]
    assert first < 64 << 10
    assert 256 << 10 <= after_barrier - first < 512 << 10
    assert 128 << 10 <= after_message - after_barrier < 256 << 10


@in_ranks(2)
def test_a_shortage_of_memory_is_an_error_on_all_ranks(rank):
    if rank == 1:
        refuse(MADVISE, errno.ENOMEM, MADV_POPULATE_WRITE)
    kind, text, _ = error_of(dist.barrier)
    assert kind == "DistBackendError" and "cannot reserve 262272 bytes of memory" in text


def test_a_shortage_of_threads_is_an_error_on_all_ranks():
    assert_names_the_shortage(run(without_threads, 2, start_group, init=False), "shm")


def keys_of_the_memory(rank):
    dist.barrier()
    return [key for key in client().list_keys() if key.endswith("memory")]


def test_the_place_of_the_memory_does_not_stay_in_the_store():
    start = partial(start_by_server, "shm", None)
    assert run_by_server(start, keys_of_the_memory, 2) == [[], []]


def without_pidfds(rank):
    refuse(PIDFD_OPEN, errno.ENOSYS)
    start_group()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return error_of(dist.barrier)


def test_a_dead_rank_is_noticed_without_pidfds():
    kind, text, _ = run(without_pidfds, 2, init=False, may_be_killed=True)[0]
    assert kind == "DistBackendError" and "rank 1 has died" in text


def killed_while_failing(rank):
    """Rank 1 dies after it has said that the group fails, and before it has said why."""
    if rank == 1:
        maps = Path("/proc/self/maps").read_text()
        start = re.search(r"(\w+)-.*memfd:shm_collectives", maps)[1]
        state = ctypes.c_int.from_address(int(start, 16) + 48)
        assert state.value == 0
        state.value = 1 + rank
        os.kill(os.getpid(), signal.SIGKILL)
    return error_of(dist.barrier)


def test_a_rank_dies_while_it_lets_the_group_fail():
    kind, text, _ = run(killed_while_failing, 2, may_be_killed=True)[0]
    assert kind == "DistBackendError" and "rank 1 has died" in text


def test_registering_again_changes_nothing():
    creator = dist.Backend._plugins["SHM"]
    shm_collectives.register()
    assert dist.Backend._plugins["SHM"] is creator
    assert dist.Backend.backend_capability["shm"] == ["cpu"]


def test_ranks_that_are_threads():
    store, results, barrier = dist.HashStore(), [None] * 3, threading.Barrier(3)
    from torch._C._distributed_c10d import _DistributedBackendOptions

    def rank_of(rank):
        options = _DistributedBackendOptions()
        options.store, options.group_rank, options.group_size = store, rank, 3
        options.timeout, options.group_id = timedelta(seconds=300), "threads"
        backend = dist.Backend._plugins["SHM"].creator_fn(options, None)
        tensor = torch.full((10,), float(rank))
        backend.allreduce([tensor]).wait()
        results[rank] = float(tensor.sum())
        barrier.wait()
        backend.shutdown()

    threads = [threading.Thread(target=rank_of, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert results == [30.0] * 3


needs_splitting = pytest.mark.skipif(
    torch.__version__ < "2.15", reason="before 2.15, PyTorch splits groups of accelerators only"
)
SMALL_SLOTS = Options()
SMALL_SLOTS.slot_bytes = 4096


@needs_splitting
@in_ranks(4, options=SMALL_SLOTS)
def test_a_group_can_be_split(rank):
    half = dist.split_group(split_ranks=[[3, 1], [0, 2]], timeout=timedelta(seconds=250))
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=half)
    assert float(tensor) == (4 if rank in (1, 3) else 2)
    assert half.rank() == (0 if rank in (0, 3) else 1)
    options = half._get_backend(torch.device("cpu")).options
    assert options.slot_bytes == 4096 and options._timeout == timedelta(seconds=250)
    if rank == 1:
        kind, text, _ = error_of(dist.all_reduce, tensor, group=half)
        assert kind == "DistBackendError"
        assert "failed on rank 1: rank 0 (global rank 3) has left" in text, text


@needs_splitting
@in_ranks(2, init=False)
def test_groups_can_be_merged(rank, tmp_path):
    """Two groups of one rank each become one group of two."""
    dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
    both = dist.group.WORLD.merge_remote_group(dist.FileStore(f"{tmp_path}/both", 2), 2)
    tensor = torch.tensor([float(rank)])
    both.allreduce([tensor]).wait()
    assert float(tensor) == 1
    both.shutdown()
