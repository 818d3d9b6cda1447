"""What a device measures beside its interfaces: sensors, processors, memory, storage, round-trip
times, certificates, states. Rules by the name of a metric say the group, the unit and the scale.

A metric without a rule is shown all the same, as a plain number of the group `other`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series
from poller.domain.metrics.series_identity import Identity, Key, series_keys
from poller.domain.rollups import state_series
from poller.domain.series import device_interfaces


class Group(enum.StrEnum):
    """The groups of measurements, in the order of the page."""

    REACH = "Reachability and response"
    CPU = "Processor and load"
    MEMORY = "Memory"
    STORAGE = "Storage"
    SENSORS = "Sensors"
    CERTIFICATES = "Certificates"
    STATES = "States"
    OTHER = "Other"


class Unit(enum.StrEnum):
    """The unit of a value after its scale."""

    NUMBER = ""
    SECONDS = "s"
    LEFT = "left"  # seconds until something ends
    INSTANT = "at"  # seconds since 1970
    PERCENT = "%"
    BYTES = "B"
    CELSIUS = "°C"
    VOLTS = "V"
    AMPERES = "A"
    WATTS = "W"
    HERTZ = "Hz"
    DBM = "dBm"
    TURNS = "rpm"
    STATE = "state"


class Rule(NamedTuple):
    """The meaning of the names of some metrics."""

    pattern: re.Pattern[str]
    group: Group
    unit: Unit
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """One gauge or state of the newest poll. `top` is the most that it can be, if that is known."""

    series: Series
    key: Key
    group: Group
    unit: Unit
    scale: float
    value: float  # with the scale
    name: str  # as people say it: `Temperature of the board`, `/var`
    top: float | None = None

    def matches(self, search: str) -> bool:
        """Whether its name or its metric contains a text, in any case."""
        wanted = search.casefold()
        return wanted in self.name.casefold() or wanted in self.series.name.casefold()


def _rule(pattern: str, group: Group, unit: Unit, scale: float = 1.0) -> Rule:
    return Rule(re.compile(pattern), group, unit, scale)


#: The first rule whose pattern is found in the name applies.
_RULES = (
    _rule(r"tls_expiry_seconds$", Group.CERTIFICATES, Unit.LEFT),
    _rule(r"^ping_rtt_|^http_(duration|phase)_seconds|Latency|_rtt_", Group.REACH, Unit.SECONDS),
    _rule(r"^ping_loss_ratio$", Group.REACH, Unit.PERCENT, 100.0),
    _rule(r"^(ping|http)_up$|^up$|^probe_success$", Group.REACH, Unit.STATE),
    _rule(r"^http_body_bytes$", Group.REACH, Unit.BYTES),
    _rule(r"^(ping|http)_", Group.REACH, Unit.NUMBER),
    _rule(r"certificate_expiration_timestamp_seconds$", Group.CERTIFICATES, Unit.INSTANT),
    _rule(r"^hrProcessorLoad$|cpu_load$|^upsOutputPercentLoad$", Group.CPU, Unit.PERCENT),
    _rule(r"cpu_frequency$", Group.CPU, Unit.HERTZ, 1e6),
    _rule(r"^laLoad|cpu_count$|Processes$", Group.CPU, Unit.NUMBER),
    _rule(r"^mem(Total|Avail|Shared|Buffer|Cached|Minimum|Sys)", Group.MEMORY, Unit.BYTES, 1024.0),
    _rule(r"^hrMemorySize$", Group.MEMORY, Unit.BYTES, 1024.0),
    _rule(r"_memory(_bytes)?$", Group.MEMORY, Unit.BYTES),
    _rule(r"^dskPercent|bad_blocks$", Group.STORAGE, Unit.PERCENT),
    _rule(r"^dsk(Total|Avail|Used)$", Group.STORAGE, Unit.BYTES, 1024.0),
    _rule(r"hdd_space$", Group.STORAGE, Unit.BYTES),
    _rule(r"^mtxrHl\w*Voltage$", Group.SENSORS, Unit.VOLTS, 0.1),
    _rule(r"^mtxrHl\w*Temperature$", Group.SENSORS, Unit.CELSIUS, 0.1),
    _rule(r"^mtxrHlPower$", Group.SENSORS, Unit.WATTS, 0.1),
    _rule(r"^mtxrHlCurrent$", Group.SENSORS, Unit.AMPERES, 0.001),
    _rule(r"^mtxrHlProcessorFrequency$", Group.CPU, Unit.HERTZ, 1e6),
    _rule(r"^mtxr\w*FanSpeed|fan_\w+_speed$", Group.SENSORS, Unit.TURNS),
    _rule(r"_(rx|tx)_power$", Group.SENSORS, Unit.DBM),
    _rule(r"_temperature\d*$", Group.SENSORS, Unit.CELSIUS),
    _rule(r"_voltage$", Group.SENSORS, Unit.VOLTS),
    _rule(r"poe_out_current$", Group.SENSORS, Unit.AMPERES, 0.001),
    _rule(r"_current$", Group.SENSORS, Unit.AMPERES),
    _rule(r"_(power|consumption)$", Group.SENSORS, Unit.WATTS),
    _rule(r"^ups\w*Voltage$", Group.SENSORS, Unit.VOLTS),
    _rule(r"^(sysUpTime|hrSystemUptime|ifLastChange)$", Group.OTHER, Unit.SECONDS, 0.01),
    _rule(r"^routeros_system_uptime$", Group.OTHER, Unit.SECONDS),
    _rule(r"^ups\w*(Power)$", Group.SENSORS, Unit.WATTS),
)
_SENSOR = "entPhySensorValue"
_SENSOR_UNITS = {
    "voltsAC": Unit.VOLTS,
    "voltsDC": Unit.VOLTS,
    "amperes": Unit.AMPERES,
    "watts": Unit.WATTS,
    "hertz": Unit.HERTZ,
    "celsius": Unit.CELSIUS,
    "percentRH": Unit.PERCENT,
    "rpm": Unit.TURNS,
    "truthvalue": Unit.STATE,
}
#: Powers of ten of the scales of ENTITY-SENSOR-MIB.
_SENSOR_SCALES = {
    "yocto": -24, "zepto": -21, "atto": -18, "femto": -15, "pico": -12, "nano": -9, "micro": -6,
    "milli": -3, "units": 0, "kilo": 3, "mega": 6, "giga": 9, "tera": 12, "peta": 15, "exa": 18,
    "zetta": 21, "yotta": 24,
}  # fmt: skip
_MIKROTIK_GAUGE = "mtxrGaugeValue"
_MIKROTIK_UNITS = {
    "celsius": (Unit.CELSIUS, 1.0),
    "rpm": (Unit.TURNS, 1.0),
    "dV": (Unit.VOLTS, 0.1),
    "dA": (Unit.AMPERES, 0.1),
    "dW": (Unit.WATTS, 0.1),
    "status": (Unit.STATE, 1.0),
}
_STORAGE_USED, _STORAGE_SIZE = "hrStorageUsed", "hrStorageSize"
_STORAGE_UNITS = "hrStorageAllocationUnits"
#: Series that say nothing by themselves: sizes of units, time stamps of an agent.
_HIDDEN = frozenset(
    (_STORAGE_UNITS, _STORAGE_SIZE, "entPhySensorValueTimeStamp", "entPhySensorValueUpdateRate")
)
#: Used and whole of the same device: the metric, and the one that is its most.
_TOPS = {
    "routeros_system_free_memory": "routeros_system_total_memory",
    "routeros_system_free_hdd_space": "routeros_system_total_hdd_space",
    "memAvailReal": "memTotalReal",
    "memAvailSwap": "memTotalSwap",
    "dskUsed": "dskTotal",
    "dskAvail": "dskTotal",
}
_PREFIXES = re.compile(r"^(routeros_system_|routeros_|mtxrHl|mtxr|hr|ups)")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")


def of_poll(poll: ReadingSet, by: Identity = Identity.IF_NAME) -> list[Measurement]:
    """Return the measurements of a poll by group, in the order of the device within each."""
    values: dict[Key, float] = {}
    rows: list[tuple[Series, Key]] = []
    for series, value, key in zip(
        poll.series.series, poll.values, series_keys(poll.series, by), strict=True
    ):
        values[key] = value
        if _is_shown(series):
            rows.append((series, key))
    found = [_measurement(series, key, values) for series, key in rows]
    order = list(Group)
    return sorted(found, key=lambda each: order.index(each.group))


def measurement(series: Series, key: Key) -> Measurement:
    """Return how one series is shown, without a value and what belongs to it."""
    return _measurement(series, key, {})


def _is_shown(series: Series) -> bool:
    if series.kind is not Kind.GAUGE or series.name in _HIDDEN:
        return False
    return not device_interfaces.is_of_interface(series.name)


def _measurement(series: Series, key: Key, values: Mapping[Key, float]) -> Measurement:
    group, unit, scale = _meaning(series, key, values)
    top = _top(series, key, values)
    return Measurement(
        series=series,
        key=key,
        group=group,
        unit=unit,
        scale=scale,
        value=values.get(key, float("nan")) * scale,
        name=_name(series, key),
        top=100.0 if unit is Unit.PERCENT else top * scale if top else None,
    )


def _meaning(series: Series, key: Key, values: Mapping[Key, float]) -> tuple[Group, Unit, float]:
    labels = dict(series.labels)
    if series.name == _SENSOR:
        return Group.SENSORS, *_sensor(labels)
    if series.name == _MIKROTIK_GAUGE:
        known = _MIKROTIK_UNITS.get(labels.get("mtxrGaugeUnit", ""), (Unit.NUMBER, 1.0))
        return Group.SENSORS, *known
    if series.name == _STORAGE_USED:
        return Group.STORAGE, Unit.BYTES, values.get((_STORAGE_UNITS, key[1])) or 1.0
    for rule in _RULES:
        if rule.pattern.search(series.name):
            return rule.group, rule.unit, rule.scale
    if state_series.is_state(series.name):
        return Group.STATES, Unit.STATE, 1.0
    return Group.OTHER, Unit.NUMBER, 1.0


def _sensor(labels: Mapping[str, str]) -> tuple[Unit, float]:
    """The unit and the scale of a sensor of ENTITY-SENSOR-MIB, from its labels."""
    unit = _SENSOR_UNITS.get(labels.get("entPhySensorType", ""), Unit.NUMBER)
    power = _SENSOR_SCALES.get(labels.get("entPhySensorScale", ""), 0)
    try:
        digits = int(labels.get("entPhySensorPrecision", "0"))
    except ValueError:
        digits = 0
    exponent = max(-30, min(30, power - digits))
    return unit, 10.0**exponent


def _top(series: Series, key: Key, values: Mapping[Key, float]) -> float | None:
    """The most that a value can be, before its scale."""
    whole = _STORAGE_SIZE if series.name == _STORAGE_USED else _TOPS.get(series.name)
    return values.get((whole, key[1])) if whole else None


def _name(series: Series, key: Key) -> str:
    """The name that people know a measurement by: its owner, else its metric in words."""
    owner = " ".join(text for text in _owner(key[1]) if text)
    words = _words(series.name)
    if not owner:
        return words
    if series.name in (_SENSOR, _MIKROTIK_GAUGE, _STORAGE_USED):
        return owner
    return f"{words} {owner}" if owner.isdecimal() else f"{owner}: {words}"


def _owner(known_by: Labels) -> Iterator[str]:
    """The texts of the labels that say whose value it is; a unit of a sensor does not."""
    for label, text in known_by:
        if not label.startswith("entPhySensor") and label != "mtxrGaugeUnit":
            yield text


def _words(name: str) -> str:
    """`routeros_system_cpu_load` as `cpu load`, `memAvailReal` as `mem avail real`."""
    rest = _PREFIXES.sub("", name)
    return " ".join(part.lower() for part in _WORDS.split(rest) if part)
