"""Devices that were told as down, and targets that were told as failing, for the leader.

`finish` keeps both records while targets are polled. The leader restores them after Redis was
emptied, and removes devices whose silent targets are no longer on the board.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poller.domain.batched import batched
from poller.domain.record.overview import State
from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors

_PAGE = 1_000
#: A record that is younger may be about a poll that is being finished.
_SETTLED_MS = 60_000
_RESPONDING = (State.OK, State.DEGRADED)


def restore(
    board: BoardReader, down: Mapping[int, Sequence[int]], troubled: Iterable[int], now_ms: int
) -> None:
    """Add devices with the ids of their targets, and targets. Raises StoreError.

    To be called before a target is placed: the response of a polled one would be overlooked.
    """
    pipe = board.redis.pipeline(transaction=False)
    for device_id, ids in down.items():
        members = ",".join(map(str, ids))
        pipe.hsetnx(board.keys.down, str(device_id), f"{now_ms}|{members}")
    for page in batched(troubled, _PAGE):
        pipe.sadd(board.keys.troubled, *page)
    with store_errors(board.redis):
        pipe.execute()


def forget_absent(board: BoardReader, now_ms: int) -> int:
    """Remove devices without a target on the board, and devices whose remaining targets all
    respond: the silent ones were removed. Returns how many. Raises StoreError.
    """
    removed = 0
    settled_ms = now_ms - _SETTLED_MS
    with store_errors(board.redis):
        rows: Any = board.redis.hscan_iter(board.keys.down, count=_PAGE)
        for page in batched(rows, _PAGE):
            members = {
                device: target_ids(record)
                for device, record in page
                if since_ms(record) <= settled_ms
            }
            absent = _without_silent_targets(board, members)
            if absent:
                removed += _forget(board, absent, now_ms)
    return removed


def _forget(board: BoardReader, devices: Sequence[str], now_ms: int) -> int:
    pipe = board.redis.pipeline(transaction=True)
    pipe.hdel(board.keys.down, *devices)
    news = {f"d{device}": now_ms for device in devices}
    pipe.zadd(board.keys.alert_news, news, gt=True)
    removed, _ = pipe.execute()
    return int(removed)


def _without_silent_targets(board: BoardReader, members: Mapping[str, Sequence[int]]) -> list[str]:
    ids = sorted({target_id for each in members.values() for target_id in each})
    specs = dict(zip(ids, board.specs(ids), strict=True))
    statuses = board.statuses(ids) if ids else {}

    def may_be_silent(target_id: int) -> bool:
        status = statuses.get(target_id)
        return bool(specs[target_id]) and (status is None or status.state not in _RESPONDING)

    return [
        device
        for device, each in members.items()
        if not any(may_be_silent(target_id) for target_id in each)
    ]


def since_ms(record: str) -> int:
    """The instant in a record `since|id,id`."""
    since, _, _ = record.partition("|")
    return int(since) if since.isdigit() else 0


def target_ids(record: str) -> list[int]:
    """The ids in a record `since|id,id`."""
    _, _, members = record.partition("|")
    return [int(member) for member in members.split(",") if member.isdigit()]
