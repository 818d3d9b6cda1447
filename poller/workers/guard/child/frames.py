"""How do worker and child talk? Over a private socket, in frames: two lengths, a JSON object, and bytes behind it."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct("<II")  # of the JSON, and of the bytes
#: No device answers more; a child that does is ended.
MOST_BYTES = 32 * 2**20


class BadFrame(ValueError):
    """What came is no frame of ours, or too large to be one."""


def pack(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Raises BadFrame when it is too large."""
    text = json.dumps(head, separators=(",", ":")).encode()
    if len(text) + len(body) > MOST_BYTES:
        raise BadFrame(f"more than {MOST_BYTES // 2**20} MB in one poll")
    return _LENGTHS.pack(len(text), len(body)) + text + body


async def read(stream: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at the end. Raises BadFrame."""
    try:
        text_length, body_length = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
        if text_length + body_length > MOST_BYTES:
            raise BadFrame(f"a frame of {(text_length + body_length) // 2**20} MB")
        text, body = await stream.readexactly(text_length), await stream.readexactly(body_length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("a frame that is no JSON") from error
    if not isinstance(head, dict):
        raise BadFrame("a frame that is no object")
    return head, body
