"""Program: an error of the host, and one of a kernel in its stream."""

import torch

import simulated_accelerator  # importing it makes torch.sim


# [errors]
def kernel_that_fails():
    number = torch.ones(1, device="sim")
    torch.add(number, number, alpha=1j, out=number)
    print("the launch has returned")
    torch.accelerator.synchronize()


wait_again = torch.accelerator.synchronize
for call in [lambda: torch.ones(1, device="sim:7"), kernel_that_fails, wait_again]:
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}:", str(error).partition("\n")[0])
# [/errors]
