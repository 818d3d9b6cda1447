"""Finds the series that a store refuses: a request is halved until only they are left.

One bad series costs only itself. A whole poll that is refused, such as one that is too old, is
known by a few probes, so that its series are not tried one by one. A store that refuses everything
is known by many refusals in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from poller.sinks.remote_write.outgoing_poll import Piece

#: Series of a refused poll that are tried alone. If all of them are refused, the poll is.
PROBES: Final = 5
#: Smaller pieces are halved without probes.
_SMALL: Final = 3 * PROBES

#: Refusals in a row after which a refused part is dropped as it is, until a part is stored again.
MOST_REFUSALS: Final = 64

#: Sends pieces in one request. Returns "" or why the store refuses them. Raises StoreUnavailable.
Send = Callable[[Sequence[Piece]], str]
#: Counts a refused piece, and says why.
Drop = Callable[[Piece, str], None]


class _Sender:
    """Sends pieces, and counts the refusals in a row."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._refusals = 0

    @property
    def is_hopeless(self) -> bool:
        return self._refusals >= MOST_REFUSALS

    def __call__(self, pieces: Sequence[Piece]) -> str:
        reason = self._send(pieces)
        self._refusals = self._refusals + 1 if reason else 0
        return reason


def deliver(pieces: Sequence[Piece], send: Send, drop: Drop) -> None:
    """Send the pieces in order, and drop what the store refuses. Raises StoreUnavailable.

    A part may be sent twice, which changes nothing in the store.
    """
    sender = _Sender(send)
    waiting: list[Sequence[Piece]] = [pieces]
    probed: set[int] = set()
    while waiting:
        part = waiting.pop()
        reason = sender(part)
        if not reason:
            continue
        if sender.is_hopeless:
            for piece in part:
                drop(piece, reason)
            continue
        if len(part) > 1:
            middle = len(part) // 2
            waiting += (part[middle:], part[:middle])
            continue

        piece = part[0]
        is_new = id(piece.poll) not in probed
        probed.add(id(piece.poll))
        if piece.samples == 1 or (is_new and _is_refused_as_a_whole(piece, sender)):
            drop(piece, reason)
        else:
            first, second = piece.halves()
            waiting += ([second], [first])


def _is_refused_as_a_whole(piece: Piece, send: Send) -> bool:
    if piece.samples < _SMALL:
        return False
    last = piece.samples - 1
    for number in range(PROBES):
        position = piece.first + last * number // (PROBES - 1)
        if not send([piece.single(position)]):
            return False
    return True
