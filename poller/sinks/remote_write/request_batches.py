"""Divides polls into requests: at most so many samples, and a bounded number of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from poller.sinks.remote_write.outgoing_poll import OutgoingPoll, Piece

#: Bytes of a request before compression. Stores refuse messages of some megabytes.
MOST_BYTES: Final = 2 * 1024 * 1024
#: Bytes of a value and its instant.
_SAMPLE_BYTES: Final = 16


def batches(polls: Iterable[OutgoingPoll], most_samples: int) -> Iterator[list[Piece]]:
    """Yield requests in the order of the polls. A poll that fits into one is not divided."""
    request: list[Piece] = []
    samples = 0
    size = 0
    for piece in _pieces(polls, most_samples):
        piece_samples = piece.samples + len(piece.poll.bridges)
        piece_size = piece_samples * (piece.poll.shape.longest + _SAMPLE_BYTES)
        if request and (samples + piece_samples > most_samples or size + piece_size > MOST_BYTES):
            yield request
            request, samples, size = [], 0, 0
        request.append(piece)
        samples += piece_samples
        size += piece_size
    if request:
        yield request


def _pieces(polls: Iterable[OutgoingPoll], most_samples: int) -> Iterator[Piece]:
    """Yield each poll as one piece, or as several if it is too large."""
    for poll in polls:
        fitting = max(1, MOST_BYTES // (poll.shape.longest + _SAMPLE_BYTES))
        step = max(1, min(most_samples - len(poll.bridges), fitting))
        for first in range(0, poll.samples, step):
            yield Piece(poll, first, min(first + step, poll.samples))
