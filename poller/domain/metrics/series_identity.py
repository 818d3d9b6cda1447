"""Which series of two polls are the same thing? Its name says so, not its place in a table.

A device may number its interfaces anew after a restart, and people edit descriptions: neither starts a new series.
The rule holds for every table whose labels have an index and a name (`ifIndex` and `ifName`, `entPhysicalIndex`
and `entPhysicalName`, `hrStorageIndex` and `hrStorageDescr`).
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from poller.domain.metrics.reading import Labels, SeriesSet

#: Name of the metric, and the labels that tell its owner from others.
Key = tuple[str, Labels]

_INDEX = "Index"
#: Labels of these endings only describe; where the wanted one is missing, the first of them that is there names.
_NAMING = ("Name", "Descr")
_DESCRIBING = ("Name", "Descr", "Alias", "Description")


class Identity(enum.StrEnum):
    """What an interface is known by; other tables go by what is called alike in them."""

    IF_NAME = "ifName"
    IF_DESCR = "ifDescr"
    IF_ALIAS = "ifAlias"
    IF_INDEX = "ifIndex"

    @property
    def ending(self) -> str:
        return self.value.removeprefix("if")


def chosen(options: Mapping[str, object]) -> Identity:
    """What a target's options say, or the default."""
    text = options.get("identity")
    return Identity(text) if isinstance(text, str) and text in set(Identity) else Identity.IF_NAME


class _Name(NamedTuple):
    """What a row says about one thing: its place in a table, and what it is called."""

    of: str  # the label of its place
    place: str
    label: str
    text: str


def keys(shape: SeriesSet, by: Identity = Identity.IF_NAME) -> list[Key]:
    """The identity of each series of a poll. Two of one poll never share one."""
    rows = {series.labels for series in shape.series}
    shared = _shared(name for labels in rows for name in _names(labels, by))
    own = {labels: _own(labels, by, shared) for labels in rows}
    found: list[Key] = [(series.name, own[series.labels]) for series in shape.series]
    times = Counter(found)
    return [
        key if times[key] == 1 else (series.name, series.labels)
        for key, series in zip(found, shape.series, strict=True)
    ]


def _names(labels: Labels, by: Identity) -> Iterator[_Name]:
    """One for each index among the labels that has a name which is not empty."""
    texts = dict(labels)
    for index, place in labels:
        if not index.endswith(_INDEX) or by is Identity.IF_INDEX:
            continue
        table = index.removesuffix(_INDEX)
        label = next(
            (table + ending for ending in (by.ending, *_NAMING) if table + ending in texts), ""
        )
        if label and texts[label].strip():
            yield _Name(index, place, label, texts[label])


def _shared(names: Iterable[_Name]) -> set[tuple[str, str]]:
    """Names (label and text) that more than one place has: they tell nobody apart."""
    places: dict[tuple[str, str], str] = {}
    shared = set()
    for name in names:
        if places.setdefault((name.label, name.text), name.place) != name.place:
            shared.add((name.label, name.text))
    return shared


def _own(labels: Labels, by: Identity, shared: set[tuple[str, str]]) -> Labels:
    """The labels without those that only describe; a name of one's own stands for the index."""
    names = {name.of: name for name in _names(labels, by) if (name.label, name.text) not in shared}
    tables = tuple(label.removesuffix(_INDEX) for label, _ in labels if label.endswith(_INDEX))
    describing = {table + ending for table in tables for ending in _DESCRIBING}
    kept = ((label, text) for label, text in labels if label not in describing)
    return tuple(sorted(_renamed(label, text, names) for label, text in kept))


def _renamed(label: str, text: str, names: Mapping[str, _Name]) -> tuple[str, str]:
    name = names.get(label)
    return (name.label, name.text) if name else (label, text)
