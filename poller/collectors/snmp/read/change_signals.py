"""May what was read before - names, types, which rows there are - still be believed? Pure: signals and clocks come in.

A device tells of itself that it has restarted (sysUpTime) or got other interfaces (ifTableLastChange, ifNumber).
Whatever it does not tell is believed until the target's next refresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poller.collectors.snmp import oid
from poller.collectors.snmp.wire.value_types import Value

UPTIME = "1.3.6.1.2.1.1.3.0"
_INTERFACES = ("1.3.6.1.2.1.31.1.5.0", "1.3.6.1.2.1.2.1.0")  # ifTableLastChange, ifNumber
_INTERFACE_TABLES = ("1.3.6.1.2.1.2", "1.3.6.1.2.1.31")
_TICKS_PER_S = 100
#: A device's clock may be this much slower than ours before we take it for a restart.
_SLOW_CLOCK, _SLACK_S = 0.97, 2.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What a device says of its own changes: some of the signals, in their order. `at` is on our clock."""

    at: float
    values: tuple[Value, ...] = ()


def signals_of(roots: Iterable[str]) -> tuple[str, ...]:
    """What to ask for beside these subtrees."""
    tables = any(
        oid.covers(table, root) or oid.covers(root, table)
        for root in roots
        for table in _INTERFACE_TABLES
    )
    return (UPTIME, *_INTERFACES) if tables else (UPTIME,)


def has_changed(names: Sequence[str], before: Signals, now: Signals) -> bool:
    """Has the device restarted, or got other interfaces? Both are values of the signals `names`."""
    return any(
        _restarted(old, new, now.at - before.at) if name == UPTIME else old != new
        for name, old, new in zip(names, before.values, now.values, strict=True)
    )


def outlived(before: Mapping[str, Value], then: float, now: Mapping[str, Value], at: float) -> bool:
    """May names that were learned beside `before` be those of other rows by now? By signals that come with them.

    Where the device no longer says how long it is up, they may. Other signals that are missing prove nothing.
    """
    names = [name for name in before if name in now or name == UPTIME]
    values = (tuple(said.get(name) for name in names) for said in (before, now))
    return has_changed(names, Signals(then, next(values)), Signals(at, next(values)))


def _restarted(before: Value, now: Value, passed_s: float) -> bool:
    """Its clock went back, or went on by less than it should have."""
    if not isinstance(before, int) or not isinstance(now, int):
        return before != now
    expected_ticks = (_SLOW_CLOCK * passed_s - _SLACK_S) * _TICKS_PER_S
    return now < before or now - before < expected_ticks


def period(now: float, refresh_s: float, target_id: int) -> int | None:
    """Number of the target's refresh period: everything is read once in each, by every target at another moment.

    None: everything is read every time.
    """
    if not refresh_s:
        return None
    phase = (target_id * 0.6180339887498949) % 1.0  # spreads neighbours as far apart as can be
    return int(now / refresh_s + phase)
