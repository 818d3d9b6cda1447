"""Numbers from SNMP values, by snmp_exporter's rules: scaling, states, bits, dates, extracts.

Pure functions. A conversion returns None for a value that has no such number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from poller.collectors.snmp.metrics import octet_dates, regex_extracts, text_dates
from poller.collectors.snmp.metrics.label_text import opaque_float, value_text
from poller.collectors.snmp.modules.module_model import Extract, Metric
from poller.collectors.snmp.wire.value_types import COUNTER_WIDTHS, Value

Convert = Callable[[Value], float | None]

#: A float64 cannot count by ones above this number; snmp_exporter takes integers modulo it.
_FLOAT_MANTISSA = 2**53
_INT64_LIMIT = 2**63
_DECIMAL = re.compile(r"[+-]?[0-9]+")

_IF_TABLE = "1.3.6.1.2.1.2.2.1"
_IF_X_TABLE = "1.3.6.1.2.1.31.1.1.1"
#: Bits of the IF-MIB's counters (RFC 2863), by column OID.
_IF_MIB_WIDTHS: Mapping[str, int] = {
    **{f"{_IF_TABLE}.{column}": 32 for column in range(10, 21)},
    **{f"{_IF_X_TABLE}.{column}": 32 for column in range(2, 6)},
    **{f"{_IF_X_TABLE}.{column}": 64 for column in range(6, 14)},
}


def number(value: Value) -> int | float:
    """Return a value as a number; plain octets and text without a number are 0."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        return opaque_float(value) or 0
    return integer(value)


def integer(value: Value) -> int:
    """Return a value as the index of a row; floats and octets are 0."""
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return int(value)
    return 0


def state_number(value: Value) -> int:
    """Return a value as the number of an enumerated state, converted as Go converts it."""
    state = number(value)
    if isinstance(state, int):
        return state % _FLOAT_MANTISSA if state >= _FLOAT_MANTISSA else state

    # Go's int64 of a float out of range, or of NaN.
    return int(state) if abs(state) < _INT64_LIMIT else -_INT64_LIMIT


def counter_width(metric: Metric, value: Value) -> int:
    """Return the bits of a counter: 32, 64, or 0 when unknown.

    The type of the value decides, else the IF-MIB. A scaled counter does not wrap at a power of
    two, so its width is 0.
    """
    if metric.type != "counter" or metric.scale or metric.offset:
        return 0

    width = COUNTER_WIDTHS.get(type(value))
    return width or _IF_MIB_WIDTHS.get(metric.oid, 0)


def scaled(value: Value, scale: float, offset: float) -> float:
    """Return the number times `scale` plus `offset`; a 0 changes nothing, so an int stays one."""
    result = number(value)
    if scale:
        result *= scale

    return result + offset if offset else result


@lru_cache(maxsize=1024)
def scaler(scale: float, offset: float) -> Convert | None:
    """Return the conversion of a scaled metric; None when the value is the number itself."""
    if not scale and not offset:
        return None
    return partial(scaled, scale=scale, offset=offset)


def timestamp(metric: Metric, value: Value) -> float | None:
    """Return the Unix seconds of a metric that is a date."""
    if metric.type == "ParseDateAndTime":
        text = value_text(value, "DisplayString")
        seconds = text_dates.parse(text, metric.datetime_pattern)
    elif metric.type == "NTPTimeStamp":
        seconds = octet_dates.ntp_time_stamp(value)
    else:
        seconds = octet_dates.date_and_time(value)

    if seconds is None:
        return None
    return scaled(seconds, metric.scale, metric.offset)


def extracted(
    metric: Metric,
    kind: str,
    extracts: Sequence[Extract],
    value: Value,
) -> float | None:
    """Return the number of the first extract that finds one in the value's text."""
    text = value_text(value, kind, metric.display_hint)
    for extract in extracts:
        extracted_number = regex_extracts.extract(text, extract.expression, extract.value)
        if extracted_number is not None:
            return scaled(extracted_number, metric.scale, metric.offset)

    return None


def is_state(names: Mapping[int, str], name: str, value: Value) -> float | None:
    """Return 1 if the value is a state of this name, 0 if of another, None if of no name."""
    current = names.get(state_number(value))
    return None if current is None else int(current == name)


def any_bit_set(bits: Sequence[int], value: Value) -> float | None:
    """Return 1 if one of these bits is set; bit 0 is the highest bit of the first octet.

    Returns None for a value without octets; snmp_exporter fails the whole scrape there.
    """
    if not isinstance(value, bytes):
        return None

    for bit in bits:
        if 0 <= bit < len(value) * 8 and value[bit // 8] & (128 >> bit % 8):
            return 1

    return 0
