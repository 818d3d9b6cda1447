"""Has the device changed since everything was read? Pure: values and clocks are arguments.

Devices announce a restart (sysUpTime) and other interfaces (ifTableLastChange, ifNumber). Rows that
appear in an empty table are found by one extra GETNEXT. Any other change shows at the next refresh.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from poller.collectors.snmp import oid
from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet, Part
from poller.collectors.snmp.oid import Oid
from poller.collectors.snmp.wire.value_types import Value

UPTIME = "1.3.6.1.2.1.1.3.0"
_INTERFACE_SIGNALS = ("1.3.6.1.2.1.31.1.5.0", "1.3.6.1.2.1.2.1.0")  # ifTableLastChange, ifNumber
_INTERFACE_TABLES = ("1.3.6.1.2.1.2", "1.3.6.1.2.1.31")
_TICKS_PER_S = 100
#: A device's clock may run at this share of our speed, and this far behind, without a restart.
_SLOWEST_CLOCK = 0.97
#: A refresh is postponed by so many periods at most.
MOST_POSTPONED = 3
_SLACK_S = 2.0


@dataclass(frozen=True, slots=True)
class Signals:
    """Values of a device's change signals, in the order of their OIDs. `at` is on our clock."""

    at: float
    values: tuple[Value, ...] = ()


def signal_oids(parts: Iterable[Part]) -> tuple[str, ...]:
    """The signals to request together with these parts."""
    for part in parts:
        for root in (part.walk, *part.get):
            if root and _touches_interfaces(root):
                return (UPTIME, *_INTERFACE_SIGNALS)
    return (UPTIME,)


def _touches_interfaces(root: str) -> bool:
    """Whether the subtree holds interface tables, or is a part of one."""
    return any(oid.covers(table, root) or oid.covers(root, table) for table in _INTERFACE_TABLES)


def has_changed(oids: Sequence[str], before: Signals, now: Signals) -> bool:
    """Whether the device restarted or has other interfaces, by old and new signal values."""
    for name, old, new in zip(oids, before.values, now.values, strict=True):
        if name == UPTIME:
            if _restarted(old, new, now.at - before.at):
                return True
        elif old != new:
            return True
    return False


def names_expired(
    before: Mapping[str, Value], before_at: float, now: Mapping[str, Value], now_at: float
) -> bool:
    """Whether names that were read with the signals `before` may belong to other rows now.

    A missing sysUpTime expires them; any other missing signal proves nothing.
    """
    oids = [name for name in before if name in now or name == UPTIME]
    old = Signals(before_at, tuple(before.get(name) for name in oids))
    new = Signals(now_at, tuple(now.get(name) for name in oids))
    return has_changed(oids, old, new)


def _restarted(before: Value, now: Value, passed_s: float) -> bool:
    """Whether sysUpTime went back, or advanced by less than the time that has passed."""
    if not isinstance(before, int) or not isinstance(now, int):
        return before != now
    advanced = now - before
    expected_s = _SLOWEST_CLOCK * passed_s - _SLACK_S
    return advanced < 0 or advanced < expected_s * _TICKS_PER_S


def refresh_period(now: float, refresh_s: float, target_id: int) -> int | None:
    """Number of the target's current refresh period; None if every poll reads everything.

    Everything is read once per period. Targets start their periods at different instants.
    """
    if not refresh_s:
        return None
    phase = (target_id * 0.6180339887498949) % 1.0  # the golden ratio spreads neighbours evenly
    return int(now / refresh_s + phase)


def needs_refresh(known: int, current: int | None, is_behind: bool) -> bool:
    """Whether everything has to be read again in the current period.

    A refresh costs several times a poll. Refreshes of a fleet that is polled late would keep its
    polls late for ever, so they wait while the workers are behind.
    """
    if known == current:
        return False
    can_wait = current is not None and 0 < current - known <= MOST_POSTPONED
    return not (is_behind and can_wait)


class PartRead(NamedTuple):
    """One part of a full read."""

    part: Part
    rows: Sequence[Row]


class TableProbe(NamedTuple):
    """A GETNEXT at `cursor` that shows whether one of these empty tables has rows now."""

    cursor: str
    roots: tuple[str, ...]

    def hits(self, name: str) -> bool:
        """Whether the OID that follows the cursor belongs to one of the tables."""
        return any(oid.covers(root, name) for root in self.roots)


#: Whether the route meets a row that appears before row `at` of read number `read`.
Meets = Callable[[int, int], bool]


def find_probes(
    reads: Sequence[PartRead], module_set: ModuleSet, meets: Meets
) -> tuple[TableProbe, ...]:
    """The probes for all places where rows could appear without being met by the route.

    Absent groups of scalars count as empty tables.
    """
    empty = _empty_tables(reads, module_set)
    probes: list[TableProbe] = []
    for number, (part, rows) in enumerate(reads):
        if part.get:
            probes += _scalar_probes(part, empty)
        else:
            probes += _walk_probes(number, part, rows, empty, meets)
    return tuple(probes)


def _empty_tables(reads: Sequence[PartRead], module_set: ModuleSet) -> dict[str, None]:
    """OIDs of tables and groups without a row, in the order of their modules."""
    tables: dict[str, None] = {}
    for module in module_set.modules:
        for metric in module.metrics:
            tables[metric.oid.rpartition(".")[0]] = None

    sizes = sorted({table.count(".") + 1 for table in tables})
    for _, rows in reads:
        for name, _ in rows:
            parts = name.split(".")
            for size in sizes:
                tables.pop(".".join(parts[:size]), None)
    return tables


def _scalar_probes(part: Part, empty: dict[str, None]) -> Iterator[TableProbe]:
    """One probe per absent group: its first scalar shows that the group is there."""
    for group in list(empty):
        names = [name for name in part.get if oid.covers(group, name)]
        if names:
            del empty[group]
            names.sort(key=oid.parse)
            yield TableProbe(names[0].rpartition(".")[0], tuple(names))


def _walk_probes(
    number: int, part: Part, rows: Sequence[Row], empty: dict[str, None], meets: Meets
) -> Iterator[TableProbe]:
    """One probe for all empty tables, or columns walked alone, that belong at the same place."""
    roots: dict[Oid, str] = {}
    for table in list(empty):
        if oid.covers(part.walk, table) or oid.covers(table, part.walk):
            del empty[table]
            root = max(table, part.walk, key=len)
            roots[oid.parse(root)] = root
    if not roots:
        return

    order = [oid.parse(name) for name, _ in rows]
    if any(one >= other for one, other in pairwise(order)):
        return  # the agent walks in an order of its own, so no place follows another

    tables_at: dict[int, list[str]] = {}
    for key in sorted(roots):
        at = bisect_left(order, key)
        tables_at.setdefault(at, []).append(roots[key])
    for at, tables in tables_at.items():
        if not meets(number, at):
            yield TableProbe(tables[0], tuple(tables))
