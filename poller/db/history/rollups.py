"""Roll-ups of polls, made anew in the transaction that moves polls into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from poller.domain.history.block import Block


@dataclass(frozen=True, slots=True)
class Touched:
    """Polls of a target that came new into blocks: the instants of the first and the last one.

    `blocks` are the blocks that were written; they hold these polls and older ones.
    """

    target_id: int
    first_ms: int
    last_ms: int
    blocks: Sequence[Block]


def remake(conn: Connection, touched: Sequence[Touched]) -> None:
    """Make the roll-ups of the touched spans anew."""
