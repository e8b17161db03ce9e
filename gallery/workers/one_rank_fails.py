"""Worker: rank 1 gives up; rank 0 would wait for a long time."""

import os
import sys
import time

if os.environ["RANK"] == "1":
    sys.stderr.write("rank 1 gives up\n")
    sys.exit(3)
time.sleep(30)
