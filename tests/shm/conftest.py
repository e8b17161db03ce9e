"""Register `shm`."""

import shm_collectives  # noqa: F401
