"""The modules of a target, prepared for polling: what to read, in which order, and which metric
an OID belongs to. Pure; one `ModuleSet` is shared by all targets with the same modules.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from poller.collectors.snmp import oid
from poller.collectors.snmp.metrics.label_text import value_text
from poller.collectors.snmp.modules.module_model import (
    DATES,
    LASTING,
    NUMERIC,
    Filter,
    Metric,
    Module,
    WalkParams,
)
from poller.collectors.snmp.wire.value_types import Value

#: By metric type: the suffix of the exposed name, and a remark for the help text.
_REMARKS = {
    "EnumAsInfo": ("_info", " (EnumAsInfo)"),
    "EnumAsStateSet": ("", " (EnumAsStateSet)"),
    "Bits": ("", " (Bits)"),
}
_NOT_TEXT = NUMERIC | DATES | set(_REMARKS)
#: Devices share many OIDs, so lookups are cached. A device can send any OID: long ones are not.
_CACHED_OIDS = 32_768
_LONGEST_CACHED_OID = 80

#: By a filter's OID: the rows of that column, or None when it could not be read.
Columns = Mapping[str, Sequence[tuple[str, Value]] | None]


@dataclass(frozen=True, slots=True)
class Part:
    """One read that can fail by itself: some scalars, or one subtree."""

    name: str
    get: tuple[str, ...] = ()
    walk: str = ""


class Matcher:
    """Finds the metric of an OID in one module: the metric with the shortest OID that covers it."""

    def __init__(self, module: Module) -> None:
        # Of two metrics with one OID the last one counts.
        self._metrics = {metric.oid: metric for metric in module.metrics}
        self._lengths = _lengths(self._metrics)
        self._cached_find = lru_cache(_CACHED_OIDS)(self._find)

    def find(self, text: str) -> tuple[Metric, str] | None:
        """Return the metric and the index part of the OID (as text)."""
        if len(text) <= _LONGEST_CACHED_OID:
            return self._cached_find(text)
        return self._find(text)

    def _find(self, text: str) -> tuple[Metric, str] | None:
        """Return what `find` returns, without the cache."""
        parts = text.split(".")
        for length in self._lengths:
            metric = self._metrics.get(".".join(parts[:length]))
            if metric is not None:
                return metric, ".".join(parts[length:])

        return None


class Scope(Container[str]):
    """The OIDs one module reads; OIDs that only another module reads are not in it."""

    def __init__(self, module: Module) -> None:
        self._roots = {*module.walk, *module.get}
        for row_filter in module.filters:
            self._roots.update(row_filter.targets)

        self._lengths = _lengths(self._roots)
        self._cached_has = lru_cache(_CACHED_OIDS)(self._has)

    def __contains__(self, text: object) -> bool:
        if len(str(text)) <= _LONGEST_CACHED_OID:
            return self._cached_has(text)
        return self._has(text)

    def _has(self, text: object) -> bool:
        """Return whether an OID is in the scope, without the cache."""
        parts = str(text).split(".")
        prefixes = (".".join(parts[:length]) for length in self._lengths)
        return not self._roots.isdisjoint(prefixes)


def _lengths(oids: Iterable[str]) -> list[int]:
    """Return the different lengths of OIDs in parts, the shortest first."""
    lengths = {text.count(".") + 1 for text in oids}
    return sorted(lengths)


class _Everything(Container[str]):
    """The scope of a single module: every OID."""

    def __contains__(self, text: object) -> bool:
        return True


@dataclass(frozen=True)
class ModuleSet:
    """Modules that are read together from one device."""

    modules: tuple[Module, ...]

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        """One matcher for each module."""
        return tuple(Matcher(module) for module in self.modules)

    @cached_property
    def scopes(self) -> tuple[Container[str], ...]:
        """One scope for each module."""
        if len(self.modules) == 1:
            return (_Everything(),)
        return tuple(Scope(module) for module in self.modules)

    @cached_property
    def routes(self) -> dict[Hashable, Any]:
        """Cache of `shortcut`: what devices with these modules and the same rows share."""
        return {}

    @cached_property
    def version(self) -> str:
        """The protocol version: "1" if a module needs SNMPv1 (without Counter64), else empty."""
        needs_v1 = any(module.version == 1 for module in self.modules)
        return "1" if needs_v1 else ""

    @cached_property
    def walk_params(self) -> WalkParams:
        """The most careful parameters of all modules, since all read one device."""
        params = [module.walk_params for module in self.modules]
        repetitions = _given(each.max_repetitions for each in params)
        retries = _given(each.retries for each in params)
        timeouts_s = _given(each.timeout_s for each in params)
        any_order = any(each.allow_nonincreasing_oids for each in params)

        return WalkParams(
            max_repetitions=min(repetitions, default=None),
            retries=max(retries, default=None),
            timeout_s=max(timeouts_s, default=None),
            allow_nonincreasing_oids=any_order,
        )

    @cached_property
    def filter_parts(self) -> tuple[Part, ...]:
        """Columns to read first, because filters choose rows by their values."""
        parts: dict[str, Part] = {}
        for module in self.modules:
            for row_filter in module.filters:
                column = row_filter.oid
                part = Part(f"{module.name} filter {column}", walk=column)
                parts.setdefault(column, part)

        return tuple(parts.values())

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Everything to read when no filter applies."""
        return self.parts_after_filters({})

    def parts_after_filters(self, columns: Columns) -> tuple[Part, ...]:
        """Return what to read after the columns of `filter_parts`.

        Scalars come first: they are cheap and show at once whether the device responds.
        """
        selections = [(module, filtered(module, columns)) for module in self.modules]
        roots = {root for _, selection in selections for root in selection.walk}
        planned: set[str] = set()
        parts = []

        for module, selection in selections:
            scalars = tuple(each for each in dict.fromkeys(selection.get) if each not in planned)
            planned.update(scalars)
            if scalars:
                parts.append(Part(f"{module.name} scalars", get=scalars))

        for module, selection in selections:
            for root in selection.walk:
                if root not in planned and not _within_another(root, roots):
                    planned.add(root)
                    parts.append(Part(f"{module.name} {root}", walk=root))

        return tuple(parts)

    @cached_property
    def help(self) -> Mapping[str, str]:
        """Help text by exposed metric name."""
        texts: dict[str, str] = {}
        for module in self.modules:
            for metric in module.metrics:
                for suffix, remark in _exposed(metric):
                    texts.setdefault(metric.name + suffix, metric.help + remark)

        return texts

    def number_metric(self, text: str) -> Metric | None:
        """Return the metric whose number comes from this OID; None if only texts come from it."""
        for matcher in self.matchers:
            match = matcher.find(text)
            if match is None:
                continue
            metric, _ = match
            if metric.type not in LASTING or metric.extracts:
                return metric

        return None


