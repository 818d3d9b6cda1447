"""Logs collectors that break the contract, once a minute for each collector and kind of fault."""

from __future__ import annotations

import logging
import time

_INTERVAL_S = 60.0
_MAX_KINDS = 256

_log = logging.getLogger("poller.collectors")
_log.addHandler(logging.NullHandler())  # commands without log settings print the error themselves
#: (collector, event and kind) to the instant of the last line and the lines suppressed since then.
_logged: dict[tuple[str, str], tuple[float, int]] = {}


def crashed(collector: str, error: BaseException) -> None:
    """Log that a collector raised no DeviceError, or yielded an object that is no reading."""
    _write("collector_crashed", collector, type(error).__name__, error)


def ignored_cancellation(collector: str, after_s: float) -> None:
    """Log that a collector went on after its deadline; it may hold sockets and memory."""
    _write("collector_ignored_cancellation", collector, after_s=round(after_s, 1))


def stuck_thread(collector: str, where: str, stuck: int) -> None:
    """Log that a collector blocks a thread after the end of its poll."""
    _write("collector_thread_stuck", collector, at=where, stuck=stuck)


def _write(
    event: str,
    collector: str,
    kind: str = "",
    error: BaseException | None = None,
    **facts: object,
) -> None:
    key = (collector, event + kind)
    now_mono = time.monotonic()
    logged_mono, suppressed = _logged.get(key, (-_INTERVAL_S, 0))
    if now_mono < logged_mono + _INTERVAL_S:
        _logged[key] = (logged_mono, suppressed + 1)
        return

    if len(_logged) >= _MAX_KINDS:
        _logged.clear()
    _logged[key] = (now_mono, 0)
    extra = {"collector": collector, "unsaid_since_the_last": suppressed, **facts}
    _log.error(event, exc_info=error, extra=extra)
