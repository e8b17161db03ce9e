"""The table of checks, and the decorator that puts a function into it."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from c10d_conformance.rank import Rank

Function = TypeVar("Function", bound=Callable[..., str | None])

MODULES = ["lifecycle", "values", "messages", "works", "objects", "groups", "failure", "debug"]
MODULES += ["contract", "streams", "features", "generated"]

# The devices that a check is for.
ANY = ""
CPU = "cpu"  # only the CPU makes the promise
ACCELERATOR = "accelerator"  # has streams
STREAMS = "streams"  # an accelerator on which wait() does not block the host

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
    "streams": "Streams of an accelerator",
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

    function: Callable[..., str | None]
    capability: str
    promise: str
    source: str  # where PyTorch makes the promise
    ranks: tuple[int, ...] = ()  # empty: every world size of the run
    minimum: int = 2  # the fewest ranks it makes sense with
    group: bool = True  # in the standing default group; False: in new ranks without a group
    quick: bool = False
    waits: bool = False  # mostly, for a timeout: it may run beside other checks
    patience: float = 1  # how many times the usual limit a case may take
    device: str = ""  # ANY, or one of the others below
    environment: dict[str, str] = field(default_factory=dict)
    # Returns the name and the arguments of each case. True: the function calls rank.case itself;
    # False: it is one case itself.
    cases: "Callable[[Rank], Iterable[tuple[Any, ...]]] | bool" = False
    # Returns, for a world size, what hypothesis draws the function's second argument from.
    examples: Callable[[int], Any] | None = None

    @property
    def id(self) -> str:
        """Return `module.function`."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    def run(self, rank: "Rank") -> None:
        """Run all cases in this rank."""
        if self.examples:
            rank.case(str(rank.example), self.function, rank, rank.example)
        elif self.cases is True:
            self.function(rank)
        elif self.cases:
            for name, *arguments in self.cases(rank):
                rank.case(name, self.function, rank, *arguments)
        else:
            rank.case(self.function.__name__.replace("_", " "), self.function, rank)


CHECKS: list[Check] = []


def check(
    capability: str, promise: str, source: str, **options: Any
) -> Callable[[Function], Function]:
    """Register the decorated function `f(rank)` as a check.

    `promise` is one sentence; `source` names a function of torch.distributed, a header, or a page
    of PyTorch's documentation. `Check` explains the options.
    """
    if capability not in CAPABILITIES:
        raise ValueError(f"unknown capability {capability!r}")

    def register(function: Function) -> Function:
        CHECKS.append(Check(function, capability, promise, source, **options))
        return function

    return register


def load() -> list[Check]:
    """Import all modules of checks and return the checks in the order of their modules."""
    for name in MODULES:
        importlib.import_module(f"c10d_conformance.checks.{name}")
    return CHECKS
