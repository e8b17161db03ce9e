"""Program: wait for a call of MPI that does not return, in two designs."""

import multiprocessing
import threading
from ctypes import byref, c_int


# [designs]
def call():
    """Receive what no rank sends. MPI has no argument that limits the time."""
    mpi.MPI_Recv(byref(c_int()), 1, INT, 0, 0, SELF, STATUS_IGNORE)


def wait_in_the_library(seconds):
    """Call the library on the thread of the caller, which then sees no clock."""
    call()


def wait_for_a_thread(seconds):
    """Let another thread call the library, and wait for it until the deadline."""
    returned = threading.Event()
    threading.Thread(target=lambda: (call(), returned.set()), daemon=True).start()
    if not returned.wait(seconds):
        raise TimeoutError


# [/designs]
def attempt(wait, begun):
    """Wait for half a second, in a process with an MPI of its own."""
    global mpi, INT, SELF, STATUS_IGNORE
    from single_mpi import INT, SELF, STATUS_IGNORE, mpi

    begun.set()
    try:
        wait(0.5)
    except TimeoutError:
        print(f"{wait.__name__}: TimeoutError at the deadline", flush=True)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for wait in [wait_in_the_library, wait_for_a_thread]:
        begun = context.Event()
        process = context.Process(target=attempt, args=(wait, begun))
        process.start()
        assert begun.wait(30)
        process.join(3)
        if process.is_alive():
            print(f"{wait.__name__}: still waits, long after the deadline", flush=True)
            process.kill()
            process.join()
