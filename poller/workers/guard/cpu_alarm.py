"""Ends this process when one of its threads computes for too long without a pause in which anybody else could look.

The kernel counts that thread's own CPU time (`timer_create(2)`), so neither a pause of the process, nor a busy
machine, nor other threads count. Python has no call for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

_SIGNAL = signal.SIGVTALRM  # ends the process unless somebody handles it
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
    """Of one thread. `put_off` is to be called again before it used up its seconds."""

    def __init__(self, thread_id: int, seconds: float) -> None:
        whole = int(seconds)
        self._due = _Timer(_Time(), _Time(whole, round((seconds - whole) * 1e9)))
        self._timer = ctypes.c_void_p()
        clock, event = (
            time.pthread_getcpuclockid(thread_id),
            _Sigevent(None, _SIGNAL, _SIGEV_SIGNAL),
        )
        _checked(_libc.timer_create(clock, ctypes.byref(event), ctypes.byref(self._timer)))

    def put_off(self) -> None:
        _checked(_libc.timer_settime(self._timer, 0, ctypes.byref(self._due), None))


def _checked(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
