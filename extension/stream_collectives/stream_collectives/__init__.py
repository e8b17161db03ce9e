# [package]
"""The stream-ordered c10d backend for the device `sim`; importing it registers "simccl"."""

from datetime import timedelta
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
RULES = _module.RULES
# [/package]


# [library]
def connect(name, store, rank, size, timeout, group, global_ranks):
    """Return the backend for the CPU that moves the data of a group. C++ calls this."""
    timeout += timedelta(seconds=1)  # The watchdog's deadline comes first.
    if name == "gloo":
        return dist.ProcessGroupGloo(store, rank, size, timeout)
    plugin = dist.Backend._plugins.get(name.upper())
    if plugin is None:
        raise ValueError(f'Backend simccl: import the module of the backend "{name}" before')
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, size, timeout)
    options = distributed_c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, size
    options.timeout, options.group_id = timeout, f"{group}, inside of simccl"
    options.global_ranks_in_group = global_ranks
    return plugin.creator_fn(options, None)


# [/library]


def communication_stream(device, group=None):
    """Return the stream on which the collectives of a group run."""
    group = group or dist.group.WORLD
    backend = group._get_backend(torch.device(device))
    id, index, type = backend.communication_stream(torch.device(device))
    return torch.Stream(stream_id=id, device_index=index, device_type=type)
