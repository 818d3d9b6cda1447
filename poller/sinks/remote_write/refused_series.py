"""Finds the series that a store refuses: a request is halved until only they are left.

One bad series costs only itself. A whole poll that is refused, such as one that is too old, is
known by a few probes, so that its series are not tried one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from poller.sinks.remote_write.outgoing_poll import Piece

#: Series of a refused poll that are tried alone. If all of them are refused, the poll is.
PROBES: Final = 5
#: Smaller pieces are halved without probes.
_SMALL: Final = 3 * PROBES

#: Sends pieces in one request. Returns "" or why the store refuses them. Raises StoreUnavailable.
Send = Callable[[Sequence[Piece]], str]
#: Counts a refused piece, and says why.
Drop = Callable[[Piece, str], None]


def deliver(pieces: Sequence[Piece], send: Send, drop: Drop) -> None:
    """Send the pieces in order, and drop what the store refuses. Raises StoreUnavailable.

    A part may be sent twice, which changes nothing in the store.
    """
    waiting: list[Sequence[Piece]] = [pieces]
    probed: set[int] = set()
    while waiting:
        part = waiting.pop()
        reason = send(part)
        if not reason:
            continue
        if len(part) > 1:
            middle = len(part) // 2
            waiting += (part[middle:], part[:middle])
            continue

        piece = part[0]
        is_new = id(piece.poll) not in probed
        probed.add(id(piece.poll))
        if piece.samples == 1 or (is_new and _is_refused_as_a_whole(piece, send)):
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
