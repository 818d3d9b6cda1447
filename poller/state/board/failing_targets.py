"""Targets that fail, and targets that wait for too long.

Both are read in pages: a large fleet costs time, not memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from redis import Redis

from poller.domain.record import target_status
from poller.domain.record.overview import State, is_long_overdue
from poller.domain.record.target_status import LETTERS, Status
from poller.state.board import record_formats
from poller.state.board.record_formats import FIRST_INSTANT_MS
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

PAGE = 2_000


class Failing(NamedTuple):
    """A target whose last poll failed."""

    id: int
    interval_ms: int
    status: Status


class Late(NamedTuple):
    """A waiting target that is overdue."""

    id: int
    interval_ms: int
    queue: str
    due_ms: int


def failing(client: Redis, keys: Keys) -> Iterator[Failing]:
    """Every failing target, in no order. Raises StoreError.

    A target may come twice while the fleet grows.
    """
    letter = LETTERS[State.FAILING]
    for statuses in status_pages(client, keys):
        texts = {}
        for target_id, text in statuses.items():
            if text.startswith(letter):
                texts[target_id] = text

        intervals = _intervals(client, keys, list(texts))
        for (target_id, text), interval_ms in zip(texts.items(), intervals, strict=True):
            if interval_ms:
                yield Failing(target_id, interval_ms, target_status.unpack(text))


def status_pages(client: Redis, keys: Keys) -> Iterator[dict[int, str]]:
    """The status texts of all targets by id, in pages of about `PAGE`. Raises StoreError."""
    cursor = 0
    while True:
        with store_errors(client):
            reply: Any = client.hscan(keys.status, cursor, count=PAGE)

        cursor, texts = reply

        page = {}
        for member, text in texts.items():
            if member.isdigit():
                page[int(member)] = text

        yield page
        if cursor == 0:
            break


def long_overdue(
    client: Redis, keys: Keys, queues: Sequence[str], now_ms: int, pages: int | None = None
) -> Iterator[Late]:
    """Targets that have waited for more than two of their own intervals. Raises StoreError.

    `pages` limits the number of pages that are read of each place.
    """
    for queue in queues:
        for place in (keys.due(queue), keys.urgent(queue)):
            number = 0
            while pages is None or number < pages:
                page = _overdue_page(client, keys, queue, place, now_ms, number * PAGE)
                for late in page:
                    if late.interval_ms and is_long_overdue(late.due_ms, late.interval_ms, now_ms):
                        yield late

                number += 1
                if len(page) < PAGE:
                    break


def _overdue_page(
    client: Redis, keys: Keys, queue: str, place: str, now_ms: int, offset: int
) -> list[Late]:
    """One page of the overdue targets of a place, the oldest first."""
    with store_errors(client):
        rows: Any = client.zrange(
            place,
            FIRST_INSTANT_MS,
            now_ms,
            byscore=True,
            offset=offset,
            num=PAGE,
            withscores=True,
        )

    intervals = _intervals(client, keys, [int(member) for member, _ in rows])
    page = []
    for (member, due_ms), interval_ms in zip(rows, intervals, strict=True):
        page.append(Late(int(member), interval_ms, queue, int(due_ms)))

    return page


def _intervals(client: Redis, keys: Keys, ids: Sequence[int]) -> list[int]:
    """The interval of each target in ms; 0 for a target that is not on the board."""
    if not ids:
        return []
    members = [str(target_id) for target_id in ids]
    with store_errors(client):
        specs: Any = client.hmget(keys.spec, members)

    return [record_formats.interval_ms(spec) for spec in specs]
