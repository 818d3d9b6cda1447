"""A CPU time limit for one thread: the kernel ends the process when the thread reaches it.

`timer_create(2)` counts the CPU time of that thread only, so a pause of the process, a busy
machine and other threads do not count. Python has no call for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

_SIGNAL = signal.SIGVTALRM  # ends the process unless it is handled
_SIGEV_SIGNAL = 0


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("every", _Time), ("first", _Time))


_libc = ctypes.CDLL(None, use_errno=True)


class CpuAlarm:
    """The limit of one thread. `reset` must be called before the thread has used its seconds."""

    def __init__(self, thread_id: int, seconds: float) -> None:
        whole_seconds = int(seconds)
        nanoseconds = round((seconds - whole_seconds) * 1e9)
        self._setting = _Timer(_Time(), _Time(whole_seconds, nanoseconds))
        self._timer = ctypes.c_void_p()

        clock = time.pthread_getcpuclockid(thread_id)
        event = _Sigevent(None, _SIGNAL, _SIGEV_SIGNAL)
        result = _libc.timer_create(clock, ctypes.byref(event), ctypes.byref(self._timer))
        _check(result)

    def reset(self) -> None:
        """Give the thread its seconds anew."""
        result = _libc.timer_settime(self._timer, 0, ctypes.byref(self._setting), None)
        _check(result)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
