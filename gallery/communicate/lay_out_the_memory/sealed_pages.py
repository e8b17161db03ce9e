"""Program: take pages away from a process that has mapped them, without and with a seal."""

import faulthandler
import fcntl
import mmap
import os
import resource
import signal
from multiprocessing import get_context


def quiet():
    """Let the process end by a signal without a stack or a core file."""
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# [seal]
def shrink_and_read(seals):
    """Map a page, take it away, and read it."""
    quiet()
    file = os.memfd_create("pages", os.MFD_ALLOW_SEALING)
    os.ftruncate(file, 4096)
    memory = mmap.mmap(file, 4096)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    try:
        os.ftruncate(file, 0)
    except PermissionError as error:
        print("    ftruncate:", error.strerror, flush=True)
    print("    the first byte is", memory[0], flush=True)


if __name__ == "__main__":
    for name, seals in [("no seal", 0), ("F_SEAL_SHRINK", fcntl.F_SEAL_SHRINK)]:
        print(name, flush=True)
        process = get_context("spawn").Process(target=shrink_and_read, args=[seals])
        process.start()
        process.join()
        status = process.exitcode
        print("    ended by", signal.Signals(-status).name if status < 0 else "itself")
# [/seal]
