"""Rows by id in little memory: blocks of neighbours, compressed. For rows that are rarely read."""

from __future__ import annotations

import pickle
import threading
import zlib
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

#: Ids of one block. Its rows are alike and compress well; reading one of them unpacks all.
IDS_PER_BLOCK = 64
_FAST = 1  # a higher level of zlib saves a tenth

T = TypeVar("T")


class PackedRows(Generic[T]):
    """Safe for threads."""

    def __init__(self) -> None:
        self._blocks: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def put(self, rows: Mapping[int, T]) -> None:
        """Add rows, or replace them."""
        for block, part in _by_block(rows).items():
            with self._lock:
                merged = self._unpack(block) | {row_id: rows[row_id] for row_id in part}
                self._blocks[block] = zlib.compress(pickle.dumps(merged), _FAST)

    def remove(self, ids: Iterable[int]) -> None:
        """Remove rows; unknown ids are ignored."""
        for block, part in _by_block(ids).items():
            with self._lock:
                left = self._unpack(block)
                for row_id in part:
                    left.pop(row_id, None)
                self._blocks[block] = zlib.compress(pickle.dumps(left), _FAST)

    def get(self, ids: Iterable[int]) -> dict[int, T]:
        """The rows with these ids; unknown ids are missing."""
        found = {}
        for block, part in _by_block(ids).items():
            with self._lock:
                rows = self._unpack(block)
            found.update({row_id: rows[row_id] for row_id in part if row_id in rows})
        return found

    def _unpack(self, block: int) -> dict[int, T]:
        packed = self._blocks.get(block)
        if packed is None:
            return {}
        rows: dict[int, T] = pickle.loads(zlib.decompress(packed))  # noqa: S301  packed here
        return rows


def _by_block(ids: Iterable[int]) -> dict[int, list[int]]:
    blocks: dict[int, list[int]] = {}
    for row_id in ids:
        blocks.setdefault(row_id // IDS_PER_BLOCK, []).append(row_id)
    return blocks
