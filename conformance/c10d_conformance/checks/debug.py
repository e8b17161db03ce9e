"""Debug levels, monitored_barrier, sequence numbers and the profiler."""

import re
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from c10d_conformance.inputs import compare
from c10d_conformance.operations import OPERATIONS, for_all_ranks, perform, total
from c10d_conformance.rank import Rank, error_of, is_unsupported, require, require_equal
from c10d_conformance.registry import CPU, check
from c10d_conformance.verdicts import ABSENT

LEVELS = "torch.distributed (Debugging: TORCH_DISTRIBUTED_DEBUG)"


@check(
    "debug",
    "With debug level DETAIL, every collective has the same results.",
    LEVELS,
    group=False,
    environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    cases=True,
    quick=True,
)
def detail(rank: Rank) -> None:
    rank.case("init_process_group with debug level DETAIL", rank.init)
    for operation in OPERATIONS:
        rank.operation = operation
        setting = for_all_ranks(rank, operation)
        rank.case(f"{setting} DETAIL", perform, setting)
    rank.case("send and recv DETAIL", _message, rank)


def _message(rank: Rank) -> str | None:
    if rank.rank == 0:
        dist.send(rank.full(5, 3.0), 1)
    elif rank.rank == 1:
        tensor = rank.full(5, 0.0)
        dist.recv(tensor, 0)
        compare(tensor, torch.full((5,), 3.0))
    else:
        return ABSENT
    return None


@check(
    "debug",
    "The sequence number of a group counts its collectives alike on all ranks.",
    "torch/csrc/distributed/c10d/Backend.hpp (getSequenceNumberForGroup)",
    quick=True,
)
def sequence_number(rank: Rank) -> None:
    rank.operation = "getSequenceNumberForGroup"
    group = rank.world
    start = group._get_sequence_number_for_group()
    for _ in range(3):
        dist.all_reduce(rank.full(3, 1.0))
    between = group._get_sequence_number_for_group()
    dist.broadcast(rank.full(3, 1.0), 0)
    end = group._get_sequence_number_for_group()
    require(between > start, f"3 all_reduce: the number was {start} and is {between}")
    require(end > between, f"1 broadcast: the number was {between} and is {end}")
    numbers = rank.share(f"{between - start} {end - between}")
    require_equal(len(set(numbers)), 1, f"how many different steps the ranks count ({numbers})")


@check(
    "debug",
    "The profiler shows the collectives that run under it.",
    "torch.profiler (record_param_comms, c10d operations)",
    ranks=(2,),
    patience=3,
)
def profiler(rank: Rank) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        dist.all_reduce(rank.full(3, 1.0))
        dist.all_reduce(rank.full(3, 1.0), async_op=True).wait()
    names = {event.key for event in profile.key_averages()}
    matches = [name for name in names if "allreduce" in name or "all_reduce" in name]
    require(matches, f"no event of all_reduce among {sorted(names)[:10]}")


@check(
    "debug",
    "The NaN check of PyTorch can be turned on without changing results.",
    "TORCH_DIST_NAN_CHECK (torch/csrc/distributed/c10d/NanCheck.hpp)",
    group=False,
    environment={"TORCH_DIST_NAN_CHECK": "1"},
)
def nan_check(rank: Rank) -> None:
    rank.init()
    total(rank)


@check(
    "monitored_barrier",
    "monitored_barrier returns when all ranks have called it.",
    "torch.distributed.monitored_barrier",
    quick=True,
    device=CPU,
)
def monitored_barrier(rank: Rank) -> None:
    late = rank.size - 1
    if rank.rank == late:
        time.sleep(0.3)
    began = time.monotonic()  # all processes of a host have one clock
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    returned = time.monotonic()
    last = float(rank.share(str(began))[late])
    require(rank.rank or returned > last, f"rank 0 returned before rank {late} had come")


@check(
    "monitored_barrier",
    "monitored_barrier names the rank that has not come.",
    "torch.distributed.monitored_barrier (“will report the rank that failed”)",
    group=False,
    quick=True,
    cases=True,
    device=CPU,
)
def monitored_barrier_names_the_rank(rank: Rank) -> None:
    rank.case("init_process_group", rank.init, 20)
    rank.case("monitored_barrier, the last rank missing", _missing, rank, 1)
    if rank.size > 2:
        rank.case("monitored_barrier, two ranks missing", _missing, rank, 2)


def _missing(rank: Rank, count: int) -> str | None:
    group = rank.new_group()
    missing = range(rank.size - count, rank.size)
    if rank.rank in missing:
        rank.meet()
        return ABSENT
    timeout = 2 / count
    options = {"timeout": timedelta(seconds=timeout), "wait_all_ranks": count > 1}
    error, seconds = error_of(dist.monitored_barrier, group, **options)
    rank.meet()
    if error is not None and is_unsupported(error, rank.backend, "monitored_barrier"):
        raise error
    if rank.rank == 0:
        require(error is not None, "monitored_barrier raised nothing on rank 0")
        require(
            seconds < 8, f"the error came after {seconds:.1f} s, with a timeout of {timeout:g} s"
        )
        named = re.findall(r"\d+", "".join(re.findall(r"[Rr]anks? [\d, ]+", str(error))))
        for late in missing:
            require(str(late) in named, f"the text does not name rank {late}: {error}")
    return None
