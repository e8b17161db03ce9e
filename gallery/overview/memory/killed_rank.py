"""Worker: rank 1 ends by the signal that Linux sends when the memory is used up."""

import os
import signal
import time

if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(30)  # Rank 0 is stopped long before.
