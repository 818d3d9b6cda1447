"""Values of measurements as people read them, each with its unit."""

from __future__ import annotations

import math

from poller.domain.series.measurements import Unit
from poller.presentation import formatting

#: Names of the states of the metrics that most devices have.
_STATES = {
    "ifOperStatus": {1: "up", 2: "down", 3: "testing", 5: "dormant", 6: "not present", 7: "down"},
    "ifAdminStatus": {1: "up", 2: "down", 3: "testing"},
    "entPhySensorOperStatus": {1: "ok", 2: "unavailable", 3: "broken"},
    "hrDeviceStatus": {1: "unknown", 2: "running", 3: "warning", 4: "testing", 5: "down"},
    "upsBatteryStatus": {1: "unknown", 2: "normal", 3: "low", 4: "depleted"},
}
_YES_NO = ("_up", "_running", "_status", "_present", "_state", "_success", "SupplyState")


def text(unit: Unit, value: float | None, metric: str = "", now_ms: int = 0) -> str:
    """Return a value with its unit; `–` for none, and for one that is no number."""
    if value is None or not math.isfinite(value):
        return formatting.NOT_MEASURED
    if unit is Unit.SECONDS:
        return seconds(value)
    if unit is Unit.BYTES:
        return formatting.size(round(value))
    if unit is Unit.LEFT:
        return left(value)
    if unit is Unit.INSTANT:
        return left(value - now_ms / 1000) if now_ms else formatting.instant(round(value * 1000))
    if unit is Unit.STATE:
        return state(metric, value)
    if unit in (Unit.HERTZ, Unit.WATTS) and abs(value) >= 1000:
        return scaled(value, unit.value)
    if unit is Unit.NUMBER:
        return number(value)
    return f"{number(value)} {unit.value}"


def number(value: float) -> str:
    """`41`, `0.042`, `12,345`: all digits of whole numbers and before the point, else three."""
    if (value == round(value) or abs(value) >= 1000) and abs(value) < 1e15:
        return formatting.exact(round(value))
    if abs(value) >= 0.1:
        return formatting.significant(value)
    return f"{value:.3g}"


def scaled(value: float, unit: str) -> str:
    """`1.4 GHz`, `3.2 kW`."""
    for prefix, power in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= power:
            return f"{formatting.significant(value / power)} {prefix}{unit}"
    return f"{formatting.significant(value)} {unit}"


def seconds(value: float) -> str:
    """`12.3 ms`, `450 µs`, `1.24 s`."""
    if value and abs(value) < 0.001:
        return f"{formatting.significant(value * 1e6)} µs"
    return formatting.duration(value * 1000) if value >= 0 else f"{number(value)} s"


def left(value: float) -> str:
    """`in 41 d 3 h`, or `12 d 0 h ago`, from the seconds until something ends."""
    length = formatting.duration(abs(value) * 1000)
    return f"in {length}" if value >= 0 else f"{length} ago"


def state(metric: str, value: float) -> str:
    """`up (1)`: the name of a state where it is known, and always its number."""
    shown = number(value)
    name = _STATES.get(metric, {}).get(round(value))
    if name is None and metric.endswith(_YES_NO) and value in (0, 1):
        name = "yes" if value else "no"
    return f"{name} ({shown})" if name else shown
