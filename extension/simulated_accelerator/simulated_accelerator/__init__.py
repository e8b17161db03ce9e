# [package]
"""The device `sim`; importing it makes `torch.sim`, which this module is."""

import atexit
import sys
from importlib import import_module, util

import torch
from torch import Event, Stream  # noqa: F401
from torch.accelerator import (  # noqa: F401
    current_stream,
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_stream,
    synchronize,
)
from torch.accelerator import set_device_index as set_device  # noqa: F401

# setup.py has put the minor release of PyTorch into the name of the compiled module.
_release = torch.__version__.partition("+")[0]
_compiled = f"{__name__}._for_torch_{'_'.join(_release.split('.')[:2])}"
if util.find_spec(_compiled) is None:
    raise ImportError(
        f"{__name__} was not built for PyTorch {_release}: build it again with this PyTorch"
    )

_module = import_module(_compiled)
Gate, settle, waiting_threads = _module.Gate, _module.settle, _module.waiting_threads
start_trace, stop_trace = _module.start_trace, _module.stop_trace
device_count, current_device = _module.device_count, _module.current_device
_is_in_bad_fork = _module.is_in_bad_fork
atexit.register(_module.stop)
# [/package]


# [module]
def is_available():
    return True


def is_initialized():
    return True


class device(torch.accelerator.device_index):
    """Make a device current for a block."""

    def __init__(self, device):
        super().__init__(_index(device))


def stream(stream):
    """Make a stream current for a block, as `with stream:` does."""
    return stream


def default_stream(device=None):
    return torch.Stream(device_index=_index(device), device_type=_PRIVATE, stream_id=0)


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


# [/module]


# [inductor]
def _inductor_backend_init():
    raise RuntimeError(
        "torch.compile: inductor generates no code for the device sim; use "
        'torch.compile(..., backend="aot_eager")'
    )


# [/inductor]


# [random]
# DTensor asks for 16 bytes: a seed, and how far the numbers have been used. If some have
# been used, asking for the state begins a new part, so that the state says what comes next.
default_generators = [_module.generator(index) for index in range(device_count())]
_states = {}


def manual_seed(seed, device=None):
    set_rng_state(_state(seed % 2**64, 0), device)  # PyTorch takes negative seeds


def manual_seed_all(seed):
    for index in range(device_count()):
        manual_seed(seed, index)


def set_rng_state(state, device="sim"):
    index = _index(device)
    seed, used = state.cpu().view(torch.uint64).tolist()
    default_generators[index].manual_seed((seed + used * 0x9E3779B97F4A7C15) % 2**64)
    _states[index] = state.cpu().clone(), default_generators[index].get_state()


def get_rng_state(device="sim"):
    index = _index(device)
    state, unused = _states.get(index, (_state(torch.initial_seed(), 0), None))
    if unused is None or not torch.equal(unused, default_generators[index].get_state()):
        seed, used = state.view(torch.uint64).tolist()
        set_rng_state(_state(seed, used + 4), index)
    return _states[index][0].clone()


def _state(*numbers):
    return torch.tensor(numbers, dtype=torch.uint64).view(torch.uint8)


# [/random]


def _index(device):
    index = device if isinstance(device, int) else torch.device(device or "sim").index
    return current_device() if index is None else index


# [registration]
torch.utils.rename_privateuse1_backend("sim")
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
torch._register_device_module("sim", sys.modules[__name__])
_PRIVATE = int(torch._C._autograd.DeviceType.PrivateUse1)
# [/registration]
