"""Program: load the device too late, use it in forks, and make other errors."""

import os
import warnings

import torch

# Python 3.12 and later warn of every fork of a process that has threads.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)


def in_a_fork(call):
    """Run a function in a fork of this process, and wait for its end."""
    if pid := os.fork():
        os.waitpid(pid, 0)
    else:
        try:
            print(call(), flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)


# [late]
def device_after_a_backward_pass():
    torch.ones(1, requires_grad=True).backward()
    import simulated_accelerator  # noqa: F401, F811


in_a_fork(device_after_a_backward_pass)
import simulated_accelerator  # noqa: E402, F401

# [/late]


# [forks]
def use():
    return torch.ones(1, device="sim").item()


in_a_fork(use)  # this process has not used the device yet
use()
in_a_fork(use)
# [/forks]


# [errors]
def kernel_that_fails():
    number = torch.ones(1, device="sim")
    torch.add(number, number, alpha=1j, out=number)
    print("the launch has returned")
    torch.accelerator.synchronize()


for call in [lambda: torch.ones(1, device="sim:7"), kernel_that_fails]:
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}:", str(error).partition("\n")[0])
# [/errors]
