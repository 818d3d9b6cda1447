"""One SNMP value as a person reads it: its name, its type, and its meaning where a module knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from poller.cli.output.columns import one_line
from poller.collectors.snmp.metrics import label_text, octet_dates
from poller.collectors.snmp.modules.module_model import Metric
from poller.collectors.snmp.modules.oid_names import OidNames
from poller.collectors.snmp.wire.value_types import Oid, TimeTicks, Value, type_name

#: Metric types that say how octets are to be shown.
_OCTETS = frozenset({"PhysAddress48", "InetAddressIPv4", "InetAddressIPv6"})


class Line(NamedTuple):
    """`value` is what a program may want; `text` is for people."""

    oid: str
    name: str
    type: str
    value: int | float | str | None
    text: str

    def for_people(self) -> str:
        return f"{self.name} = {self.type}: {self.text}"

    def cells(self) -> Sequence[str]:
        return (self.oid, self.name, self.type, self.text)

    def fields(self) -> dict[str, Any]:
        return dict(zip(("oid", "name", "type", "value", "text"), self, strict=True))


def line(oid: str, value: Value, names: OidNames, numeric: bool = False) -> Line:
    """With `numeric` nothing is translated: neither names nor meanings."""
    name, known = names.name_of(oid)
    if numeric:
        return Line(oid, oid, type_name(value), _plain(value), _text(value, None, None))
    return Line(
        oid,
        name,
        type_name(value),
        _plain(value),
        _text(value, known.metric if known else None, names),
    )


def _plain(value: Value) -> int | float | str | None:
    """For JSON: octets that are text as text, others in hexadecimal."""
    if isinstance(value, bytes):
        return _readable(value) if _readable(value) is not None else "0x" + value.hex().upper()
    if isinstance(value, bool) or value is None or isinstance(value, int | float):
        return value
    return str(value)


def _text(value: Value, metric: Metric | None, names: OidNames | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return _octets(value, metric)
    if isinstance(value, TimeTicks):
        return f"{int(value)} ({_ticks(int(value))})"
    if isinstance(value, Oid):
        return names.name_of(str(value))[0] if names else str(value)
    if isinstance(value, int) and metric is not None and value in metric.enum_values:
        return f"{metric.enum_values[value]} ({int(value)})"
    return one_line(label_text.value_text(value, ""))


def _octets(value: bytes, metric: Metric | None) -> str:
    kind = metric.type if metric else ""
    if kind in _OCTETS:
        return label_text.value_text(value, kind)
    if kind == "DateAndTime" and (when := octet_dates.date_and_time(value)) is not None:
        from datetime import UTC, datetime

        return datetime.fromtimestamp(when, UTC).isoformat().replace("+00:00", "Z")
    text = _readable(value)
    return one_line(text) if text is not None else "0x" + value.hex().upper()


def _readable(value: bytes) -> str | None:
    """As text, if that is what it is."""
    try:
        text = value.removesuffix(b"\0").decode()
    except UnicodeDecodeError:
        return None
    return text if all(letter.isprintable() or letter in "\r\n\t" for letter in text) else None


def _ticks(hundredths: int) -> str:
    seconds, rest = divmod(hundredths, 100)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days}d " if days else "") + f"{hours}:{minutes:02}:{seconds:02}.{rest:02}"
