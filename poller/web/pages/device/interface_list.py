"""The interfaces of a device as people know them: name, alias, status, speed, traffic, faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.inventory import duration
from poller.domain.series import line_figures
from poller.domain.series.device_interfaces import Counted, Interface
from poller.domain.series.line_figures import LineFigures
from poller.presentation import formatting
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.history import old_values
from poller.service.history.device_measures import InterfaceRow, Rows
from poller.web.pages.device import plot_figures, plots, range_plot
from poller.web.pages.device.plots import Window

_NONE = formatting.NOT_MEASURED
_SWITCHED_OFF = "‖"
_UP = {True: "up", False: "down"}
_BUSY = 0.8


@dataclass(frozen=True, slots=True)
class DirectionCells:
    """Traffic of one direction."""

    last: str
    p95: str
    highest: str
    utilisation: str  # of the 95th percentile


@dataclass(frozen=True, slots=True)
class InterfaceItem:
    """One row of the table."""

    key: str
    target: str
    name: str
    alias: str
    status: str
    tone: str
    age: str  # of an old status, or ""
    speed: str
    receives: DirectionCells
    sends: DirectionCells
    errors: str
    discards: str
    errors_tone: str
    discards_tone: str
    picture: str


@dataclass(frozen=True, slots=True)
class InterfaceList:
    """A page of interfaces. `read` says how the history was read."""

    items: Sequence[InterfaceItem]
    total: int
    names_targets: bool
    read: str
    points: str  # the time of the points that the last one and the 95th percentile are of
    old: str  # what is said of values that are not of now, or ""


def build_view(found: Rows[InterfaceRow], window: Window, now_ms: int) -> InterfaceList:
    """Return the view of a page of interfaces."""
    step = f"means of {duration.format_ms(window.step_ms)}" if window.step_ms else "single polls"
    return InterfaceList(
        items=[_item(row, window, now_ms) for row in found.rows],
        total=found.total,
        names_targets=found.targets > 1,
        read=found.plan.sentence(),
        points=step,
        old=old_values.note(found.read_times, now_ms),
    )


def status(interface: Interface, is_old: bool = False) -> tuple[str, str]:
    """The status of an interface with its mark, and its tone; an old one is that of then."""
    if is_old and interface.is_up is not None:
        word = "switched off" if interface.is_enabled is False else _UP[interface.is_up]
        return f"{GLYPHS[Tone.UNKNOWN]} was {word}", str(Tone.UNKNOWN)
    if interface.is_enabled is False:
        return f"{_SWITCHED_OFF} switched off", str(Tone.UNKNOWN)
    if interface.is_up is None:
        return f"{GLYPHS[Tone.UNKNOWN]} unknown", str(Tone.UNKNOWN)
    tone = Tone.OK if interface.is_up else Tone.FAILING
    return f"{GLYPHS[tone]} {_UP[interface.is_up]}", str(tone)


def speed(interface: Interface) -> str:
    """The speed of the link: `1 Gbit/s`."""
    return formatting.bits(interface.bits_per_s) if interface.bits_per_s else _NONE


def _item(row: InterfaceRow, window: Window, now_ms: int) -> InterfaceItem:
    interface = row.interface
    age = old_values.age(row.target, row.at_ms, now_ms)
    shown, tone = status(interface, is_old=bool(age))
    errors = _growth(row, (Counted.IN_ERRORS, Counted.OUT_ERRORS))
    discards = _growth(row, (Counted.IN_DISCARDS, Counted.OUT_DISCARDS))
    traffic = plots.traffic(interface, row.lines, window)
    return InterfaceItem(
        key=interface.key,
        target=row.target.name,
        name=interface.name or interface.key,
        alias=interface.alias,
        status=shown,
        tone=tone,
        age=age,
        speed=speed(interface),
        receives=_direction(row, Counted.IN_OCTETS),
        sends=_direction(row, Counted.OUT_OCTETS),
        errors=_NONE if errors is None else formatting.count(round(errors)),
        discards=_NONE if discards is None else formatting.count(round(discards)),
        errors_tone=_fault_tone(errors),
        discards_tone=_fault_tone(discards),
        picture=range_plot.small(traffic, plot_figures.sentence(traffic)) if row.lines else "",
    )


def _fault_tone(count: float | None) -> str:
    return str(Tone.LATE) if count and round(count) else ""


def _direction(row: InterfaceRow, role: Counted) -> DirectionCells:
    line = row.lines.get(role)
    if line is None:
        return DirectionCells(_NONE, _NONE, _NONE, _NONE)
    found = line_figures.of_line(line)
    return DirectionCells(
        last=_bits(found.last),
        p95=_bits(found.p95),
        highest=_bits(found.highest),
        utilisation=_utilisation(found, row.interface),
    )


def _bits(octets: float | None) -> str:
    return _NONE if octets is None else formatting.bits(8 * octets)


def _utilisation(found: LineFigures, interface: Interface) -> str:
    if found.p95 is None or not interface.bits_per_s:
        return _NONE
    share = 8 * found.p95 / interface.bits_per_s
    text = f"{formatting.significant(100 * share)} %"
    return f"{GLYPHS[Tone.LATE]} {text}" if share >= _BUSY else text


def _growth(row: InterfaceRow, roles: Sequence[Counted]) -> float | None:
    """The growth of some counters over the range; None: none of them is known."""
    totals = [row.lines[role].total() for role in roles if role in row.lines]
    known = [total for total in totals if total is not None]
    return sum(known) if known else None
