"""Devices that were told as down, and targets that were told as failing, for the leader.

`finish` keeps both records while targets are polled. The leader restores them after Redis was
emptied, and removes devices that have no target on the board.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poller.domain.batched import batched
from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors

_PAGE = 1_000


def restore(
    board: BoardReader, down: Mapping[int, Sequence[int]], troubled: Iterable[int], now_ms: int
) -> None:
    """Add devices with the ids of their targets, and targets. Raises StoreError.

    To be called before a target is placed: the response of a polled one would be overlooked.
    """
    pipe = board.redis.pipeline(transaction=False)
    for device_id, target_ids in down.items():
        members = ",".join(map(str, target_ids))
        pipe.hsetnx(board.keys.down, str(device_id), f"{now_ms}|{members}")
    for page in batched(troubled, _PAGE):
        pipe.sadd(board.keys.troubled, *page)
    with store_errors(board.redis):
        pipe.execute()


def forget_absent(board: BoardReader) -> int:
    """Remove devices without a target on the board. Returns how many. Raises StoreError."""
    removed = 0
    with store_errors(board.redis):
        rows: Any = board.redis.hscan_iter(board.keys.down, count=_PAGE)
        for page in batched(rows, _PAGE):
            members = {device: _target_ids(record) for device, record in page}
            absent = _without_targets(board, members)
            if absent:
                removed += int(board.redis.hdel(board.keys.down, *absent))
    return removed


def _without_targets(board: BoardReader, members: Mapping[str, Sequence[int]]) -> list[str]:
    ids = sorted({target_id for target_ids in members.values() for target_id in target_ids})
    specs = dict(zip(ids, board.specs(ids), strict=True))
    return [
        device
        for device, target_ids in members.items()
        if not any(specs[target_id] for target_id in target_ids)
    ]


def _target_ids(record: str) -> list[int]:
    """The ids in a record `since|id,id`."""
    _, _, members = record.partition("|")
    return [int(member) for member in members.split(",") if member.isdigit()]
