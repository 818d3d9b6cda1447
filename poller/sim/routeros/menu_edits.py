"""The rows that clients added to a router's menus, and the log of their changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Row = Mapping[str, str]

MAX_ROWS = 1000
_MAX_LOGGED = 1000
_FIRST_ID = 0x1000
_DEFAULTS = {"dynamic": "false", "disabled": "false", "invalid": "false"}


class Changes:
    """Added rows by menu. Each change is logged for listeners: the row, or a dead row."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Row]] = {}
        self._log: list[tuple[str, Row]] = []
        self._dropped = 0  # logged changes that were dropped

    def rows(self, path: str) -> Sequence[Row]:
        return tuple(self._rows.get(path, {}).values())

    @property
    def latest(self) -> int:
        return self._dropped + len(self._log)

    def since(self, path: str, count: int) -> Iterator[Row]:
        """Yield the logged changes of a menu after the first `count` changes."""
        for where, row in self._log[max(0, count - self._dropped) :]:
            if where == path:
                yield row

    def add(self, path: str, values: Row) -> str:
        """Add a row and return its id. The caller has checked `full`."""
        number = f"*{_FIRST_ID + self.latest:X}"
        self._put(path, {".id": number, **_DEFAULTS, **values})
        return number

    def full(self, path: str) -> bool:
        return len(self._rows.get(path, {})) >= MAX_ROWS

    def set(self, path: str, number: str, values: Row) -> bool:
        """Edit a row. Returns False if there is no such row."""
        row = self._rows.get(path, {}).get(number)
        if row is not None:
            self._put(path, {**row, **values})
        return row is not None

    def remove(self, path: str, number: str) -> bool:
        removed = self._rows.get(path, {}).pop(number, None)
        if removed is not None:
            self._record(path, {".id": number, ".dead": "yes"})
        return removed is not None

    def _put(self, path: str, row: Row) -> None:
        self._rows.setdefault(path, {})[row[".id"]] = row
        self._record(path, row)

    def _record(self, path: str, row: Row) -> None:
        self._log.append((path, row))
        if len(self._log) > _MAX_LOGGED:
            self._log.pop(0)
            self._dropped += 1
