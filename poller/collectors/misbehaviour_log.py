"""Says that a collector misbehaves: at most once a minute for each collector and kind of trouble, and by name."""

from __future__ import annotations

import logging
import time

_EVERY_S = 60.0
_MOST_KINDS = 256

_log = logging.getLogger("poller.collectors")
_log.addHandler(logging.NullHandler())  # commands that configure no logs say it in their own way
_said: dict[tuple[str, str], tuple[float, int]] = {}  # when, and how often it went unsaid since


def crashed(collector: str, error: BaseException) -> None:
    """It raised what no collector may raise, or yielded what is no reading."""
    _say("collector_crashed", collector, type(error).__name__, error)


def ignored_cancellation(collector: str, after_s: float) -> None:
    """It was cut off at its deadline and went on: it may hold sockets and memory until the worker ends."""
    _say("collector_ignored_cancellation", collector, "", None, after_s=round(after_s, 1))


def stuck_thread(collector: str, where: str, stuck: int) -> None:
    """It blocks a thread that nobody waits for any more, and that nobody can stop."""
    _say("collector_thread_stuck", collector, "", None, at=where, stuck=stuck)


def _say(
    event: str, collector: str, kind: str, error: BaseException | None, **facts: object
) -> None:
    now = time.monotonic()
    said_at, unsaid = _said.get((collector, event + kind), (-_EVERY_S, 0))
    if now < said_at + _EVERY_S:
        _said[collector, event + kind] = (said_at, unsaid + 1)
        return
    if len(_said) >= _MOST_KINDS:
        _said.clear()
    _said[collector, event + kind] = (now, 0)
    _log.error(
        event,
        exc_info=error,
        extra={"collector": collector, "unsaid_since_the_last": unsaid, **facts},
    )
