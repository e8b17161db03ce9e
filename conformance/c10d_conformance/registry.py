"""The table of checks, and the decorator that puts a function into it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from c10d_conformance.rank import Rank

Function = TypeVar("Function", bound="Callable[[Rank], str | None]")

MODULES = ["lifecycle", "values", "messages", "works", "objects", "groups", "failure", "debug"]
MODULES += ["features"]

# The report has its lines in this order. The ids are stable: other programs read them.
CAPABILITIES = {
    "lifecycle": "Start and end of a group",
    "broadcast": "broadcast",
    "all_reduce": "all_reduce",
    "reduce": "reduce",
    "all_gather": "all_gather",
    "all_gather_single": "all_gather_single (all_gather_into_tensor)",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter_single (reduce_scatter_tensor)",
    "all_to_all": "all_to_all",
    "all_to_all_single": "all_to_all_single",
    "barrier": "barrier",
    "coalescing": "Coalesced collectives",
    "send_recv": "send and recv",
    "tags": "Order and tags of messages",
    "any_source": "recv from any source",
    "batch": "batch_isend_irecv",
    "objects": "Object collectives",
    "async": "Works and futures",
    "resources": "Memory, threads and descriptors",
    "sub_groups": "Sub-groups",
    "concurrent": "Groups at the same time",
    "bad_input": "Wrong arguments",
    "rank_lost": "A rank is lost",
    "timeout": "Timeouts",
    "mismatch": "Ranks that call different operations",
    "abort": "abort",
    "debug": "Debug level, profiler, sequence numbers",
    "monitored_barrier": "monitored_barrier",
    "ddp": "DistributedDataParallel",
    "zero": "ZeroRedundancyOptimizer",
    "fsdp1": "FullyShardedDataParallel",
    "fsdp2": "FSDP2 (fully_shard)",
    "dtensor": "DTensor and tensor parallel",
    "pipeline": "Pipeline parallel",
    "checkpoint": "torch.distributed.checkpoint",
    "functional": "Functional collectives and torch.compile",
}


@dataclass(frozen=True)
class Check:
    """One function that every rank runs, and the promise that it checks."""

    function: "Callable[[Rank], str | None]"
    capability: str
    promise: str
    source: str  # where PyTorch makes the promise
    ranks: tuple[int, ...]  # empty: every world size of the run
    minimum: int  # the fewest ranks it makes sense with
    group: bool  # True: in the standing default group; False: in new ranks without a group
    quick: bool
    patience: float  # how many times the usual limit a case may take
    environment: dict[str, str]
    cases: bool  # True: the function runs cases with rank.case; False: it is one case itself

    @property
    def id(self) -> str:
        """Return `module.function`."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


CHECKS: list[Check] = []


def check(
    capability: str,
    promise: str,
    source: str,
    *,
    ranks: tuple[int, ...] = (),
    minimum: int = 2,
    group: bool = True,
    quick: bool = False,
    patience: float = 1,
    environment: dict[str, str] | None = None,
    cases: bool = False,
) -> Callable[[Function], Function]:
    """Register the decorated function `f(rank)` as a check.

    `promise` is one sentence; `source` names a function of torch.distributed, a header, or a page
    of PyTorch's documentation. `Check` explains the options.
    """
    if capability not in CAPABILITIES:
        raise ValueError(f"unknown capability {capability!r}")

    def register(function: Function) -> Function:
        CHECKS.append(
            Check(
                function=function,
                capability=capability,
                promise=promise,
                source=source,
                ranks=ranks,
                minimum=minimum,
                group=group,
                quick=quick,
                patience=patience,
                environment=environment or {},
                cases=cases,
            )
        )
        return function

    return register


def load() -> list[Check]:
    """Import all modules of checks and return the checks in the order of their modules."""
    for name in MODULES:
        importlib.import_module(f"c10d_conformance.checks.{name}")
    return CHECKS
