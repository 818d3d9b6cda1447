"""The module language of snmp_exporter as plain values: what to read, and how it becomes metrics.

`module_parser` makes these values from YAML, `metrics.mapping` interprets them. The types of
metrics and indexes are declared here; `metrics.label_text` renders indexes and texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Metric types whose value is the number itself.
NUMERIC = frozenset({"gauge", "counter", "Float", "Double"})
#: Metric types whose value is a text: the sample is 1 and the text is a label. snmp_exporter and
#: this collector treat every unknown type as a text, too.
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
#: Metric types without a number: their texts last, so a poll of the numbers skips them.
LASTING = TEXT | {"EnumAsInfo"}
DATES = frozenset({"DateAndTime", "ParseDateAndTime", "NTPTimeStamp"})
#: Types of an index part; `label_text.index_text` renders each of them.
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
    """A label whose text is in another column under the same index.

    A lookup without `labels` removes the label of its name.
    """

    labelname: str
    labels: tuple[str, ...] = ()
    oid: str = ""
    type: str = ""
    display_hint: str = ""
    enum_values: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extract:
    """A number taken out of a text: `expression` (compiled) must match, `value` uses its groups."""

    expression: Any
    value: str = "$1"


@dataclass(frozen=True, slots=True)
class Metric:
    """One column or scalar, and the series made from it."""

    name: str
    oid: str
    type: str
    help: str = ""
    indexes: tuple[Index, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    #: By the suffix of the exposed name; the first extract that finds a number counts.
    extracts: Mapping[str, tuple[Extract, ...]] = field(default_factory=dict)
    datetime_pattern: str = ""
    enum_values: Mapping[int, str] = field(default_factory=dict)
    display_hint: str = ""
    #: 0 means no scaling, as in snmp_exporter.
    scale: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Filter:
    """Limits the columns `targets` to rows whose value in column `oid` matches an expression."""

    oid: str
    targets: tuple[str, ...] = ()
    expressions: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class WalkParams:
    """How a module asks to be read. None leaves the choice to the target's options."""

    max_repetitions: int | None = None
    retries: int | None = None
    timeout_s: float | None = None
    allow_nonincreasing_oids: bool = False


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """How a device is read, as decided from the options, the modules and the defaults."""

    max_repetitions: int
    retries: int
    timeout_s: float
    allow_nonincreasing_oids: bool = False


_DEFAULT_PARAMS = WalkParams()


@dataclass(frozen=True, slots=True)
class Module:
    """A named group of metrics, with the subtrees (`walk`) and OIDs (`get`) they need."""

    name: str
    walk: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    filters: tuple[Filter, ...] = ()
    walk_params: WalkParams = _DEFAULT_PARAMS
    #: Protocol version, which only a module of the flat format names; 0 for none.
    version: int = 0
