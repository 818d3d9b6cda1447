"""What a value is, by its Python class: SNMP has more integers and more strings than Python.

Plain `int` is INTEGER, plain `bytes` OCTET STRING, `float` a number that came as Opaque, None is NULL.
A link that was not told to be `exact` gives plain values: then an `int` may be any of the numbers.
"""

from __future__ import annotations

#: A value that an engine hands over: one of the classes below or a plain Python value.
Value = int | float | str | bytes | None


class Counter32(int):
    __slots__ = ()


class Counter64(int):
    __slots__ = ()


class Gauge32(int):
    """Unsigned32, too: on the wire they are one."""

    __slots__ = ()


class TimeTicks(int):
    """Hundredths of a second."""

    __slots__ = ()


class Oid(str):
    """Dotted decimal, without a leading dot."""

    __slots__ = ()


class IpAddress(str):
    """Dotted quad; empty where the agent gave none."""

    __slots__ = ()


class Opaque(bytes):
    """What it wraps was not recognised as a number."""

    __slots__ = ()


_NAMES: dict[type, str] = {
    int: "Integer32",
    bytes: "OctetString",
    float: "Float",
    type(None): "Null",
    str: "String",  # an Oid or an IpAddress, from a link that is not exact
}

#: Bits of a counter; other types have none.
_WIDTHS: dict[type, int] = {Counter32: 32, Counter64: 64}


def type_name(value: object) -> str:
    """`Counter64`, `OctetString`, ...: the SNMP name of a value's type."""
    return _NAMES.get(type(value), type(value).__name__)


def width(value: object) -> int:
    """32 or 64 for a counter that came from an exact link, 0 for all else."""
    return _WIDTHS.get(type(value), 0)
