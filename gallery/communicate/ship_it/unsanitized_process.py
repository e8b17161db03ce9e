"""Program: call a library that was compiled for sanitizers, from a Python that was not."""

import sys

from sanitized import compile_for, run, runtime

# [calls]
compile_for("address,undefined", "slots.cpp", "slots.so", "-shared", "-fPIC")


def call(function, argument, **variables):
    """Call a function of the library in a new Python."""
    code = f"from ctypes import CDLL; print(CDLL('./slots.so').{function}({argument}))"
    run(f"{function}({argument})", sys.executable, "-c", code, **variables)


call("number_in_heap", 0)
preload = {"LD_PRELOAD": runtime("libasan.so"), "ASAN_OPTIONS": "detect_leaks=0"}
call("number_in_heap", 0, **preload)
call("number_in_heap", 1024, **preload)
call("number_in_shared_memory", 1024, **preload)
call("offset_of_slot", 2**20, **preload)
# [/calls]
