"""SNMP value types as Python classes: SNMP has more integer and string types than Python.

Plain `int` is INTEGER, plain `bytes` OCTET STRING, `float` a number in an Opaque, None is NULL.
A link that is not `exact` returns plain values, where an `int` may be any of the number types.
"""

from __future__ import annotations

#: A value as an engine returns it.
Value = int | float | str | bytes | None


class Counter32(int):
    __slots__ = ()


class Counter64(int):
    __slots__ = ()


class Gauge32(int):
    """Gauge32 or Unsigned32: both have the same tag on the wire."""

    __slots__ = ()


class TimeTicks(int):
    """Hundredths of a second."""

    __slots__ = ()


class Oid(str):
    """Dotted decimal, without a leading dot."""

    __slots__ = ()


class IpAddress(str):
    """Dotted quad; empty where the agent sent no address."""

    __slots__ = ()


class Opaque(bytes):
    """The octets of an Opaque value that holds neither a float nor a double."""

    __slots__ = ()


_NAMES: dict[type, str] = {
    int: "Integer32",
    bytes: "OctetString",
    float: "Float",
    type(None): "Null",
    str: "String",  # an Oid or an IpAddress from a link that is not exact
}

#: Bits of each counter type; only values from an exact link have one.
COUNTER_WIDTHS: dict[type, int] = {Counter32: 32, Counter64: 64}


def type_name(value: object) -> str:
    """The SNMP name of a value's type: `Counter64`, `OctetString`, ..."""
    kind = type(value)
    return _NAMES.get(kind, kind.__name__)
