"""MPI numbers processes once; PyTorch numbers them again for each group and each start."""

import threading

import pytest
import torch
import torch.distributed as dist
from mpi_ranks import BOTH_WAYS, ChangedStore, backend, run, sum_in
from ranks import client, error_of


def start_again(process, attempts):
    """Start the default group with each of these orders of processes, and return what it says."""
    results = []
    for attempt, processes in enumerate(attempts):
        if process not in processes:
            continue
        rank, size = processes.index(process), len(processes)
        store = dist.PrefixStore(f"attempt {attempt}", client())
        dist.init_process_group("mpich", store=store, rank=rank, world_size=size)
        for numbers in (1, 1000):  # with the heads, and by MPI
            parts = [torch.zeros(numbers) for _ in processes]
            dist.all_gather(parts, torch.full((numbers,), float(process)))
            total = torch.full((numbers,), 10.0**process)
            dist.all_reduce(total)
            received = torch.zeros(numbers)
            sent = dist.isend(torch.full((numbers,), float(process)), (rank + 1) % size)
            dist.recv(received, (rank - 1) % size)
            sent.wait()
            gathered = [part.unique().item() for part in parts]
            results.append((gathered, total.unique().item(), received.unique().item()))
        dist.destroy_process_group()
    return results


def expected(process, attempts):
    return [
        (
            [float(x) for x in processes],
            sum(10.0**x for x in processes),
            float(processes[processes.index(process) - 1]),
        )
        for processes in attempts
        if process in processes
        for _ in range(2)
    ]


@BOTH_WAYS
@pytest.mark.parametrize(
    "attempts",
    [
        [[0, 1], [1, 0], [0, 1]],
        [[0, 1, 2], [1, 2, 0], [2, 1, 0]],
        [[0, 1, 2], [1, 2], [2, 0], [2, 1, 0]],
        [[2, 0, 1], [0, 1]],
    ],
    ids=["exchanged", "rotated", "fewer", "rotated first"],
)
def test_the_default_group_starts_again_with_other_ranks(attempts, way):
    processes = sorted(attempts[0])
    results = run(start_again, len(processes), attempts, init=False)
    assert results == [expected(process, attempts) for process in processes]


def two_programs(process, group):
    """Start MPI in two programs of two ranks, and then create groups across them."""
    program, rank = divmod(process, 2)
    own = backend(f"program {program}", rank, 2)
    if group == "pairs":
        error = error_of(backend, f"pair {rank}", program, 2)
    else:
        error = error_of(backend, "all", process, 4)
    return error, sum_in(own, 10**rank)


@pytest.mark.parametrize("group", ["pairs", "all"])
def test_a_group_of_two_programs_is_refused(group):
    for (kind, text, _), total in run(two_programs, 4, group, init=False):
        assert kind == "DistStoreError" and total == [11.0]
        assert "MPI cannot connect processes of different starts" in text
        parts = ["rank 0", "rank 1"] if group == "pairs" else ["rank 0, rank 1", "rank 2, rank 3"]
        for part in parts:
            assert f"{part} in one of them" in text


def first_without_the_last(rank):
    """Let MPI start without the last rank, and then create a group of all."""
    store = dist.PrefixStore("default", client())
    dist.init_process_group("gloo", store=store, rank=rank, world_size=3)
    dist.new_group([0, 1], backend="mpich")
    return error_of(dist.new_group, backend="mpich")


def test_a_rank_that_the_first_group_lacked():
    for kind, text, _ in run(first_without_the_last, 3, init=False):
        assert kind == "DistStoreError"
        assert "(rank 0, rank 1 in one of them; rank 2 in none)" in text


def in_two_threads(rank, rounds):
    """Create two groups at once, in opposite orders, again and again; use all."""
    world = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    results = []
    for attempt in range(rounds):
        both = threading.Barrier(2)

        def create(name, both=both, attempt=attempt):
            both.wait()
            group = backend(f"{name} {attempt}", rank, dist.get_world_size())
            results.append(sum_in(group, 1))
            group.shutdown()

        names = ["A", "B"] if rank % 2 else ["B", "A"]
        threads = [threading.Thread(target=create, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        results.append(sum_in(world, 1))
    return results


def test_two_threads_create_groups_in_opposite_orders():
    assert run(in_two_threads, 3, 10) == [[[3.0]] * 30] * 3


def lose_the_store(key, value):
    """Answer no more when a rank writes what it has to say in its turn."""
    if "mpi/turn" in key:
        raise RuntimeError("the store does not answer")
    return value


def one_fails_in_its_turn(rank):
    store = dist.PrefixStore("other", client())
    store = ChangedStore(store, lose_the_store) if rank == 1 else store
    error = error_of(backend, "other", rank, 3, store=store)
    later = backend("later", rank, 3)
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    return error[1:], sum_in(later, 1), tensor.unique().tolist()


def test_a_rank_that_fails_in_its_turn_lets_the_others_go_on():
    for (text, _), later, world in run(one_fails_in_its_turn, 3):
        assert 'cannot join group "other"' in text
        assert "the store does not answer" in text
        assert later == world == [3.0]