@dataclass(frozen=True, slots=True)
class Selection:
    """The subtrees and single OIDs of a module that are left to read."""

    walk: tuple[str, ...]
    get: tuple[str, ...]


def filtered(module: Module, columns: Columns) -> Selection:
    """Apply a module's filters: filtered columns are not walked, their chosen rows are fetched.

    A filter whose column could not be read filters nothing. Several filters of one column must
    all match, as in current versions of snmp_exporter (up to 0.30 the last filter decided).
    """
    chosen: dict[str, list[str]] = {}
    for row_filter in module.filters:
        rows = columns.get(row_filter.oid)
        if rows is None:
            continue

        indexes = matching_indexes(row_filter, rows)
        for target in row_filter.targets:
            if target in chosen:
                matching = set(indexes)
                chosen[target] = [index for index in chosen[target] if index in matching]
            else:
                chosen[target] = indexes

    walk = tuple(root for root in module.walk if root not in chosen)
    get = module.get
    for target, indexes in chosen.items():
        others = [each for each in get if not oid.covers(target, each)]
        rows_of_target = [f"{target}.{index}" for index in dict.fromkeys(indexes)]
        get = (*others, *rows_of_target)

    return Selection(walk, get)


def matching_indexes(row_filter: Filter, rows: Sequence[tuple[str, Value]]) -> list[str]:
    """Return the indexes of the rows that match, which are the last numbers of their OIDs.

    snmp_exporter uses no more than the last number as an index either.
    """
    indexes = []
    for text, value in rows:
        shown = value_text(value, "DisplayString")
        if any(expression.search(shown) for expression in row_filter.expressions):
            indexes.append(text.rpartition(".")[2])

    return indexes


def _given(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values that are not None."""
    return (value for value in values if value is not None)


def _within_another(root: str, roots: Iterable[str]) -> bool:
    """Return whether a subtree lies within another subtree."""
    covering = {other for other in roots if oid.covers(other, root)}
    return bool(covering - {root})


def _exposed(metric: Metric) -> Iterator[tuple[str, str]]:
    """Yield a name suffix and a help remark for each name a metric is exposed by."""
    if metric.extracts and metric.type not in _NOT_TEXT:
        for suffix in metric.extracts:
            yield suffix, " (regex extracted)"
    else:
        yield _REMARKS.get(metric.type, ("", ""))
