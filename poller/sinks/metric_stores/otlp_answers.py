"""Reads what a receiver of OTLP answers to a good request: how many data points it left out."""

from __future__ import annotations

import json
from typing import Any


def rejected(body: bytes, sent: int) -> tuple[int, str]:
    """Return how many of the sent data points a receiver left out of a good request, and why.

    The body is an ExportMetricsServiceResponse in protobuf or JSON; any other text is ignored.
    """
    is_json = body.lstrip()[:1] == b"{"
    points, reason = _rejected_json(body) if is_json else _rejected_protobuf(body)
    return min(max(0, points), sent), reason


def _rejected_protobuf(body: bytes) -> tuple[int, str]:
    partial = _fields(body).get(1)
    if not isinstance(partial, bytes):
        return 0, ""
    fields = _fields(partial)
    points, message = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(points, int) or not isinstance(message, bytes):
        return 0, ""
    signed = points - 2**64 if points >= 2**63 else points
    return signed, message.decode("utf-8", "replace")


def _rejected_json(body: bytes) -> tuple[int, str]:
    try:
        partial = json.loads(body).get("partialSuccess") or {}
        return int(partial.get("rejectedDataPoints") or 0), str(partial.get("errorMessage") or "")
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        return 0, ""


def _fields(message: bytes) -> dict[int, Any]:
    """Return the varints and texts of a message by their numbers; {} for what is no message."""
    found: dict[int, Any] = {}
    at = 0
    try:
        while at < len(message):
            tag, at = _varint(message, at)
            number, at = _varint(message, at)
            if tag & 7 == 2:
                found[tag >> 3] = message[at : at + number]
                at += number
            elif tag & 7 == 0:
                found[tag >> 3] = number
            else:
                return {}
    except IndexError:
        return {}
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise IndexError
