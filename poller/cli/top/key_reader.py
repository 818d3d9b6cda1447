"""Keys from a terminal, one at a time and without an echo. The terminal is restored at the end."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self

#: Keys that a terminal sends as several characters.
_SEQUENCES = {"\x1b[A": "UP", "\x1b[B": "DOWN", "\x1bOA": "UP", "\x1bOB": "DOWN"}


class KeyReader:
    """Reads keys of the terminal while it is open."""

    def __init__(self) -> None:
        self._handle = sys.stdin.fileno()
        self._before: list[Any] = []
        self._typed = ""  # keys that were typed faster than they were asked for

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._handle)
        tty.setcbreak(self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        termios.tcsetattr(self._handle, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """Return the next key, or "" after this time."""
        if not self._typed:
            waiting = select.poll()  # unlike select(), it takes any number of a descriptor
            waiting.register(self._handle, select.POLLIN)
            if not waiting.poll(seconds * 1000):
                return ""
            self._typed = os.read(self._handle, 1_024).decode(errors="ignore")
        for sequence, name in _SEQUENCES.items():
            if self._typed.startswith(sequence):
                self._typed = self._typed[len(sequence) :]
                return name
        key, self._typed = self._typed[:1], self._typed[1:]
        return key
