"""Worker: rank 1 lacks memory for one step, and skips it alone."""

import os
import re
import sys

from out_of_memory import average, has_memory_for, lengths, rank, store

# [alone]
try:
    for step, length in enumerate(lengths):
        if has_memory_for(length):
            average(step)
        else:
            print(f"step {step}: skipped")
except RuntimeError as error:
    print(f"step {step}: RuntimeError")
    # [/alone]
    assert (rank, step) == (0, 3)
    assert re.search("Connection (closed|reset) by peer", str(error)), error
else:
    assert rank == 1
    # Rank 1 ends first, once rank 0 has received all that was sent to it.
    store.wait(["rank 0 received 2"])
sys.stdout.flush()
os._exit(0)
