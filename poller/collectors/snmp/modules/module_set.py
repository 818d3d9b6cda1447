"""Modules made ready for polling: what to ask for, in which order, and which metric an OID belongs to."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
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
from poller.collectors.snmp.read import change_signals
from poller.collectors.snmp.wire.value_types import Value

_REMARKS = {
    "EnumAsInfo": ("_info", " (EnumAsInfo)"),
    "EnumAsStateSet": ("", " (EnumAsStateSet)"),
    "Bits": ("", " (Bits)"),
}
_NOT_TEXT = NUMERIC | DATES | set(_REMARKS)
#: Devices have many OIDs in common, so what was found of one is remembered; of usual ones, for a device can send any.
_REMEMBERED, _USUAL_LENGTH = 32_768, 80


#: By the filtered column's OID: the rows of the column, or None when it could not be read.
Columns = Mapping[str, Sequence[tuple[str, Value]] | None]


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to ask an agent for, which can fail by itself: some scalars, or one subtree."""

    name: str
    get: tuple[str, ...] = ()
    walk: str = ""


class Matcher:
    """Finds the metric of an OID in one module: the one with the shortest OID that covers it."""

    def __init__(self, module: Module) -> None:
        self._metrics = {
            metric.oid: metric for metric in module.metrics
        }  # the last of two with one OID
        self._lengths = sorted({metric.oid.count(".") + 1 for metric in module.metrics})
        self._known = lru_cache(_REMEMBERED)(self._find)

    def find(self, text: str) -> tuple[Metric, str] | None:
        """The metric and the index part of the OID (as text)."""
        return self._known(text) if len(text) <= _USUAL_LENGTH else self._find(text)

    def _find(self, text: str) -> tuple[Metric, str] | None:
        parts = text.split(".")
        for length in self._lengths:
            metric = self._metrics.get(".".join(parts[:length]))
            if metric is not None:
                return metric, ".".join(parts[length:])
        return None


class Scope:
    """What a module asks for: of what another one reads beside it, it knows nothing."""

    def __init__(self, module: Module) -> None:
        targets = (target for one in module.filters for target in one.targets)
        self._roots = {*module.walk, *module.get, *targets}
        self._lengths = sorted({root.count(".") + 1 for root in self._roots})
        self._known = lru_cache(_REMEMBERED)(self._has)

    def __contains__(self, text: object) -> bool:
        return self._known(text) if len(str(text)) <= _USUAL_LENGTH else self._has(text)

    def _has(self, text: object) -> bool:
        parts = str(text).split(".")
        return any(".".join(parts[:length]) in self._roots for length in self._lengths)


@dataclass(frozen=True)
class ModuleSet:
    modules: tuple[Module, ...]

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        return tuple(Matcher(module) for module in self.modules)

    def live(self, text: str) -> Metric | None:
        """The metric that takes its value from this OID, if any: of the others only texts are made."""
        for matcher in self.matchers:
            found = matcher.find(text)
            if found is not None and (found[0].type not in LASTING or found[0].extracts):
                return found[0]
        return None

    @cached_property
    def routes(self) -> dict[Hashable, Any]:
        """Ways to the numbers of devices with these modules, by what those devices have: see `shortcut`."""
        return {}

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """What to ask a device for to learn whether it has changed."""
        return change_signals.signals_of(
            [root for part in self.parts for root in (part.walk, *part.get) if root]
        )

    @cached_property
    def scopes(self) -> tuple[Container[str], ...]:
        """By module. A single one sees all there is."""
        return tuple(Scope(module) for module in self.modules) if len(self.modules) > 1 else (_ALL,)

    @cached_property
    def version(self) -> str:
        """Of the protocol, if a module needs the old one, which has no Counter64; else empty."""
        return "1" if any(module.version == 1 for module in self.modules) else ""

    @cached_property
    def walk_params(self) -> WalkParams:
        """How its modules ask to be read. It is one device: of several modules the most careful counts."""
        asked = [module.walk_params for module in self.modules]
        return WalkParams(
            min(
                (one.max_repetitions for one in asked if one.max_repetitions is not None),
                default=None,
            ),
            max((one.retries for one in asked if one.retries is not None), default=None),
            max((one.timeout_s for one in asked if one.timeout_s is not None), default=None),
            any(one.allow_nonincreasing_oids for one in asked),
        )

    @cached_property
    def filter_parts(self) -> tuple[Part, ...]:
        """Columns to read before anything else: which rows are wanted depends on them."""
        found = {
            one.oid: Part(f"{module.name} filter {one.oid}", walk=one.oid)
            for module in reversed(self.modules)
            for one in reversed(module.filters)
        }
        return tuple(reversed(found.values()))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What to ask for when nothing is filtered."""
        return self.parts_left({})

    def parts_left(self, columns: Columns) -> tuple[Part, ...]:
        """What to ask for once the columns of `filter_parts` were read. Scalars first: they are cheap and show at
        once whether anybody is there."""
        wanted = [(module, *filtered(module, columns)) for module in self.modules]
        roots = {root for _, walk, _ in wanted for root in walk}
        seen: set[str] = set()
        parts = []
        for module, _, get in wanted:
            new = tuple(item for item in dict.fromkeys(get) if item not in seen)
            seen.update(new)
            if new:
                parts.append(Part(f"{module.name} scalars", get=new))
        for module, root in ((module, root) for module, walk, _ in wanted for root in walk):
            if root not in seen and not any(
                other != root and oid.covers(other, root) for other in roots
            ):
                seen.add(root)
                parts.append(Part(f"{module.name} {root}", walk=root))
        return tuple(parts)

    @cached_property
    def help(self) -> Mapping[str, str]:
        """Help text by metric name, as it is exposed."""
        texts: dict[str, str] = {}
        for metric in (metric for module in self.modules for metric in module.metrics):
            for suffix, remark in _exposed(metric):
                texts.setdefault(metric.name + suffix, metric.help + remark)
        return texts


class _Everything(Container[str]):
    def __contains__(self, text: object) -> bool:
        return True


_ALL = _Everything()


def _exposed(metric: Metric) -> Iterator[tuple[str, str]]:
    """What is appended to a metric's name and to its help, for each name it is exposed by."""
    if metric.extracts and metric.type not in _NOT_TEXT:
        yield from ((suffix, " (regex extracted)") for suffix in metric.extracts)
    else:
        yield _REMARKS.get(metric.type, ("", ""))


def filtered(module: Module, columns: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is left to walk and to get. A filter whose column could not be read filters nothing.

    Several filters for one column must all agree, as in today's snmp_exporter (up to 0.30 the last one decided).
    """
    chosen: dict[str, list[str]] = {}
    for one in module.filters:
        rows = columns.get(one.oid)
        if rows is None:
            continue
        found = matching_indexes(one, rows)
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


def matching_indexes(one: Filter, rows: Sequence[tuple[str, Value]]) -> list[str]:
    """The last numbers of the OIDs whose values fit: snmp_exporter takes no more than that for an index."""
    return [
        text.rpartition(".")[2]
        for text, value in rows
        if any(
            expression.search(value_text(value, "DisplayString")) for expression in one.expressions
        )
    ]
