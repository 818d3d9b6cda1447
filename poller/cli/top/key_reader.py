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
        ready, _, _ = select.select([self._handle], [], [], seconds)
        if not ready:
            return ""
        text = os.read(self._handle, 16).decode(errors="ignore")
        return _SEQUENCES.get(text, text[:1])
