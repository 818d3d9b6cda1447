"""The few parts of the protobuf wire format that remote write needs."""

from __future__ import annotations

from typing import Final

#: Milliseconds since 1970 that six bytes of a varint hold: until the year 2109.
MOST_MS: Final = 2**42 - 1


def varint(number: int) -> bytes:
    """Return a number from 0 on as a varint."""
    if number < 0x80:
        return bytes((number,))
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def instant(at_ms: int) -> bytes:
    """Return an instant as a varint of exactly six bytes, so that every sample has one length.

    Small numbers are padded, which every decoder takes. Raises ValueError outside 1970 to 2109.
    """
    if not 0 <= at_ms <= MOST_MS:
        raise ValueError(f"{at_ms} ms is no instant between 1970 and 2109")
    return bytes(
        (
            at_ms & 0x7F | 0x80,
            at_ms >> 7 & 0x7F | 0x80,
            at_ms >> 14 & 0x7F | 0x80,
            at_ms >> 21 & 0x7F | 0x80,
            at_ms >> 28 & 0x7F | 0x80,
            at_ms >> 35,
        )
    )


def delimited(tag: int, content: bytes) -> bytes:
    """Return a field with a length: text, bytes, a message or packed numbers."""
    return b"%c%b%b" % (tag, varint(len(content)), content)


def text(tag: int, content: str) -> bytes:
    """Return a text field. Half a character pair, which UTF-8 has not, becomes `?`."""
    return delimited(tag, content.encode("utf-8", "replace"))
