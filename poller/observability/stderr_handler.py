"""The handler of log lines. A job that is cancelled in the middle of a line leaves no lock behind.

A cancelled job has an exception raised at any line of Python. Between the end of a wait for a lock
and a following `try` it would leave the lock taken, and every thread that logs would hang; a `with`
statement has no such gap. Python's own handlers use `with` from 3.13 on.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO


class StderrHandler(logging.StreamHandler[TextIO]):
    """Python's handler, with its lock taken by `with`."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record, unless a filter drops it."""
        found: Any = self.filter(record)
        if isinstance(found, logging.LogRecord):  # from Python 3.12 on
            record = found
        if found:
            with self._locked:
                self.emit(record)
        return bool(found)

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a failed write, but not to a stream that is closed: nobody reads it."""
        if not getattr(self.stream, "closed", False):
            super().handleError(record)

    def flush(self) -> None:
        """Flush the stream."""
        with self._locked:
            is_open = self.stream and not getattr(self.stream, "closed", False)
            if is_open and hasattr(self.stream, "flush"):
                self.stream.flush()

    @property
    def _locked(self) -> AbstractContextManager[Any]:
        return self.lock or nullcontext()
