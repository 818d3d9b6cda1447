"""Print plans: the encoded rows of a menu, made once per chassis and list of properties.

Routers of one chassis share their plans. A value that differs between routers counts as moving.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from poller.sim.hardware_model import Chassis
from poller.sim.routeros import query, sentence_framing
from poller.sim.routeros.menu_tables import Fixed, Live, Scene, Table, Watch

PIECE = 16 * 1024  # approximate octets of one piece of a long answer
RE = sentence_framing.word(b"!re")
_MAX_PLANS = 4096  # plans; new lists of properties replace old ones

Pick = Callable[[Any], bool]


class Moving(NamedTuple):
    """A property whose value is looked up for each answer."""

    start: bytes  # =name=
    value: Live


class Line(NamedTuple):
    """A row and its encoded properties."""

    row: Any
    parts: tuple[bytes | Moving, ...]


class Plan(NamedTuple):
    """The lines of an answer."""

    lines: tuple[Line, ...]

    def pieces(
        self, scene: Scene, tail: bytes, pick: Pick | None = None
    ) -> Iterator[tuple[bytes, int]]:
        """Yield pieces: `!re` sentences that end with `tail`, and their number."""
        made: list[bytes] = []
        size = 0
        for line in self.lines:
            if pick is None or pick(line.row):
                made.append(encode_line(line, scene, tail))
                size += len(made[-1])
            if size >= PIECE:
                yield b"".join(made), len(made)
                made, size = [], 0
        if made:
            yield b"".join(made), len(made)


def encode_line(line: Line, scene: Scene, tail: bytes) -> bytes:
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


@functools.lru_cache(maxsize=_MAX_PLANS)
def rows(table: Table, chassis: Chassis) -> Sequence[Any]:
    return tuple(table.rows(chassis))


@functools.lru_cache(maxsize=_MAX_PLANS)
def positions(table: Table, chassis: Chassis) -> Mapping[str, int]:
    """Return the position of each item in the list, by position, id and name."""
    by_name = {str(position): position for position in range(len(rows(table, chassis)))}
    for name in (".id", "name"):
        if name in table.fixed:
            by_name |= {
                str(table.fixed[name](row)): position
                for position, row in enumerate(rows(table, chassis))
            }
    return by_name


@functools.lru_cache(maxsize=_MAX_PLANS)
def of_table(table: Table, chassis: Chassis, proplist: str, stats: bool) -> Plan:
    """Return the plan for `print` of a menu."""
    hidden = frozenset() if stats else table.stats
    names = _names(proplist) or [name for name in (*table.fixed, *table.live) if name not in hidden]
    return Plan(tuple(_line(row, names, table.fixed, table.live) for row in rows(table, chassis)))


@functools.lru_cache(maxsize=_MAX_PLANS)
def of_watch(
    table: Table, watch: Watch, chassis: Chassis, items: tuple[int, ...], proplist: str
) -> Plan:
    """Return the plan for `monitor` of these items of a menu."""
    names = _names(proplist) or [*watch.fixed, *watch.live]
    all_rows = rows(table, chassis)
    return Plan(tuple(_line(all_rows[item], names, watch.fixed, watch.live) for item in items))


def picker(table: Table, scene: Scene, words: Sequence[str], flags: Iterable[str]) -> Pick | None:
    """Return a filter for the rows, or None for all rows. The filter raises BadQuery."""
    conditions = [table.flags[name] for name in flags if name in table.flags]
    if table.present is not None:
        conditions.append(table.present)
    if not conditions and not words:
        return None

    def pick(row: Any) -> bool:
        if not all(condition(scene, row) for condition in conditions):
            return False
        return query.matches(words, functools.partial(table.value, scene, row)) if words else True

    return pick


def count(table: Table, scene: Scene, pick: Pick | None) -> int:
    all_rows = rows(table, scene.chassis)
    return len(all_rows) if pick is None else sum(map(pick, all_rows))


def _names(proplist: str) -> list[str]:
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
