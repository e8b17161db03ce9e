"""Change two things in each Python of an instrumented copy, which all import this.

Counting and checking takes time, so the machine says that it is busy. Then the limits of the build
and of the launcher leave five times as much.

Functions that C++ calls are traced, too: Python traces only the threads that it starts itself, and
the remote functions of RPC run in threads of C++, which begin without a tracer.
"""

import os
import sys
import threading

LOAD = 5.0 * (os.cpu_count() or 1)
os.getloadavg = lambda: (LOAD, LOAD, LOAD)


def trace_remote_functions():
    rpc = sys.modules.get("torch.distributed.rpc.internal")
    if rpc is None:
        return
    run = rpc._run_function

    def run_traced(function):
        sys.settrace(threading.gettrace())
        return run(function)

    rpc._run_function = run_traced


# Programs that use RPC are forked from a process that has loaded it.
os.register_at_fork(after_in_child=trace_remote_functions)
