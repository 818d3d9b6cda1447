"""Texts that children of a prefork worker leave for its heartbeat: reports of their sinks.

Each child has a row of shared memory: length and CRC-32 of its text, and the text. A text that is
read while it is written does not match its checksum, and counts as none.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from functools import cache

from pydantic import TypeAdapter, ValidationError

from poller.domain.record.sink_report import SinkReport

ROW_BYTES = 32 * 1024
_HEAD = struct.Struct("<II")


class ChildReports:
    """Shared memory, created before the first fork."""

    def __init__(self, max_children: int) -> None:
        self._max_children = max_children
        self._page = mmap.mmap(-1, ROW_BYTES * max_children)

    def write(self, row: int, reports: Sequence[SinkReport]) -> None:
        """Write a child's row, without the reports that have no room."""
        text = b""
        for end in range(len(reports), 0, -1):
            text = _adapter().dump_json(list(reports[:end]))
            if len(text) <= ROW_BYTES - _HEAD.size:
                break
        start = row * ROW_BYTES
        head = _HEAD.pack(len(text), zlib.crc32(text))
        self._page[start : start + _HEAD.size + len(text)] = head + text

    def read_all(self) -> list[SinkReport]:
        """Return the reports of all children."""
        reports = []
        for row in range(self._max_children):
            reports += self._read(row)
        return reports

    def _read(self, row: int) -> list[SinkReport]:
        start = row * ROW_BYTES
        length, checksum = _HEAD.unpack_from(self._page, start)
        text = self._page[start + _HEAD.size : start + _HEAD.size + min(length, ROW_BYTES)]
        if not text or zlib.crc32(text) != checksum:
            return []
        try:
            return _adapter().validate_json(text)
        except ValidationError:
            return []


@cache
def _adapter() -> TypeAdapter[list[SinkReport]]:
    return TypeAdapter(list[SinkReport])
