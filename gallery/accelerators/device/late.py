"""Program: load the device too late."""

# [late]
import torch

torch.ones(1, requires_grad=True).backward()
try:
    import simulated_accelerator
except ImportError as error:
    print(f"ImportError: {error}")
# [/late]
