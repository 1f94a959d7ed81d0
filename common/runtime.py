"""Starts TensorFlow the way every process needs it: without chatter, with instructions that the CPU really has, and
holding on to the memory it has freed. Everything here imports TensorFlow and Keras by way of this module."""

import ctypes
import os
import sys

from common.cpu import cap_instruction_set

__all__ = ["tensorflow"]

cap_instruction_set()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

# glibc hands every large tensor back to the kernel, and the kernel clears the pages again for the next one, which took
# a fifth of the time of encoding. Kept, they cost some 0.3 GB and nothing else. Batches differ in shape, and the small
# arenas of threads do not find room again for a tensor of another size, so all use the main one.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
if _mallopt is not None:
    _mallopt(_M_MMAP_MAX, 0)
    _mallopt(_M_ARENA_MAX, 1)
    _mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    _mallopt(_M_TOP_PAD, 2**26)

# TensorFlow imports Keras, which imports these where they are installed, for wrappers and galleries that nothing here
# uses: a third of the time that every command takes to start.
_NOT_NOW = [name for name in ("matplotlib", "sklearn") if name not in sys.modules]

# Its first lines are written before it reads that setting, straight to the file descriptor.
_stderr, _nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
try:
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3":
        os.dup2(_nowhere, 2)
    for _name in _NOT_NOW:
        sys.modules[_name] = None  # type: ignore[assignment]  # how Python itself notes that there is none
    import tensorflow
finally:
    for _name in _NOT_NOW:
        del sys.modules[_name]
    os.dup2(_stderr, 2)
    os.close(_stderr)
    os.close(_nowhere)
