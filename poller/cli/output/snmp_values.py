"""SNMP values for people and programs: name, type, and meaning where a module has it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from poller.cli.output import render
from poller.cli.output.columns import one_line
from poller.collectors.snmp.metrics import label_text, octet_dates
from poller.collectors.snmp.modules.module_model import Metric
from poller.collectors.snmp.modules.oid_names import OidNames
from poller.collectors.snmp.wire.value_types import Oid, TimeTicks, Value, type_name
from poller.presentation import formatting

#: Time between two updates of the counter on stderr.
PROGRESS_EVERY_S = 0.5

#: Metric types that define how octets are printed.
_OCTETS = frozenset({"PhysAddress48", "InetAddressIPv4", "InetAddressIPv6"})


@dataclass(frozen=True, slots=True)
class Line:
    """One printed value: `value` is for programs, `text` is for people."""

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
        return asdict(self)


def line(oid: str, value: Value, names: OidNames, numeric: bool = False) -> Line:
    """The line of one value. With `numeric`, names and meanings are not translated."""
    if numeric:
        name = oid
        text = _text(value, None, None)
    else:
        name, place = names.name_of(oid)
        text = _text(value, place.metric if place else None, names)

    return Line(oid=oid, name=name, type=type_name(value), value=_plain(value), text=text)


class ValuePrinter:
    """Prints values as they arrive: sentences on a terminal, cells in a pipe, JSON for programs.

    With output in a pipe and stderr on a terminal, a counter on stderr shows the progress.
    """

    def __init__(self, names: OidNames, numeric: bool, as_json: bool) -> None:
        self._names = names
        self._numeric = numeric
        self._as_json = as_json
        self._for_people = sys.stdout.isatty()
        self._progress = sys.stderr.isatty() and not self._for_people and not render.accessible()
        self._started_mono = time.monotonic()
        self._shown_mono = self._started_mono
        self.printed = 0

    def line(self, oid: str, value: Any) -> None:
        """Print one value."""
        made = line(oid, value, self._names, self._numeric)
        if self._as_json:
            render.echo(json.dumps(made.fields(), ensure_ascii=False))
        elif self._for_people or render.accessible():
            render.echo(made.for_people())
        else:
            if not self.printed:
                render.echo("\t".join(("oid", "name", "type", "value")))
            render.echo("\t".join(made.cells()))

        self.printed += 1

    def page(self, rows: Sequence[tuple[str, Any]]) -> None:
        """Print the values of one response and flush: a program in the pipe reads them at once."""
        for oid, value in rows:
            self.line(oid, value)

        sys.stdout.flush()
        now = time.monotonic()
        if self._progress and now - self._shown_mono > PROGRESS_EVERY_S:
            self._shown_mono = now
            sys.stderr.write(f"\r{self.printed:,} values ")

    def end(self, packets: int) -> None:
        """Print the totals on stderr."""
        if self._progress and self._shown_mono != self._started_mono:
            sys.stderr.write("\r")
        took_s = time.monotonic() - self._started_mono
        values = formatting.counted(self.printed, "value")
        render.note(f"{values} in {formatting.counted(packets, 'packet')}, {took_s:.1f} s")


def _plain(value: Value) -> int | float | str | None:
    """The value for JSON: readable octets as text, other octets in hexadecimal."""
    if isinstance(value, bytes):
        text = _readable(value)
        return _hex(value) if text is None else text
    if value is None or isinstance(value, bool | int | float):
        return value

    return str(value)


def _text(value: Value, metric: Metric | None, names: OidNames | None) -> str:
    """The value for people: enumerations, OIDs and ticks are translated."""
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
    """Octets by their metric type, as text if they are text, else in hexadecimal."""
    kind = metric.type if metric else ""
    if kind in _OCTETS:
        return label_text.value_text(value, kind)
    if kind == "DateAndTime":
        seconds = octet_dates.date_and_time(value)
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")

    text = _readable(value)
    return _hex(value) if text is None else one_line(text)


def _hex(value: bytes) -> str:
    return "0x" + value.hex().upper()


def _readable(value: bytes) -> str | None:
    """The octets as text, or None if they are not printable text."""
    try:
        text = value.removesuffix(b"\0").decode()
    except UnicodeDecodeError:
        return None

    printable = all(letter.isprintable() or letter in "\r\n\t" for letter in text)
    return text if printable else None


def _ticks(hundredths: int) -> str:
    """`3d 4:05:06.07`, from hundredths of a second."""
    seconds, rest = divmod(hundredths, 100)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02}:{seconds:02}.{rest:02}"
    return f"{days}d {clock}" if days else clock
