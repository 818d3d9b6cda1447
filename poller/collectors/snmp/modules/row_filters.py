"""Which rows does a module want? Filters look at one column and leave of others only the rows that fit.

A filter's column is read first. The columns it is for are then not walked: their chosen rows are fetched one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poller.collectors.snmp import oid
from poller.collectors.snmp.metrics.label_text import Value, value_text
from poller.collectors.snmp.modules.module_model import Filter, Module

#: By the filtered column's OID: what it was found to hold, or None when it could not be read.
Columns = Mapping[str, Sequence[tuple[str, Value]] | None]


def wanted(module: Module, columns: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is left to walk and to get. A filter whose column could not be read filters nothing.

    Several filters for one column must all agree, as in today's snmp_exporter (up to 0.30 the last one decided).
    """
    chosen: dict[str, list[str]] = {}
    for one in module.filters:
        rows = columns.get(one.oid)
        if rows is None:
            continue
        found = fitting(one, rows)
        for target in one.targets:
            chosen[target] = (
                [i for i in chosen[target] if i in set(found)] if target in chosen else found
            )
    walk = tuple(root for root in module.walk if root not in chosen)
    get = module.get
    for target, indexes in chosen.items():
        rest = (item for item in get if not oid.covers(target, item))
        get = (*rest, *(f"{target}.{index}" for index in dict.fromkeys(indexes)))
    return walk, get


def fitting(one: Filter, rows: Sequence[tuple[str, Value]]) -> list[str]:
    """The last numbers of the OIDs whose values fit: snmp_exporter takes no more than that for an index."""
    return [
        text.rpartition(".")[2]
        for text, value in rows
        if any(
            expression.search(value_text(value, "DisplayString")) for expression in one.expressions
        )
    ]
