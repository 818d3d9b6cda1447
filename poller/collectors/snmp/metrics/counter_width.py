"""How many bits does a counter count in? Its type says so where the engine tells types; else the standard does."""

from __future__ import annotations

from collections.abc import Mapping

from poller.collectors.snmp.modules.module_model import Metric
from poller.collectors.snmp.wire import value_types
from poller.collectors.snmp.wire.value_types import Value

_IF_TABLE, _IF_X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
#: The counters of the IF-MIB (RFC 2863).
_STANDARD: Mapping[str, int] = {
    **{f"{_IF_TABLE}.{column}": 32 for column in range(10, 21)},
    **{f"{_IF_X_TABLE}.{column}": 32 for column in range(2, 6)},
    **{f"{_IF_X_TABLE}.{column}": 64 for column in range(6, 14)},
}


def of(metric: Metric, value: Value) -> int:
    """32, 64, or 0 where it is not known: a number that was scaled does not start over at a power of two."""
    if metric.type != "counter" or metric.scale or metric.offset:
        return 0
    return value_types.width(value) or _STANDARD.get(metric.oid, 0)
