"""How is a menu said? A plan has every row ready, but for what moves: made once for a chassis and a list of properties.

Routers of one chassis share their plans; what is personal about a router counts as moving.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from poller.sim.hardware_model import Chassis
from poller.sim.routeros import query, sentence_framing
from poller.sim.routeros.menu_tables import Fixed, Live, Scene, Table, Watch

PIECE = 16 * 1024  # octets, more or less, that are made at once of a long answer
RE = sentence_framing.word(b"!re")
_KEPT = 4096  # plans; a client with ever new lists of properties pushes out old ones

Pick = Callable[[Any], bool]


class Moving(NamedTuple):
    """A property that is looked up when it is said."""

    start: bytes  # =name=
    value: Live


class Line(NamedTuple):
    row: Any
    parts: tuple[bytes | Moving, ...]


class Plan(NamedTuple):
    lines: tuple[Line, ...]

    def pieces(
        self, scene: Scene, tail: bytes, pick: Pick | None = None
    ) -> Iterator[tuple[bytes, int]]:
        """The `!re` sentences, some at a time, with their number; each ends with `tail`."""
        made: list[bytes] = []
        size = 0
        for line in self.lines:
            if pick is None or pick(line.row):
                made.append(said(line, scene, tail))
                size += len(made[-1])
            if size >= PIECE:
                yield b"".join(made), len(made)
                made, size = [], 0
        if made:
            yield b"".join(made), len(made)


def said(line: Line, scene: Scene, tail: bytes) -> bytes:
    out = [RE]
    row, word = line.row, sentence_framing.word
    for part in line.parts:
        if isinstance(part, bytes):
            out.append(part)
            continue
        value = part.value(scene, row)
        if value is not None:
            out.append(word(part.start + value.encode()))
    out.append(tail)
    return b"".join(out)


@functools.lru_cache(maxsize=_KEPT)
def rows(table: Table, chassis: Chassis) -> Sequence[Any]:
    return tuple(table.rows(chassis))


@functools.lru_cache(maxsize=_KEPT)
def places(table: Table, chassis: Chassis) -> Mapping[str, int]:
    """Where in the list an item is, by its place, its id and its name."""
    known = {str(place): place for place in range(len(rows(table, chassis)))}
    for name in (".id", "name"):
        if name in table.fixed:
            known |= {
                str(table.fixed[name](row)): place for place, row in enumerate(rows(table, chassis))
            }
    return known


@functools.lru_cache(maxsize=_KEPT)
def of_table(table: Table, chassis: Chassis, proplist: str, stats: bool) -> Plan:
    """What `print` says of a menu."""
    hidden = frozenset() if stats else table.stats
    names = _asked(proplist) or [name for name in (*table.fixed, *table.live) if name not in hidden]
    return Plan(tuple(_line(row, names, table.fixed, table.live) for row in rows(table, chassis)))


@functools.lru_cache(maxsize=_KEPT)
def of_watch(
    table: Table, watch: Watch, chassis: Chassis, items: tuple[int, ...], proplist: str
) -> Plan:
    """What `monitor` says of these items of a menu."""
    names = _asked(proplist) or [*watch.fixed, *watch.live]
    found = rows(table, chassis)
    return Plan(tuple(_line(found[item], names, watch.fixed, watch.live) for item in items))


def picker(table: Table, scene: Scene, words: Sequence[str], flags: Iterable[str]) -> Pick | None:
    """Which rows are meant; None for all. Raises BadQuery when a row is tried."""
    asked = [table.flags[name] for name in flags if name in table.flags]
    if table.present is not None:
        asked.append(table.present)
    if not asked and not words:
        return None

    def pick(row: Any) -> bool:
        if not all(condition(scene, row) for condition in asked):
            return False
        return query.matches(words, functools.partial(table.value, scene, row)) if words else True

    return pick


def count(table: Table, scene: Scene, pick: Pick | None) -> int:
    found = rows(table, scene.chassis)
    return len(found) if pick is None else sum(map(pick, found))


def _asked(proplist: str) -> list[str]:
    return list(dict.fromkeys(name for name in proplist.split(",") if name))


def _line(
    row: Any, names: Iterable[str], fixed: Mapping[str, Fixed], live: Mapping[str, Live]
) -> Line:
    parts: list[bytes | Moving] = []
    steady = b""
    for name in names:
        start = f"={name}=".encode()
        if name in fixed:
            value = fixed[name](row)
            steady += b"" if value is None else sentence_framing.word(start + value.encode())
        elif name in live:
            parts += [steady, Moving(start, live[name])] if steady else [Moving(start, live[name])]
            steady = b""
    return Line(row, (*parts, steady) if steady else tuple(parts))
