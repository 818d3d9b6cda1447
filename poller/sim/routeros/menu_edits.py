"""What clients added to a router's menus since the simulator was started, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Row = Mapping[str, str]

MOST_ROWS = 1000
_MOST_NEWS = 1000
_FIRST_ID = 0x1000
_GIVEN = {"dynamic": "false", "disabled": "false", "invalid": "false"}


class Changes:
    """Rows by menu. Every change is news, for those who listen: the row, or a dead one."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Row]] = {}
        self._news: list[tuple[str, Row]] = []
        self._forgotten = 0  # news older than those kept

    def rows(self, path: str) -> Sequence[Row]:
        return tuple(self._rows.get(path, {}).values())

    @property
    def latest(self) -> int:
        return self._forgotten + len(self._news)

    def news(self, path: str, since: int) -> Iterator[Row]:
        """What happened in a menu after the first `since` changes."""
        for where, row in self._news[max(0, since - self._forgotten) :]:
            if where == path:
                yield row

    def add(self, path: str, given: Row) -> str:
        """A new row; returns its id. The caller has seen to it that there is room (`full`)."""
        number = f"*{_FIRST_ID + self.latest:X}"
        self._put(path, {".id": number, **_GIVEN, **given})
        return number

    def full(self, path: str) -> bool:
        return len(self._rows.get(path, {})) >= MOST_ROWS

    def set(self, path: str, number: str, given: Row) -> bool:
        """False when there is no such row."""
        row = self._rows.get(path, {}).get(number)
        if row is not None:
            self._put(path, {**row, **given})
        return row is not None

    def remove(self, path: str, number: str) -> bool:
        gone = self._rows.get(path, {}).pop(number, None)
        if gone is not None:
            self._tell(path, {".id": number, ".dead": "yes"})
        return gone is not None

    def _put(self, path: str, row: Row) -> None:
        self._rows.setdefault(path, {})[row[".id"]] = row
        self._tell(path, row)

    def _tell(self, path: str, row: Row) -> None:
        self._news.append((path, row))
        if len(self._news) > _MOST_NEWS:
            self._news.pop(0)
            self._forgotten += 1
