"""Modules made ready for polling: what to ask for, in which order, and which metric an OID belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from poller.collectors.snmp import freshness, language, oid
from poller.collectors.snmp.language import Metric, Module

_HELP_SUFFIX = {"EnumAsInfo": " (EnumAsInfo)", "EnumAsStateSet": " (EnumAsStateSet)", "Bits": " (Bits)"}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to ask an agent for, which can fail by itself: some scalars, or one subtree."""

    name: str
    get: tuple[str, ...] = ()
    walk: str = ""


class Matcher:
    """Finds the metric of an OID in one module: the one with the shortest OID that covers it."""

    def __init__(self, module: Module) -> None:
        self._metrics = {metric.oid: metric for metric in reversed(module.metrics)}
        self._lengths = sorted({metric.oid.count(".") + 1 for metric in module.metrics})

    def find(self, parts: Sequence[str]) -> tuple[Metric, str] | None:
        """The metric and the index part of the OID (as text)."""
        for length in self._lengths:
            metric = self._metrics.get(".".join(parts[:length]))
            if metric is not None:
                return metric, ".".join(parts[length:])
        return None


@dataclass(frozen=True)
class Profile:
    modules: tuple[Module, ...]

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        return tuple(Matcher(module) for module in self.modules)

    def live(self, text: str) -> Metric | None:
        """The metric that takes its value from this OID, if any: of the others only texts are made."""
        parts = text.split(".")
        for matcher in self.matchers:
            found = matcher.find(parts)
            if found is not None and found[0].type not in language.LASTING:
                return found[0]
        return None

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """What to ask a device for to learn whether it has changed."""
        return freshness.signals_of([root for part in self.parts for root in (part.walk, *part.get) if root])

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Scalars first: they are cheap and show at once whether anybody is there."""
        walks = [(module.name, root) for module in self.modules for root in module.walk]
        roots = {root for _, root in walks}
        seen: set[str] = set()
        parts = []
        for module in self.modules:
            wanted = tuple(item for item in dict.fromkeys(module.get) if item not in seen)
            seen.update(wanted)
            if wanted:
                parts.append(Part(f"{module.name} scalars", get=wanted))
        for name, root in walks:
            if root not in seen and not any(other != root and oid.covers(other, root) for other in roots):
                seen.add(root)
                parts.append(Part(f"{name} {root}", walk=root))
        return tuple(parts)

    @cached_property
    def help(self) -> Mapping[str, str]:
        """Help text by metric name, as it is exposed."""
        texts: dict[str, str] = {}
        for metric in (metric for module in self.modules for metric in module.metrics):
            name = metric.name + "_info" if metric.type == "EnumAsInfo" else metric.name
            texts.setdefault(name, metric.help + _HELP_SUFFIX.get(metric.type, ""))
        return texts
