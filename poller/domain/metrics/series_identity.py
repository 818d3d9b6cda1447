"""Which series of two polls are the same: by the name of the thing, not by its row in a table.

A device may number its interfaces anew after a restart, and operators edit descriptions; neither
starts a new series. The rule holds for every table whose labels have an index and a name (`ifIndex`
and `ifName`, `entPhysicalIndex` and `entPhysicalName`, `hrStorageIndex` and `hrStorageDescr`).
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from poller.domain.metrics.reading import Kind, Labels, Series, SeriesSet

#: Name of the metric, and the labels that identify its owner.
Key = tuple[str, Labels]

_INDEX = "Index"
#: Endings of labels that name a row when the configured one is missing, in this order.
_NAMING = ("Name", "Descr")
#: Endings of labels that only describe a row.
_DESCRIBING = ("Name", "Descr", "Alias", "Description")


class Identity(enum.StrEnum):
    """The label that identifies an interface; other tables use their label of the same ending."""

    IF_NAME = "ifName"
    IF_DESCR = "ifDescr"
    IF_ALIAS = "ifAlias"
    IF_INDEX = "ifIndex"

    @property
    def ending(self) -> str:
        return self.value.removeprefix("if")


def identity_option(options: Mapping[str, object]) -> Identity:
    """Return the identity of a target's options, or the default."""
    text = options.get("identity")
    if isinstance(text, str) and text in set(Identity):
        return Identity(text)
    return Identity.IF_NAME


class _Name(NamedTuple):
    """The name of one row of a table: its label and text replace the index label."""

    index_label: str
    row: str  # the text of the index label
    label: str
    text: str


def series_keys(shape: SeriesSet, by: Identity = Identity.IF_NAME) -> list[Key]:
    """Return the identity of each series of a poll. No two series of one poll share one."""
    rows = {series.labels for series in shape.series}
    shared = _shared(name for labels in rows for name in _names(labels, by))
    identifying = {labels: _identifying(labels, by, shared) for labels in rows}
    keys: list[Key] = [(series.name, identifying[series.labels]) for series in shape.series]

    uses = Counter(keys)
    for position, series in enumerate(shape.series):
        if uses[keys[position]] > 1:
            keys[position] = (series.name, series.labels)
    return keys


def with_keys(wanted: Iterable[Key]) -> Callable[[Series], bool]:
    """Return whether a series may have one of these identities: its labels include those of one.

    A series with another row in the table, or that is described otherwise, passes too.
    """
    texts: dict[str, dict[tuple[str, ...], set[tuple[str, ...]]]] = {}
    for metric, labels in wanted:
        names = tuple(name for name, _ in labels)
        of_names = texts.setdefault(metric, {}).setdefault(names, set())
        of_names.add(tuple(text for _, text in labels))

    def may_have(series: Series) -> bool:
        by_names = texts.get(series.name)
        if by_names is None or series.kind is Kind.INFO:
            return False
        labels = dict(series.labels)
        return any(
            tuple(labels.get(name, "") for name in names) in known
            for names, known in by_names.items()
        )

    return may_have


def _names(labels: Labels, by: Identity) -> Iterator[_Name]:
    """Yield the name of each index among the labels that has one."""
    if by is Identity.IF_INDEX:
        return

    texts = dict(labels)
    for index_label, row in labels:
        if not index_label.endswith(_INDEX):
            continue
        table = index_label.removesuffix(_INDEX)
        label = _name_label(table, texts, by)
        text = texts.get(label, "")
        if label and text.strip():
            yield _Name(index_label, row, label, text)


def _name_label(table: str, texts: Mapping[str, str], by: Identity) -> str:
    """Return the label that names the rows of a table, or "" if there is none."""
    for ending in (by.ending, *_NAMING):
        label = table + ending
        if label in texts:
            return label
    return ""


def _shared(names: Iterable[_Name]) -> set[tuple[str, str]]:
    """Return the names (label and text) of more than one row: they identify no row."""
    rows: dict[tuple[str, str], str] = {}
    shared = set()
    for name in names:
        pair = (name.label, name.text)
        first_row = rows.setdefault(pair, name.row)
        if first_row != name.row:
            shared.add(pair)
    return shared


def _identifying(labels: Labels, by: Identity, shared: set[tuple[str, str]]) -> Labels:
    """Return the labels without describing ones; a unique name replaces the index."""
    names = {}
    for name in _names(labels, by):
        pair = (name.label, name.text)
        if pair not in shared:
            names[name.index_label] = pair

    describing: set[str] = set()
    for label, _ in labels:
        if label.endswith(_INDEX):
            table = label.removesuffix(_INDEX)
            describing.update(table + ending for ending in _DESCRIBING)

    identifying = []
    for label, text in labels:
        if label not in describing:
            identifying.append(names.get(label, (label, text)))
    return tuple(sorted(identifying))
