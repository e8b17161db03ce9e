"""Sleep until another process wakes this one: the system call futex, which Python lacks."""

import ctypes
import errno
import os
import platform

_call = ctypes.CDLL(None, use_errno=True).syscall
_NUMBER = {"x86_64": 202, "aarch64": 98}[platform.machine()]
_WAIT, _WAKE = 0, 1  # without FUTEX_PRIVATE_FLAG, because other processes take part


class _Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def futex_wait(word, value, seconds=None):
    """Sleep while ``word``, a ``c_uint32``, has this value, until somebody wakes this thread.

    Raise TimeoutError after so many seconds.
    """
    limit = None if seconds is None else ctypes.byref(_Time(seconds, 0))
    if _call(_NUMBER, ctypes.byref(word), _WAIT, value, limit, None, 0) < 0:
        error = ctypes.get_errno()
        if error not in (errno.EAGAIN, errno.EINTR):  # another value, a signal
            raise OSError(error, os.strerror(error))


def futex_wake(word):
    """Wake all that sleep on ``word``."""
    _call(_NUMBER, ctypes.byref(word), _WAKE, 2**31 - 1, None, None, 0)
