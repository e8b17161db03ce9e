"""Worker: show what the launcher tells a rank."""

import os

for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
    print(f"{name}={os.environ[name]}")
assert "MASTER_ADDR" in os.environ and "MASTER_PORT" in os.environ
