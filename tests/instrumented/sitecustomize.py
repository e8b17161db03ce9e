"""Trace the functions that C++ calls, too. Each Python of the copy imports this.

Python traces only the threads that it starts itself. The remote functions of RPC run in
threads of C++, which begin without a tracer.
"""

import os
import sys
import threading


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
