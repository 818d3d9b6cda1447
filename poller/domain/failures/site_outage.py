"""Site outages: when a site is dark, which canaries probe it, and when it has recovered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots

#: Error codes of a device that does not respond.
DARK = error_codes.SILENT


@dataclass(frozen=True, slots=True)
class Limits:
    """A site is dark when `minimum` polls of a window, and `share` of them all, found no device."""

    share: float = 0.6
    minimum: int = 10
    canaries: int = 3
    probe_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Window:
    """The polls of one site in the last `seconds`."""

    polls: int = 0
    dark: int = 0
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Outage:
    """A dark site, and the canaries that probe it since `asked_ms`.

    Redis stores the field names.
    """

    site: str
    number: int  # id of the site in SQL
    since_ms: int
    asked_ms: int = 0
    canaries: tuple[int, ...] = ()


def is_dark(window: Window, limits: Limits) -> bool:
    """Whether enough polls, and a large enough share of them, found no device."""
    if window.dark < limits.minimum:
        return False
    dark_limit = limits.share * window.polls
    return window.dark >= dark_limit


def first_dark(windows: Iterable[Window], limits: Limits) -> Window | None:
    """Return the first dark window, if any.

    A short window shows an outage sooner, a long one holds enough polls of a small site.
    """
    for window in windows:
        if is_dark(window, limits):
            return window
    return None


def may_be_dark(windows: Iterable[Window], limits: Limits) -> bool:
    """Whether a site that is not dark may turn out to be: several polls found no device, and half
    of the share that makes a site dark.
    """
    for window in windows:
        enough = window.dark >= max(3, limits.minimum // 3)
        if enough and 2 * window.dark >= limits.share * window.polls:
            return True
    return False


def return_ms(target_id: int, interval_ms: int, now_ms: int) -> int:
    """Return the first slot of a target after the outage, at most a minute away."""
    within_ms = min(interval_ms, slots.RESUME_WITHIN_MS)
    return slots.next_slot_ms(target_id, within_ms, now_ms)


def has_recovered(outage: Outage, canaries: Iterable[Status]) -> bool:
    """Whether at least half of the canaries have responded since they were polled."""
    if not outage.canaries:
        return False
    good = sum(status.ok_ms >= outage.asked_ms for status in canaries)
    return 2 * good >= len(outage.canaries)


def is_probe_due(outage: Outage, now_ms: int, limits: Limits) -> bool:
    """Whether new canaries are due; also when the clock was set back."""
    was_set_back = now_ms < outage.asked_ms
    elapsed_ms = now_ms - outage.asked_ms
    return was_set_back or elapsed_ms >= limits.probe_ms


def next_canaries(ids: Sequence[int], chances: Sequence[float], limits: Limits) -> tuple[int, ...]:
    """Return targets of the site, drawn without repetition; `chances` are random in [0, 1)."""
    remaining = list(ids)
    count = min(limits.canaries, len(remaining))
    canaries = []
    for chance in chances[:count]:
        index = int(chance * len(remaining))
        canaries.append(remaining.pop(index))
    return tuple(canaries)
