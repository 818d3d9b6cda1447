"""The schedule of a target, from its own values, the stored row, its collector and the settings.

A default bound moves to make room for an explicit value; an explicit value never moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from poller.domain.inventory import duration
from poller.domain.inventory.duration import format_ms
from poller.domain.scheduling import staleness
from poller.domain.scheduling.interval import Adaptive, Policy

T = TypeVar("T")


class Problem(NamedTuple):
    """One fault of one field of a draft."""

    field: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Schedule:
    """None means "not given". A resolved schedule has None only for what a fixed interval lacks."""

    policy: Policy | None = None
    interval_ms: int | None = None  # the interval, or the base of an adaptive one
    timeout_ms: int | None = None
    min_ms: int | None = None
    max_ms: int | None = None
    staleness: str | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """The schedule of a target that gives no values."""

    declared: Schedule = field(default_factory=Schedule)  # by the collector
    adaptive: Adaptive = field(default_factory=Adaptive)  # by the settings


NO_DEFAULTS = Defaults()


def resolve(draft: Schedule, stored: Schedule | None, defaults: Defaults) -> Schedule:
    """Return the draft over the stored schedule (None: a new target) over the defaults."""
    declared = defaults.declared
    usual = stored or declared
    policy = draft.policy or usual.policy or Policy.FIXED
    explicit = draft
    if stored:
        explicit = _overlaid(draft, stored)

    if policy is Policy.FIXED:
        interval = _first(explicit.interval_ms, declared.interval_ms, duration.DEFAULT_INTERVAL_MS)
        return Schedule(policy, interval, _timeout(interval, explicit, declared))

    low, base, high = _bounds(explicit, declared, defaults.adaptive)
    return Schedule(
        policy=policy,
        interval_ms=base,
        timeout_ms=_timeout(base, explicit, declared),
        min_ms=low,
        max_ms=high,
        staleness=explicit.staleness or declared.staleness or staleness.DEFAULT,
    )


def problems(draft: Schedule, resolved: Schedule) -> Iterator[Problem]:
    """Yield the values that do not fit together, each for a field of the draft; None fits."""
    if resolved.policy is Policy.FIXED:
        yield from _surplus(draft)
    else:
        yield from _disorder(draft, resolved)

    interval = resolved.interval_ms
    timeout = resolved.timeout_ms
    if interval is not None and timeout is not None and timeout >= interval:
        longest = format_ms(interval)
        message = f"the timeout {format_ms(timeout)} must be shorter than the interval {longest}"
        default_ms = duration.default_timeout_ms(interval)
        hint = f"for example {format_ms(default_ms)}"
        yield Problem("timeout", message, hint)


def _surplus(draft: Schedule) -> Iterator[Problem]:
    adaptive_only = {"min": draft.min_ms, "max": draft.max_ms, "staleness": draft.staleness}
    for name, value in adaptive_only.items():
        if value is not None:
            message = f"a fixed interval has no {name}"
            yield Problem(name, message, "choose the policy adaptive, or leave it out")


def _disorder(draft: Schedule, resolved: Schedule) -> Iterator[Problem]:
    """Yield the first pair of shortest, base and longest interval that is not in this order."""
    bounds = {"min": resolved.min_ms, "interval": resolved.interval_ms, "max": resolved.max_ms}
    for lower, upper in (("min", "max"), ("min", "interval"), ("interval", "max")):
        low = bounds[lower]
        high = bounds[upper]
        if low is None or high is None or low <= high:
            continue

        at_most = format_ms(high)
        at_least = format_ms(low)
        yield Problem(
            field=_blamed(draft, lower, upper),
            message=f"the {lower} {at_least} is longer than the {upper} {at_most}",
            hint=f"choose a {lower} of {at_most} or less, or a {upper} of {at_least} or more",
        )
        return


def _blamed(draft: Schedule, lower: str, upper: str) -> str:
    """Return the field that the draft gives, or else the interval."""
    draft_bounds = {"min": draft.min_ms, "max": draft.max_ms}
    for name in (lower, upper):
        if draft_bounds.get(name):
            return name
    return "interval"


def _bounds(explicit: Schedule, declared: Schedule, numbers: Adaptive) -> tuple[int, int, int]:
    """Return shortest, base and longest interval; defaults fit around the explicit values."""
    low = explicit.min_ms
    base = explicit.interval_ms
    high = explicit.max_ms
    if base is None:
        base = _first(declared.interval_ms, numbers.base_ms)
        if high is not None:
            base = min(base, high)
        if low is not None:
            base = max(base, low)

    if low is None:
        low = min(base, _first(declared.min_ms, numbers.min_ms))
    if high is None:
        high = max(base, _first(declared.max_ms, numbers.max_ms))
    return low, base, high


def _timeout(interval: int, explicit: Schedule, declared: Schedule) -> int:
    if explicit.timeout_ms is not None:
        return explicit.timeout_ms
    default_ms = declared.timeout_ms
    if default_ms is not None and default_ms < interval:
        return default_ms
    return duration.default_timeout_ms(interval)


def _overlaid(draft: Schedule, stored: Schedule) -> Schedule:
    return Schedule(
        policy=draft.policy or stored.policy,
        interval_ms=_value_or(draft.interval_ms, stored.interval_ms),
        timeout_ms=_value_or(draft.timeout_ms, stored.timeout_ms),
        min_ms=_value_or(draft.min_ms, stored.min_ms),
        max_ms=_value_or(draft.max_ms, stored.max_ms),
        staleness=draft.staleness or stored.staleness,
    )


def _value_or(value: T | None, stored: T | None) -> T | None:
    if value is None:
        return stored
    return value


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)
