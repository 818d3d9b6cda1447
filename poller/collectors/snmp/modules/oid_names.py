"""Names of OIDs and OIDs of names, from the loaded modules, for commands at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules.module_model import Metric, Module
from poller.domain.inventory.did_you_mean import nearest

#: Branches that are often walked and that no module has as a metric.
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
class NamedObject:
    """An SNMP object a module names: a scalar, or a column with one value per row."""

    name: str
    oid: str
    is_column: bool
    metric: Metric


@dataclass(frozen=True, slots=True)
class OidScope:
    """A subtree to read, or exactly one value."""

    oid: str
    exact: bool = False


class OidNames:
    """The names that some modules give to OIDs."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self._by_oid: dict[str, NamedObject] = {}
        self._by_name: dict[str, NamedObject] = {}
        for named in _named_objects(modules.values()):
            self._by_oid.setdefault(named.oid, named)
            self._by_name.setdefault(named.name, named)

    def name_of(self, number: str) -> tuple[str, NamedObject | None]:
        """Return `ifInOctets.3` and its object; the OID itself and None when it has no name."""
        root = number
        while root:
            named = self._by_oid.get(root)
            if named is not None:
                return named.name + number[len(root) :], named
            root = root.rpartition(".")[0]

        return number, None

    def scopes(self, text: str) -> tuple[OidScope, ...]:
        """Return what a text means: an OID, a name with or without an index, a branch or a module.

        Raises InvalidInput.
        """
        number = text.removeprefix(".")
        if oid.is_valid(number) or number == "1":
            return (OidScope(number),)

        name, dot, index = text.partition(".")
        named = self._by_name.get(name)
        if named is not None and (not dot or oid.is_valid(f"0.{index}")):
            return (OidScope(named.oid + dot + index),)
        if text in BRANCHES:
            return (OidScope(BRANCHES[text]),)
        if text in self._modules:
            module = self._modules[text]
            scalars = [OidScope(each, exact=True) for each in module.get]
            subtrees = [OidScope(root) for root in module.walk]
            return (*scalars, *subtrees)

        raise self._unknown(text)

    def instance(self, text: str) -> str:
        """Return the OID of one value; a scalar may be named without its `.0`.

        Raises InvalidInput.
        """
        number = text.removeprefix(".")
        if oid.is_valid(number):
            return number

        name, dot, _ = text.partition(".")
        named = self._by_name.get(name)
        if named is None:
            raise self._unknown(text)
        if not dot and named.is_column:
            raise errors.InvalidInput(
                f"{name} has one value per row, and {text} names none",
                hint=f"write {name}.1, or walk {name}",
            )

        return self.scopes(text if dot else f"{text}.0")[0].oid

    def _unknown(self, text: str) -> errors.InvalidInput:
        """Return the error for a text without a meaning, with a suggestion."""
        name = text.partition(".")[0]
        near = nearest(name, [*self._by_name, *self._modules, *BRANCHES])
        hint = f"did you mean {near}? " if near else ""
        return errors.InvalidInput(
            f'"{text}" is neither an OID nor a name that a loaded module has',
            hint=f"{hint}write it as 1.3.6.1.2.1.2.2, or load its module with -o config=FILE",
        )


def _named_objects(modules: Iterable[Module]) -> Iterator[NamedObject]:
    """Yield metrics before columns that only serve as labels, which have less information."""
    metrics = [metric for module in modules for metric in module.metrics]
    for metric in metrics:
        yield NamedObject(metric.name, metric.oid, bool(metric.indexes), metric)

    for metric in metrics:
        for lookup in metric.lookups:
            if lookup.oid:
                column = Metric(
                    lookup.labelname, lookup.oid, lookup.type, enum_values=lookup.enum_values
                )
                yield NamedObject(lookup.labelname, lookup.oid, is_column=True, metric=column)
