"""OidNames for OIDs and OIDs for names, as far as modules know them: for people, who do not think in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules.module_model import Metric, Module
from poller.domain.inventory.did_you_mean import nearest

#: Branches people walk, which no module has as a metric.
BRANCHES = {
    "iso": "1",
    "internet": "1.3.6.1",
    "mib-2": "1.3.6.1.2.1",
    "enterprises": "1.3.6.1.4.1",
    "ifTable": "1.3.6.1.2.1.2.2",
    "ifXTable": "1.3.6.1.2.1.31.1.1",
    "hrStorageTable": "1.3.6.1.2.1.25.2.3",
    "entPhysicalTable": "1.3.6.1.2.1.47.1.1.1",
}


@dataclass(frozen=True, slots=True)
class Known:
    """An object by its name. `table` is whether it has one value per row, `metric` how to read it, if a module says."""

    name: str
    oid: str
    table: bool
    metric: Metric | None = None


@dataclass(frozen=True, slots=True)
class OidScope:
    """Where to look: a subtree, or exactly one value."""

    oid: str
    exact: bool = False


class OidNames:
    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self._by_oid: dict[str, Known] = {}
        self._by_name: dict[str, Known] = {}
        for known in _known(modules.values()):
            self._by_oid.setdefault(known.oid, known)
            self._by_name.setdefault(known.name, known)

    def name_of(self, number: str) -> tuple[str, Known | None]:
        """`ifInOctets.3` and what is known of it; the number itself when nothing is."""
        head = number
        while head:
            known = self._by_oid.get(head)
            if known is not None:
                return known.name + number[len(head) :], known
            head = head.rpartition(".")[0]
        return number, None

    def scopes(self, text: str) -> tuple[OidScope, ...]:
        """What a person means: a number, a name with or without an index, a branch, or all of a module."""
        number = text.removeprefix(".")
        if oid.is_valid(number) or number == "1":
            return (OidScope(number),)
        name, dot, index = text.partition(".")
        known = self._by_name.get(name)
        if known is not None and (not dot or oid.is_valid(f"0.{index}")):
            return (OidScope(known.oid + dot + index),)
        if text in BRANCHES:
            return (OidScope(BRANCHES[text]),)
        if text in self._modules:
            module = self._modules[text]
            return (
                *(OidScope(each, exact=True) for each in module.get),
                *(OidScope(root) for root in module.walk),
            )
        raise self._unknown(text)

    def instance(self, text: str) -> str:
        """The OID of one value; a scalar may be named without its `.0`. Raises InvalidInput."""
        number = text.removeprefix(".")
        if oid.is_valid(number):
            return number
        name, dot, _ = text.partition(".")
        known = self._by_name.get(name)
        if known is None:
            raise self._unknown(text)
        if not dot and known.table:
            raise errors.InvalidInput(
                f"{name} has one value per row, and {text} names none",
                hint=f"write {name}.1, or walk {name}",
            )
        return self.scopes(text if dot else f"{text}.0")[0].oid

    def _unknown(self, text: str) -> errors.InvalidInput:
        near = nearest(text.partition(".")[0], [*self._by_name, *self._modules, *BRANCHES])
        hint = f"did you mean {near}? " if near else ""
        return errors.InvalidInput(
            f'"{text}" is neither an OID nor a name that a loaded module has',
            hint=f"{hint}write it as 1.3.6.1.2.1.2.2, or load its module with -o config=FILE",
        )


def _known(modules: Iterable[Module]) -> Iterable[Known]:
    """Metrics first: they know most. Columns that only serve as labels have names as well."""
    metrics = [metric for module in modules for metric in module.metrics]
    for metric in metrics:
        yield Known(metric.name, metric.oid, bool(metric.indexes), metric)
    for metric in metrics:
        for lookup in metric.lookups:
            if lookup.oid:
                like = Metric(
                    lookup.labelname, lookup.oid, lookup.type, enum_values=lookup.enum_values
                )
                yield Known(lookup.labelname, lookup.oid, table=True, metric=like)
