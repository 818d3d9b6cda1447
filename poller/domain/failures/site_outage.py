"""Has a whole site gone dark? Then a few canaries ask for all of it, until some of them answer again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots

#: Error codes of a device that cannot be reached.
DARK = error_codes.DARK


@dataclass(frozen=True, slots=True)
class Limits:
    """A site is dark when at least `least` polls failed within a window, and these are `share` of its polls."""

    share: float = 0.6
    least: int = 10
    canaries: int = 3
    probe_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Window:
    """The polls of one site in the last seconds."""

    polls: int = 0
    dark: int = 0
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Outage:
    """A site that is open: since when, who asks for it, and since when they were asked."""

    site: str
    number: int  # of the site, in SQL
    since_ms: int
    asked_ms: int = 0
    canaries: tuple[int, ...] = ()


def is_dark(window: Window, limits: Limits) -> bool:
    return window.dark >= limits.least and window.dark >= limits.share * window.polls


def gone_dark(windows: Iterable[Window], limits: Limits) -> Window | None:
    """The first window that shows it, if any: a short one knows it sooner, a long one sees enough of a small site."""
    return next((window for window in windows if is_dark(window, limits)), None)


def return_ms(target_id: int, interval_ms: int, now_ms: int) -> int:
    """When a target of a site that is back is polled: at its next slot, or sooner if that is over a minute away."""
    return slots.next_slot_ms(target_id, min(interval_ms, slots.RESUME_WITHIN_MS), now_ms)


def has_recovered(outage: Outage, canaries: Iterable[Status]) -> bool:
    """At least half of those that were asked have answered since."""
    good = sum(status.ok_ms >= outage.asked_ms for status in canaries)
    return bool(outage.canaries) and 2 * good >= len(outage.canaries)


def ask_again(outage: Outage, now_ms: int, limits: Limits) -> bool:
    return now_ms - outage.asked_ms >= limits.probe_ms or now_ms < outage.asked_ms


def next_canaries(ids: Sequence[int], chances: Sequence[float], limits: Limits) -> tuple[int, ...]:
    """Some of the site's targets, others each time; `chances` are random in [0, 1), as many as canaries."""
    left = list(ids)
    return tuple(
        left.pop(int(chance * len(left))) for chance in chances[: min(limits.canaries, len(left))]
    )
