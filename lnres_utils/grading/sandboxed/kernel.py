"""Calls of the C library that Python has no function for."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def call(name, *arguments):
    """Call a function of libc with numbers and buffers; what it returns, or OSError."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = getattr(LIBC, name)(*words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
