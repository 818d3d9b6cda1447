"""Object identifiers: dotted text at the edges, tuples of integers where they are compared."""

from __future__ import annotations

from collections.abc import Iterable

Oid = tuple[int, ...]


def parse(text: str) -> Oid:
    """`1.3.6.1` (a leading dot is allowed) to a tuple; ValueError if it is not an OID."""
    return tuple(map(int, text.removeprefix(".").split(".")))


def text(parts: Iterable[int]) -> str:
    return ".".join(map(str, parts))


def is_valid(text: str) -> bool:
    """Dotted decimal numbers that fit SNMP: at least two, each below 2**32."""
    parts = text.split(".")
    return len(parts) >= 2 and all(
        part.isascii() and part.isdigit() and int(part) < 2**32 for part in parts
    )


def covers(root: str, oid: str) -> bool:
    """Is `oid` the root itself or beneath it?"""
    return oid == root or oid.startswith(root + ".")
