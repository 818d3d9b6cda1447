"""Rows of the last seconds: read again in time, and used longer while the database is away."""

from __future__ import annotations

import asyncio
import threading

import pytest

from poller import errors
from poller.web.access import recent_rows
from poller.web.access.recent_rows import FRESH_S, RENEW_S, STALE_S, RecentRows


class Table:
    """A table with one row, which counts its reads."""

    def __init__(self) -> None:
        self.row: str | None = "row"
        self.is_away = False
        self.answers = threading.Event()
        self.answers.set()
        self.reads = 0
        self.now_mono = 1_000.0
        self.rows = RecentRows(self.load, lambda: self.now_mono)

    def load(self, _key: str) -> str | None:
        self.reads += 1
        row = self.row
        self.answers.wait(10)
        if self.is_away:
            raise errors.StoreUnavailable("the database is away")
        return row

    def get(self, key: str = "a") -> str | None:
        return asyncio.run(self.rows.get(key))


def test_a_row_is_read_once_in_some_seconds() -> None:
    """A removed row is refused when the row in memory is old, or was forgotten."""
    table = Table()
    assert [table.get(), table.get()] == ["row", "row"]
    assert table.reads == 1
    table.row = None
    table.now_mono += FRESH_S - 0.1
    assert table.get() == "row"
    table.now_mono += 0.2
    assert table.get() is None
    table.row = "row"
    assert table.get() == "row"
    table.row = None
    table.rows.clear()
    assert table.get() is None


def test_while_the_database_is_away_a_known_row_is_good_for_minutes() -> None:
    """An unknown key is not guessed."""
    table = Table()
    table.get()
    table.is_away = True
    table.now_mono += STALE_S - 1
    assert table.get() == "row"
    with pytest.raises(errors.StoreUnavailable):
        table.get("another key")
    table.now_mono += 2
    with pytest.raises(errors.StoreUnavailable):
        table.get()


def test_the_number_of_rows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that was kept first is forgotten first."""
    monkeypatch.setattr(recent_rows, "MOST_ROWS", 2)
    table = Table()
    for key in ("a", "b", "c", "b", "a"):
        table.get(key)
    assert table.reads == 4


def test_a_silent_database_holds_one_thread_and_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests share one read; a known row is used, an unknown one is refused."""
    monkeypatch.setattr(recent_rows, "PATIENCE_S", 0.05)
    monkeypatch.setattr(recent_rows, "PATIENCE_WITH_ROW_S", 0.05)
    table = Table()
    table.get()
    table.now_mono += FRESH_S

    async def ask() -> None:
        table.answers.clear()
        assert await asyncio.gather(*[table.rows.get("a") for _ in range(20)]) == ["row"] * 20
        assert table.reads == 2
        with pytest.raises(errors.StoreUnavailable, match="does not answer"):
            await table.rows.get("another key")
        table.answers.set()

    asyncio.run(ask())


def test_a_row_in_use_is_read_again_beside_its_requests() -> None:
    """A quick look never waits and finds the row of the last seconds."""
    table = Table()

    async def ask() -> None:
        assert table.rows.kept("a") is None
        await table.rows.get("a")
        table.row = "new row"
        table.now_mono += RENEW_S
        assert table.rows.kept("a") == "row"
        await table.rows._reads["a"]
        assert (table.rows.kept("a"), table.reads) == ("new row", 2)

    asyncio.run(ask())


def test_a_read_from_before_a_change_is_not_kept() -> None:
    """A log-out ends a session although a read of it is under way."""
    table = Table()

    async def ask() -> None:
        table.answers.clear()
        early = asyncio.ensure_future(table.rows.get("a"))
        await asyncio.sleep(0.05)
        table.row = None
        table.rows.clear()
        table.answers.set()
        assert await table.rows.get("a") is None
        await early
        assert table.rows.kept("a") is None

    asyncio.run(ask())
