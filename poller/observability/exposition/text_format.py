"""The text format of Prometheus: the families of one process, and those of several together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from poller.metering import process_metrics
from poller.metering.instruments import Instrument

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family(NamedTuple):
    """A family with its lines. Another process may be of another release: it brings its own."""

    kind: str
    text: str
    lines: list[str]


#: By the name in its TYPE line.
Families = dict[str, Family]


def of_process(process: str, role: str) -> Families:
    """The metrics of this process. Families without a value are left out."""
    labels = {"process": process, "role": role}
    found = {}
    for instrument in process_metrics.INSTRUMENTS:
        lines = _lines(instrument, labels)
        if lines:
            found[exposed_name(instrument)] = Family(instrument.kind, instrument.text, lines)
    return found


def exposed_name(instrument: Instrument) -> str:
    """The name in the TYPE line: that of a counter has its suffix."""
    return f"{instrument.name}_total" if instrument.kind == "counter" else instrument.name


def render(processes: Iterable[Mapping[str, Family]]) -> bytes:
    """All processes together: a family is described once, however many processes have it."""
    merged: Families = {}
    for families in processes:
        for name, family in families.items():
            known = merged.setdefault(name, Family(family.kind, family.text, []))
            known.lines.extend(family.lines)
    parts = []
    for name, family in merged.items():
        parts.append(f"# HELP {name} {family.text}\n# TYPE {name} {family.kind}\n")
        parts.extend(f"{line}\n" for line in family.lines)
    return "".join(parts).encode()


def _lines(instrument: Instrument, process_labels: Mapping[str, str]) -> list[str]:
    lines = []
    for suffix, labels, value in instrument.samples():
        pairs = ",".join(
            f'{name}="{text.translate(_ESCAPED)}"'
            for name, text in {**process_labels, **labels}.items()
        )
        lines.append(f"{instrument.name}{suffix}{{{pairs}}} {_number(value)}")
    return lines


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
