"""Remote write 1.0: `WriteRequest{TimeSeries{Label*, Sample*}}`, a list of series with samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from poller.sinks.remote_write import protobuf_fields, sample_values
from poller.sinks.remote_write.outgoing_poll import Piece

HEADERS: Final = (
    ("Content-Type", "application/x-protobuf"),
    ("Content-Encoding", "snappy"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
)
#: The tag of a sample's instant.
_INSTANT: Final = b"\x10"


def encode(pieces: Iterable[Piece]) -> bytes:
    """Return the request before compression. A bridge stands before the sample of its series."""
    parts: list[bytes] = []
    for piece in pieces:
        poll, first, end = piece
        shape = poll.shape
        if poll.bridges:
            for position, bridge in piece.bridges:
                value = sample_values.packed(bridge.value)
                parts += (shape.heads[position], shape.rows[position], value, _tail(bridge.at_ms))

        # All samples of a poll have one instant: head, labels, value, instant, head, labels, ...
        quads = [_tail(poll.sample.at_ms)] * (4 * piece.samples)
        quads[0::4] = shape.heads[first:end]
        quads[1::4] = shape.rows[first:end]
        quads[2::4] = poll.values[first:end]
        parts += quads
    return b"".join(parts)


def _tail(at_ms: int) -> bytes:
    return _INSTANT + protobuf_fields.instant(at_ms)
