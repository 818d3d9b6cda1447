"""Object identifiers: dotted text at the edges, tuples of integers where they are compared."""

from __future__ import annotations

from collections.abc import Iterable

Oid = tuple[int, ...]


def parse(text: str) -> Oid:
    """Parse `1.3.6.1`, with or without a leading dot. Raises ValueError for other texts."""
    return tuple(map(int, text.removeprefix(".").split(".")))


def text(parts: Iterable[int]) -> str:
    """Return the parts as dotted text."""
    return ".".join(map(str, parts))


def is_valid(text: str) -> bool:
    """Return whether a text is at least two dotted decimal numbers, each below 2**32."""
    parts = text.split(".")
    if len(parts) < 2:
        return False
    return all(map(_is_part, parts))


def _is_part(text: str) -> bool:
    """Return whether a text is a decimal number below 2**32."""
    is_decimal = text.isascii() and text.isdigit()
    return is_decimal and int(text) < 2**32


def covers(root: str, oid: str) -> bool:
    """Return whether `oid` is the root itself or beneath it."""
    return oid == root or oid.startswith(root + ".")
