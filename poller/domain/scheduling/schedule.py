"""How often is a target polled, once its owner, the database, its collector and the settings have had their say?

Defaults give way to what is given: a default bound moves to make room, a given one never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from poller.domain.inventory import duration
from poller.domain.inventory.duration import format_ms
from poller.domain.inventory.problem import Problem
from poller.domain.scheduling import staleness
from poller.domain.scheduling.interval import Adaptive, Policy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Schedule:
    """None: not said. Once settled, only a fixed interval has None: for its bounds and its staleness source."""

    policy: Policy | None = None
    interval_ms: int | None = None  # the interval, or the base of an adaptive one
    timeout_ms: int | None = None
    min_ms: int | None = None
    max_ms: int | None = None
    staleness: str | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a target gets where nobody says otherwise."""

    declared: Schedule = field(default_factory=Schedule)  # by its collector
    adaptive: Adaptive = field(default_factory=Adaptive)  # by the settings


NO_DEFAULTS = Defaults()


def settle(given: Schedule, stored: Schedule | None, defaults: Defaults) -> Schedule:
    """What is given over what is stored (None: a new target) over what the collector and the settings say."""
    declared = defaults.declared
    policy = given.policy or (stored or declared).policy or Policy.FIXED
    said = _over(given, stored) if stored else given
    if policy is Policy.FIXED:
        interval = _first(said.interval_ms, declared.interval_ms, duration.DEFAULT_INTERVAL_MS)
        return Schedule(policy, interval, _timeout(interval, said, declared))
    low, base, high = _bounds(said, declared, defaults.adaptive)
    source = said.staleness or declared.staleness or staleness.DEFAULT
    return Schedule(policy, base, _timeout(base, said, declared), low, high, source)


def problems(given: Schedule, settled: Schedule) -> Iterator[Problem]:
    """What does not fit together, said of a field that was given. What is not said is not judged."""
    if settled.policy is Policy.FIXED:
        yield from _surplus(given)
    else:
        yield from _disorder(given, settled)
    interval, timeout = settled.interval_ms, settled.timeout_ms
    if interval is not None and timeout is not None and timeout >= interval:
        message = f"the timeout {format_ms(timeout)} must be shorter than the interval {format_ms(interval)}"
        yield Problem(
            "timeout", message, f"for example {format_ms(duration.default_timeout_ms(interval))}"
        )


def _surplus(given: Schedule) -> Iterator[Problem]:
    for name, value in (
        ("min", given.min_ms),
        ("max", given.max_ms),
        ("staleness", given.staleness),
    ):
        if value is not None:
            yield Problem(
                name,
                f"a fixed interval has no {name}",
                "choose the policy adaptive, or leave it out",
            )


def _disorder(given: Schedule, settled: Schedule) -> Iterator[Problem]:
    """Shortest, base and longest interval must be in this order; the first two that are not are named."""
    was_given = {"min": given.min_ms, "interval": given.interval_ms, "max": given.max_ms}
    known = {"min": settled.min_ms, "interval": settled.interval_ms, "max": settled.max_ms}
    for lower, upper in (("min", "max"), ("min", "interval"), ("interval", "max")):
        less, more = known[lower], known[upper]
        if less is not None and more is not None and less > more:
            blamed = next(
                (name for name in (lower, upper) if name != "interval" and was_given[name]),
                "interval",
            )
            hint = f"choose a {lower} of {format_ms(more)} or less, or a {upper} of {format_ms(less)} or more"
            yield Problem(
                blamed,
                f"the {lower} {format_ms(less)} is longer than the {upper} {format_ms(more)}",
                hint,
            )
            return


def _bounds(said: Schedule, declared: Schedule, numbers: Adaptive) -> tuple[int, int, int]:
    """Shortest, base and longest interval; those nobody said fit around those somebody did."""
    low, base, high = said.min_ms, said.interval_ms, said.max_ms
    if base is None:
        base = _first(declared.interval_ms, numbers.base_ms)
        base = min(base, high) if high is not None else base
        base = max(base, low) if low is not None else base
    low = min(base, _first(declared.min_ms, numbers.min_ms)) if low is None else low
    high = max(base, _first(declared.max_ms, numbers.max_ms)) if high is None else high
    return low, base, high


def _timeout(interval: int, said: Schedule, declared: Schedule) -> int:
    if said.timeout_ms is not None:
        return said.timeout_ms
    if declared.timeout_ms is not None and declared.timeout_ms < interval:
        return declared.timeout_ms
    return duration.default_timeout_ms(interval)


def _over(given: Schedule, stored: Schedule) -> Schedule:
    return Schedule(
        given.policy or stored.policy,
        _or(given.interval_ms, stored.interval_ms),
        _or(given.timeout_ms, stored.timeout_ms),
        _or(given.min_ms, stored.min_ms),
        _or(given.max_ms, stored.max_ms),
        given.staleness or stored.staleness,
    )


def _or(given: T | None, stored: T | None) -> T | None:
    return stored if given is None else given


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)
