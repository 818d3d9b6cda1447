"""A filter of log lines: a failure that repeats is one line a minute, with a count.

While a store is away or a disk is full, every loop of every role fails again and again. Only lines
about an error are filtered, and only on their way to the log: reports have limits of their own.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Hashable, Mapping
from typing import Any

from poller.observability.report_quota import Quota

#: The field with the number of lines that were left out.
UNSAID = "unsaid_since_the_last"
_NUMBER = re.compile(r"\d+")
#: Libraries that count attempts in their text. In a line of a plugin a number may be an address.
_COUNTING = ("celery", "kombu")


class RepeatedLines(logging.Filter):
    """For the handler of a role's log."""

    def __init__(self) -> None:
        super().__init__()
        self._quota = Quota(sys.maxsize)

    def filter(self, record: logging.LogRecord) -> bool:
        kind = _kind(record) if record.levelno >= logging.WARNING else None
        if kind is None:
            return True
        unsaid = self._quota.admit(kind)
        if unsaid is None:
            return False
        if unsaid and isinstance(record.msg, dict):
            record.msg[UNSAID] = unsaid
        elif unsaid:
            setattr(record, UNSAID, unsaid)
        return True


def _kind(record: logging.LogRecord) -> Hashable | None:
    """Lines of one kind are the same line. None for a line that is never left out."""
    if isinstance(record.msg, Mapping):  # a record of logs.py
        facts: dict[str, Any] = dict(record.msg)
        facts.pop("timestamp", None)
        is_error = "error" in facts or "exception" in facts
        return str(facts) if is_error else None
    if record.exc_info:
        return None
    text = record.getMessage()
    is_counting = record.name.partition(".")[0] in _COUNTING
    return record.name, _NUMBER.sub("", text) if is_counting else text
