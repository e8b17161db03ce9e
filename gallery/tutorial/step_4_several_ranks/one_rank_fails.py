"""Worker: rank 1 fails, while rank 0 waits for a long time."""

import os
import sys
import time

rank = os.environ["RANK"]
time.sleep({"0": 30, "1": 0}[rank])
sys.stderr.write(f"rank {rank} gives up\n")
sys.exit(3)
