"""Label texts of SNMP values and of row indexes, as snmp_exporter prints them.

`index_text` renders every type of `module_model.INDEX_TYPES`: a new index type is declared there
and rendered here.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

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
#: Types whose real type depends on a subtype number, by that number.
COMBINED: Mapping[str, Mapping[int, str]] = {
    "InetAddress": _INET,
    "InetAddressMissingSize": _INET,
    "LldpPortId": _LLDP,
}
#: An OID has at most 128 parts, so a longer index announces a false length.
_LONGEST_INDEX = 512
#: Types whose octets print as the index of the same type does.
_PRINTED_AS_INDEX = INDEX_TYPES - {"OctetString", "DisplayString"}

_FLOAT_TAG = b"\x9fx\x04"
_DOUBLE_TAG = b"\x9fy\x08"
_INVALID_BYTES = re.compile("[\udc80-\udcff]+")


class IndexText(NamedTuple):
    """The text of one index, the OID parts it used, and the parts left for the next index."""

    text: str
    used: Oid
    rest: Oid


def value_text(value: Value, kind: str, display_hint: str = "") -> str:
    """Return a value as a label text; `kind` and the hint matter for octets only."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        packed = opaque_float(value)
        if packed is None:
            return _octets_text(value, kind, display_hint)
        return _float_text(packed)
    if isinstance(value, float):
        return _float_text(value)
    return str(value)


def opaque_float(octets: bytes) -> float | None:
    """Decode a float that came as the octets of an Opaque; None for other octets."""
    if len(octets) == 7 and octets.startswith(_FLOAT_TAG):
        (number,) = struct.unpack(">f", octets[3:])
    elif len(octets) == 11 and octets.startswith(_DOUBLE_TAG):
        (number,) = struct.unpack(">d", octets[3:])
    else:
        return None

    return float(number)


def _octets_text(octets: bytes, kind: str, display_hint: str) -> str:
    """Return octets by their display hint, by their type, or in hexadecimal."""
    if display_hint and kind in ("", "OctetString"):
        shown = display_hints.apply(display_hint, octets)
        if shown is not None:
            return decode(shown)

    if kind == "DisplayString":
        return decode(octets)
    if kind in _PRINTED_AS_INDEX:
        return index_text(tuple(octets), kind).text
    return _hexadecimal(octets)


def _hexadecimal(octets: bytes) -> str:
    """Return octets as `0x0AFF`; no octets are an empty text."""
    return "0x" + octets.hex().upper() if octets else ""


def _float_text(value: float) -> str:
    """Print the shortest decimal that reads back as the same number, without an exponent.

    A number that fits 32 bits was sent as a 32-bit float and only has to read back as one.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"

    text = _float32_text(value) if _as_float32(value) == value else repr(value)
    return format(Decimal(text), "f").removesuffix(".0")


def _float32_text(value: float) -> str:
    """Return the shortest decimal that reads back as this 32-bit float."""
    text = ""
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if _as_float32(float(text)) == value:
            break

    return text


def _as_float32(value: float) -> float | None:
    """Round to a 32-bit float; None when the number is too large."""
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        return None


def decode(octets: bytes) -> str:
    """Decode UTF-8; each run of invalid bytes becomes one replacement character."""
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
) -> IndexText:
    """Render the first index in `parts`, which is of type `kind`."""
    if kind in COMBINED:
        return _combined_index(parts, kind)
    if kind in ("OctetString", "DisplayString"):
        return _string_index(parts, kind, fixed_size, implied)

    size, render = _FIXED_SIZE_INDEXES.get(kind, (1, _decimal_index))
    used, rest = _split_index(parts, size)
    if kind == "EnumAsInfo" and enum_values and used[0] in enum_values:
        return IndexText(enum_values[used[0]], used, rest)

    return IndexText(render(used), used, rest)


def _combined_index(parts: Oid, kind: str) -> IndexText:
    """Render an index whose first part is the number of its real type, usually before a length."""
    missing_size = kind == "InetAddressMissingSize"
    head, tail = _split_index(parts, 1 if missing_size else 2)

    real_kind = COMBINED[kind].get(head[0])
    if real_kind is not None:
        text, used, rest = index_text(tail, real_kind)
        return IndexText(text, head + used, rest)

    if missing_size:
        return _string_index(parts, "OctetString", 0, implied=True)
    return _string_index(parts, "OctetString", head[1] + 2, implied=False)


def _string_index(
    parts: Oid,
    kind: str,
    fixed_size: int,
    implied: bool,
) -> IndexText:
    """Render octets: all parts if implied, else `fixed_size`, else the count in the first part."""
    prefix: Oid = ()
    length = len(parts) if implied else fixed_size
    if length == 0:
        prefix, parts = _split_index(parts, 1)
        length = prefix[0]

    content, rest = _split_index(parts, min(length, _LONGEST_INDEX))
    octets = bytes(part & 0xFF for part in content)
    text = decode(octets) if kind == "DisplayString" else _hexadecimal(octets)
    return IndexText(text, prefix + content, rest)


def _split_index(parts: Oid, count: int) -> tuple[Oid, Oid]:
    """Split off the first `count` parts. Missing parts are 0: some routers omit trailing zeros."""
    head = parts[:count]
    zeros = (0,) * (count - len(head))
    return head + zeros, parts[count:]


def _decimal_index(parts: Oid) -> str:
    """Return an index of one number."""
    return str(parts[0])


def _mac_index(parts: Oid) -> str:
    """Return an index as `02:FC:00:00:00:01`."""
    return ":".join(f"{part:02X}" for part in parts)


def _ipv4_index(parts: Oid) -> str:
    """Return an index as `192.0.2.7`."""
    return ".".join(map(str, parts))


def _ipv6_index(parts: Oid) -> str:
    """Return an index as eight groups, `2001:0DB8:...`, without abbreviation."""
    high_parts = parts[::2]
    low_parts = parts[1::2]
    pairs = zip(high_parts, low_parts, strict=True)
    groups = [f"{high:02X}{low:02X}" for high, low in pairs]
    return ":".join(groups)


#: Parts and text of the index types of a fixed size; every other type is one decimal number.
_FIXED_SIZE_INDEXES = {
    "PhysAddress48": (6, _mac_index),
    "InetAddressIPv4": (4, _ipv4_index),
    "InetAddressIPv6": (16, _ipv6_index),
}
