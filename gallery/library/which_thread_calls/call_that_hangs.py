"""Program: wait for a call of MPI that does not return, in two designs."""

import multiprocessing
import threading
from ctypes import byref, c_int


# [designs]
def wait_in_the_library(seconds):
    """Receive what no rank sends. MPI takes no limit, and its caller sees no clock."""
    mpi.MPI_Recv(byref(c_int()), 1, INT, 0, 0, SELF, STATUS_IGNORE)


def wait_for_a_thread(seconds):
    """Let another thread wait in the library, and wait for it until the deadline."""
    thread = threading.Thread(target=wait_in_the_library, args=[seconds], daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
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
