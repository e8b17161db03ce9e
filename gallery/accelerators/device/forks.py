"""Program: use the device in forks, before and after their parent has used it."""

import os
import warnings

import torch

import simulated_accelerator  # importing it makes torch.sim

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


# [forks]
def use():
    return torch.ones(1, device="sim").item()


in_a_fork(use)  # this process has not used the device yet
use()
in_a_fork(use)
# [/forks]
