"""The module language: what to read from an agent and how it becomes metrics, as snmp_exporter writes it.

These are plain values; `loading` makes them from YAML and `mapping` interprets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
DATES = frozenset({"DateAndTime", "ParseDateAndTime", "NTPTimeStamp"})
#: Those with a meaning. snmp_exporter takes any other word for a type of text, and so do we.
METRIC_TYPES = NUMERIC | TEXT | DATES | {"EnumAsInfo", "EnumAsStateSet", "Bits"}
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
    display_hint: str = ""
    enum_values: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extract:
    """One way to take a number out of a text: `expression` (compiled) must match it, `value` is made of its groups."""

    expression: Any
    value: str = "$1"


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    oid: str
    type: str
    help: str = ""
    indexes: tuple[Index, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    #: By the suffix of the metric's name; of each, the first that gives a number counts.
    extracts: Mapping[str, tuple[Extract, ...]] = field(default_factory=dict)
    datetime_pattern: str = ""
    enum_values: Mapping[int, str] = field(default_factory=dict)
    display_hint: str = ""
    scale: float = 0.0  # 0: not scaled, as in snmp_exporter
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Filter:
    """Of the columns `targets`, only rows are read whose value in column `oid` matches one of the expressions."""

    oid: str
    targets: tuple[str, ...] = ()
    expressions: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class WalkParams:
    """How a module asks to be read. None: it says nothing, so that the target's options count."""

    max_repetitions: int | None = None
    retries: int | None = None
    timeout_s: float | None = None
    allow_nonincreasing_oids: bool = False


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """How a device is read in the end: by its modules, its target's options and our defaults."""

    max_repetitions: int
    retries: int
    timeout_s: float
    allow_nonincreasing_oids: bool = False


#: What a module asks for that asks for nothing special.
PLAIN = WalkParams()


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    walk: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    filters: tuple[Filter, ...] = ()
    walk_params: WalkParams = PLAIN
    #: Of the protocol, where the file says so: in the flat format a module does. 0: it does not.
    version: int = 0
