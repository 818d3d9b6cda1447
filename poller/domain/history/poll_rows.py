"""Rows of history as SQL has them. This module imports no numpy: every command can afford it."""

from __future__ import annotations

from typing import NamedTuple


class RawPoll(NamedTuple):
    """One poll as the table `readings` has it. `packed` is `domain.metrics.reading.pack`."""

    at_ms: int
    shape_id: int
    packed: bytes


class BlockHead(NamedTuple):
    """A stored block without its bytes: instants of its first and last poll, number of polls."""

    start_ms: int
    end_ms: int
    polls: int
