# [package]
"""The stream-ordered c10d backend for the device `sim`; importing it registers "simccl"."""

from importlib import import_module, util

import simulated_accelerator  # noqa: F401
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

# setup.py has put the minor release of PyTorch into the name of the compiled module.
_release = torch.__version__.partition("+")[0]
_compiled = f"{__name__}._for_torch_{'_'.join(_release.split('.')[:2])}"
if util.find_spec(_compiled) is None:
    raise ImportError(
        f"{__name__} was not built for PyTorch {_release}: build it again with this PyTorch"
    )

_module = import_module(_compiled)
Options = _module.Options
register = _module.register
# [/package]


# [rules]
# The rules of streams. A group whose options say `broken` breaks one of them on purpose, so that
# a program shows what the rule is good for.
RULES = {
    "input": "the communication waits for the caller's stream",
    "output": "wait() lets the caller's stream wait for the communication",
    "lifetime": "the memory is kept until it is safe to reuse",
    "devices": "the future knows its device, so that callbacks wait for the stream",
    "completion": "a work is completed when the stream has ended it",
    "barrier": "a barrier lets the host wait",
    "own_stream": "the communication has another stream than the caller",
    "group_stream": "each group has streams of its own",
}
# [/rules]


# [library]
def connect(options, store, rank, size, timeout):
    """Return the backend for the CPU that moves the data of a group. C++ calls this."""
    if options.broken and options.broken not in RULES:
        raise ValueError(f'there is no rule "{options.broken}"')
    if options.library == "gloo":
        return dist.ProcessGroupGloo(store, rank, size, timeout)
    plugin = dist.Backend._plugins.get(options.library.upper())
    if plugin is None or not plugin.extended_api:
        raise ValueError(f"no module has registered {options.library!r}")
    group = distributed_c10d._DistributedBackendOptions()
    group.store, group.group_rank, group.group_size = store, rank, size
    group.timeout, group.group_id = timeout, f"{options.group_name}, inside of simccl"
    group.global_ranks_in_group = options.global_ranks_in_group
    return plugin.creator_fn(group, None)


# [/library]


def communication_stream(device, group=None):
    """Return the stream on which the collectives of a group run."""
    group = group or dist.group.WORLD
    backend = group._get_backend(torch.device(device))
    id, index, type = _module.communication_stream(backend, torch.device(device))
    return torch.Stream(stream_id=id, device_index=index, device_type=type)
