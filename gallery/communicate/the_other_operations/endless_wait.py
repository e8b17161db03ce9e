"""Program: wait for a counter of another process, which comes, dies or stops."""

import mmap
import os
import select
import signal
import time


# [mistake]
def wait_for_counter(counter):
    """Wait until the other process has posted."""
    while counter[0] == 0:
        time.sleep(0.001)


# [/mistake]
# [cure]
def wait_for_process(counter, process, seconds):
    """Do the same, but notice that the process has ended or takes too long."""
    deadline = time.monotonic() + seconds
    end = select.poll()
    end.register(os.pidfd_open(process), select.POLLIN)
    while counter[0] == 0:
        if end.poll(0) and counter[0] == 0:
            raise ConnectionError("the other process has died")
        if time.monotonic() > deadline:
            raise TimeoutError(f"the other process has not posted within {seconds} s")
        time.sleep(0.001)


# [/cure]
def give_up(number, frame):
    """Handle SIGALRM, which ends the loop that would not end."""
    raise TimeoutError("still waiting after 3 s; the sample ends it")


def try_out(wait, act):
    """Wait for a new process, which posts or receives a signal; print how the wait ended."""
    counter = mmap.mmap(-1, 1)  # A fork has the same memory.
    process = os.fork()
    if process == 0:
        if act == "posts":
            counter[0] = 1
        signal.pause()
    if act != "posts":
        os.kill(process, {"is killed": signal.SIGKILL, "is stopped": signal.SIGSTOP}[act])
    try:
        signal.alarm(3)
        wait(counter, process)
        end = "the wait has returned"
    except (ConnectionError, TimeoutError) as error:
        end = error
    finally:
        signal.alarm(0)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    print(f"    the other process {act}: {end}")


signal.signal(signal.SIGALRM, give_up)

print("wait_for_counter")
for act in ["posts", "is killed"]:
    try_out(lambda counter, process: wait_for_counter(counter), act)

print("wait_for_process")
for act in ["posts", "is killed", "is stopped"]:
    try_out(lambda counter, process: wait_for_process(counter, process, 1), act)
