"""SNMP values and index parts as label texts, by snmp_exporter's rules: what it prints, we print."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from decimal import Decimal

from poller.collectors.snmp.metrics import display_hints
from poller.collectors.snmp.modules.module_model import INDEX_TYPES
from poller.collectors.snmp.oid import Oid
from poller.collectors.snmp.wire.value_types import Value

_INET = {1: "InetAddressIPv4", 2: "InetAddressIPv6"}
_LLDP = {
    1: "DisplayString",
    2: "DisplayString",
    3: "PhysAddress48",
    5: "DisplayString",
    7: "DisplayString",
}
#: Types that are several in one: the number before the value says which.
COMBINED: Mapping[str, Mapping[int, str]] = {
    "InetAddress": _INET,
    "InetAddressMissingSize": _INET,
    "LldpPortId": _LLDP,
}
#: An OID has at most 128 parts; a length beyond this is a lie, not an index.
_LONGEST_INDEX = 512
#: Above this a float64 cannot count by ones; snmp_exporter takes counters modulo this.
FLOAT_MANTISSA = 2**53
_LARGEST_INT = 2**63
_FLOAT_TAG, _DOUBLE_TAG = b"\x9fx\x04", b"\x9fy\x08"
_INVALID_BYTES = re.compile("[\udc80-\udcff]+")
_DECIMAL = re.compile(r"[+-]?[0-9]+")


def number(value: Value) -> int | float:
    """The numeric meaning of a value: text that is no number and plain octets are 0."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        return _opaque(value) or 0
    return integer(value)


def integer(value: Value) -> int:
    """What a value is as the index of a row: floats and octets have no such meaning, and are 0."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else 0


def state(value: Value) -> int:
    """What a value is as the number of a state."""
    found = number(value)
    if isinstance(found, int):
        return found % FLOAT_MANTISSA if found >= FLOAT_MANTISSA else found
    return (
        int(found) if abs(found) < _LARGEST_INT else -_LARGEST_INT
    )  # Go's, also for what is not a number


def _opaque(octets: bytes) -> float | None:
    """Floats travel as Opaque, which the engine may hand over as octets; None when it is none."""
    if len(octets) == 7 and octets.startswith(_FLOAT_TAG):
        return float(struct.unpack(">f", octets[3:])[0])
    if len(octets) == 11 and octets.startswith(_DOUBLE_TAG):
        return float(struct.unpack(">d", octets[3:])[0])
    return None


def value_text(value: Value, kind: str, display_hint: str = "") -> str:
    """A value as a label text; `kind` and the hint matter for octets only."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        packed = _opaque(value)
        return _octets_text(value, kind, display_hint) if packed is None else _float_text(packed)
    return _float_text(value) if isinstance(value, float) else str(value)


def _octets_text(octets: bytes, kind: str, display_hint: str) -> str:
    if display_hint and kind in ("", "OctetString"):
        shown = display_hints.apply(display_hint, octets)
        if shown is not None:
            return decode(shown)
    if kind == "DisplayString":
        return decode(octets)
    if kind not in _LIKE_INDEXES:  # also for what snmp_exporter crashes on
        return "0x" + octets.hex().upper() if octets else ""
    return index_text(tuple(octets), kind)[0]


def _float_text(value: float) -> str:
    """The shortest that means the same, without an exponent. One that fits 32 bits was sent as such."""
    if not math.isfinite(value):
        return "NaN" if value != value else f"{value:+}".title()
    text = repr(value)
    if _as_float32(value) == value:
        text = next(
            t for digits in range(1, 18) if _as_float32(float(t := f"{value:.{digits}g}")) == value
        )
    return format(Decimal(text), "f").removesuffix(".0")


def _as_float32(value: float) -> float | None:
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        return None


def decode(octets: bytes) -> str:
    """UTF-8; each run of invalid bytes becomes one replacement character."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return _INVALID_BYTES.sub("�", octets.decode(errors="surrogateescape"))


def index_text(
    parts: Oid,
    kind: str,
    fixed_size: int = 0,
    implied: bool = False,
    enum_values: Mapping[int, str] | None = None,
) -> tuple[str, Oid, Oid]:
    """The text of the first index in `parts`, the parts it used, and the parts left for the next."""
    if kind in COMBINED:
        return _combined(parts, kind)
    if kind in ("OctetString", "DisplayString"):
        return _string(parts, kind, fixed_size, implied)
    size, render = _FIXED.get(kind, (1, _decimal))
    used, rest = _split(parts, size)
    if kind == "EnumAsInfo":
        return (enum_values or {}).get(used[0], str(used[0])), used, rest
    return render(used), used, rest


def _combined(parts: Oid, kind: str) -> tuple[str, Oid, Oid]:
    missing_size = kind == "InetAddressMissingSize"
    head, tail = _split(parts, 1 if missing_size else 2)
    if head[0] in COMBINED[kind]:
        text, used, rest = index_text(tail, COMBINED[kind][head[0]])
        return text, head + used, rest
    if missing_size:
        return _string(parts, "OctetString", 0, implied=True)
    return _string(parts, "OctetString", head[1] + 2, implied=False)


def _string(parts: Oid, kind: str, fixed_size: int, implied: bool) -> tuple[str, Oid, Oid]:
    prefix: Oid = ()
    length = len(parts) if implied else fixed_size
    if length == 0:
        prefix, parts = _split(parts, 1)
        length = prefix[0]
    content, rest = _split(parts, min(length, _LONGEST_INDEX))
    octets = bytes(part & 0xFF for part in content)
    if kind == "DisplayString":
        return decode(octets), prefix + content, rest
    return ("0x" + octets.hex().upper() if octets else ""), prefix + content, rest


def _split(parts: Oid, count: int) -> tuple[Oid, Oid]:
    """The first `count` parts (missing ones are 0: some routers leave trailing zeros away) and the rest."""
    head = parts[:count]
    return head + (0,) * (count - len(head)), parts[count:]


def _decimal(parts: Oid) -> str:
    return str(parts[0])


def _mac(parts: Oid) -> str:
    return ":".join(f"{part:02X}" for part in parts)


def _ipv4(parts: Oid) -> str:
    return ".".join(map(str, parts))


def _ipv6(parts: Oid) -> str:
    return ":".join(
        f"{high:02X}{low:02X}" for high, low in zip(parts[::2], parts[1::2], strict=True)
    )


#: Types whose octets are read like those of an index; a number is the first of them.
_LIKE_INDEXES = frozenset(INDEX_TYPES - {"OctetString", "DisplayString"})
_FIXED = {"PhysAddress48": (6, _mac), "InetAddressIPv4": (4, _ipv4), "InetAddressIPv6": (16, _ipv6)}
