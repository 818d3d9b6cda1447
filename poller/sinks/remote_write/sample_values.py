"""The values of a poll as eight bytes each, as a sample on the wire has them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from poller.domain.metrics.reading import pack

#: The NaN by which Prometheus knows that a series ended. No other NaN has this meaning.
STALE: Final = struct.pack("<Q", 0x7FF0_0000_0000_0002)
#: The NaN of a value that is not a number.
PLAIN_NAN: Final = struct.pack("<Q", 0x7FF8_0000_0000_0001)


def packed_values(values: Sequence[float]) -> tuple[bytes, ...]:
    """Return the values, with one and the same NaN for all that are no number.

    Infinity is sent as it is: Prometheus stores both, as it does after a scrape.
    """
    pieces: tuple[bytes, ...] = _layout(len(values)).unpack(pack(values))
    if math.isnan(sum(values)):  # also after inf - inf; each value is looked at then
        return tuple(
            PLAIN_NAN if math.isnan(value) else piece
            for value, piece in zip(values, pieces, strict=True)
        )
    return pieces


def packed(value: float) -> bytes:
    """Return one value."""
    return struct.pack("<d", value)


@lru_cache(maxsize=1024)
def _layout(count: int) -> struct.Struct:
    return struct.Struct("8s" * count)
