"""The module language: what to read from an agent and how it becomes metrics, as snmp_exporter writes it.

These are plain values; `loading` makes them from YAML and `mapping` interprets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Metric types whose value is the number itself.
NUMERIC = frozenset({"gauge", "counter", "Float", "Double"})
#: Metric types whose value is a text: the sample is 1 and the text is a label.
TEXT = frozenset(
    {
        "DisplayString",
        "OctetString",
        "PhysAddress48",
        "InetAddressIPv4",
        "InetAddressIPv6",
        "InetAddress",
        "InetAddressMissingSize",
        "LldpPortId",
    }
)
#: Metric types that say what something is, not how it does: their texts need not be read every time.
LASTING = TEXT | {"EnumAsInfo"}
METRIC_TYPES = NUMERIC | TEXT | {"EnumAsInfo", "EnumAsStateSet", "Bits", "DateAndTime"}
LOOKUP_TYPES = NUMERIC | TEXT | {"EnumAsInfo", "Bits"}
INDEX_TYPES = frozenset(
    {
        "Integer32",
        "Integer",
        "gauge",
        "counter",
        "PhysAddress48",
        "OctetString",
        "DisplayString",
        "InetAddressIPv4",
        "InetAddressIPv6",
        "InetAddress",
        "InetAddressMissingSize",
        "LldpPortId",
        "EnumAsInfo",
    }
)


@dataclass(frozen=True, slots=True)
class Index:
    """One part of a row's index, taken from the OID, left to right."""

    labelname: str
    type: str
    fixed_size: int = 0
    implied: bool = False
    enum_values: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A label whose text another column holds under the same index. Without `labels` it removes a label."""

    labelname: str
    labels: tuple[str, ...] = ()
    oid: str = ""
    type: str = ""
    enum_values: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    oid: str
    type: str
    help: str = ""
    indexes: tuple[Index, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    enum_values: Mapping[int, str] = field(default_factory=dict)
    scale: float = 0.0  # 0: not scaled, as in snmp_exporter
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    walk: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
