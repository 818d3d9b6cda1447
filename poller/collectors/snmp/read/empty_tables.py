"""Tables that had no row: nothing of them is on the way to the numbers, so it is asked beside it whether they have one.

Groups of scalars that were not there count as such. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from poller.collectors.snmp import oid
from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet, Part
from poller.collectors.snmp.oid import Oid

Reads = Sequence[tuple[Part, Sequence[Row]]]
#: Is it seen on the way, when something comes before this row of that read?
Seen = Callable[[int, int], bool]


class Gap(NamedTuple):
    """A place between two rows: what comes after `cursor` is news if it is beneath one of the roots."""

    cursor: str
    roots: tuple[str, ...]

    def is_filled_by(self, name: str) -> bool:
        return any(oid.covers(root, name) for root in self.roots)


def find(reads: Reads, module_set: ModuleSet, seen: Seen) -> tuple[Gap, ...]:
    """One for each place where rows may come that would not be seen."""
    empty = _empty(reads, module_set)
    found: list[Gap] = []
    for number, (part, rows) in enumerate(reads):
        found += _of_scalars(part, empty) if part.get else _of_walk(number, part, rows, empty, seen)
    return tuple(found)


def _empty(reads: Reads, module_set: ModuleSet) -> dict[str, None]:
    """Tables and groups of which nothing was read."""
    tables = {
        metric.oid.rpartition(".")[0]: None
        for module in module_set.modules
        for metric in module.metrics
    }
    sizes = sorted({table.count(".") + 1 for table in tables})
    for name in (name for _, rows in reads for name, _ in rows):
        parts = name.split(".")
        for size in sizes:
            tables.pop(".".join(parts[:size]), None)
    return tables


def _of_scalars(part: Part, empty: dict[str, None]) -> Iterator[Gap]:
    """The first of a group shows that it is there."""
    for group in [group for group in empty if any(oid.covers(group, name) for name in part.get)]:
        del empty[group]
        names = sorted((name for name in part.get if oid.covers(group, name)), key=oid.parse)
        yield Gap(names[0].rpartition(".")[0], tuple(names))


def _of_walk(
    number: int, part: Part, rows: Sequence[Row], empty: dict[str, None], seen: Seen
) -> Iterator[Gap]:
    """Tables that would stand at the same place need one question; so do columns of a table that are walked alone."""
    roots: dict[Oid, str] = {}
    for table in [
        table for table in empty if oid.covers(part.walk, table) or oid.covers(table, part.walk)
    ]:
        del empty[table]
        root = max(table, part.walk, key=len)
        roots[oid.parse(root)] = root
    if not roots:
        return
    order = [oid.parse(name) for name, _ in rows]
    if any(one >= other for one, other in pairwise(order)):
        return  # it walks in an order of its own: nobody knows what follows what
    places: dict[int, list[str]] = {}
    for key in sorted(roots):
        places.setdefault(bisect_left(order, key), []).append(roots[key])
    for at, tables in places.items():
        if not seen(number, at):
            yield Gap(tables[0], tuple(tables))
