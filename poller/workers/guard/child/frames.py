"""Frames on the private socket between worker and child: two lengths, a JSON object, and bytes."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct("<II")  # of the JSON object, and of the bytes
#: No device sends more. A child that does is ended.
MAX_BYTES = 32 * 2**20


class BadFrame(ValueError):
    """The data is not a frame, or the frame is too large."""


def pack(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return a frame. Raises BadFrame when it would be too large."""
    text = json.dumps(head, separators=(",", ":")).encode()
    if len(text) + len(body) > MAX_BYTES:
        limit_mb = MAX_BYTES // 2**20
        raise BadFrame(f"more than {limit_mb} MB in one poll")

    lengths = _LENGTHS.pack(len(text), len(body))
    return lengths + text + body


async def read(stream: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """Return object and bytes of the next frame, or None at the end of the stream.

    Raises BadFrame.
    """
    try:
        lengths = await stream.readexactly(_LENGTHS.size)
        text_length, body_length = _LENGTHS.unpack(lengths)
        total = text_length + body_length
        if total > MAX_BYTES:
            raise BadFrame(f"a frame of {total // 2**20} MB")

        text = await stream.readexactly(text_length)
        body = await stream.readexactly(body_length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None

    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("a frame that is no JSON") from error
    if not isinstance(head, dict):
        raise BadFrame("a frame that is no object")
    return head, body
