"""The series of a shape in columns: like devices share their layout and differ in a few texts.

A worker remembers the shape of every target it polls. As objects, the 154 series of an interface
poll take 16 KB; in columns a device adds its own label texts, which is less than 1 KB.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import NamedTuple
from weakref import WeakValueDictionary

from poller.domain import interned
from poller.domain.metrics.series import Kind, Labels, Series

_KINDS = tuple(Kind)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_KIND_TEXTS = tuple(f',"{kind.value}"' for kind in _KINDS)
_SHORT = 2**16


class Layout:
    """Everything of a shape but its label texts. `shared_layout` gives one object for equal ones.

    Series that have their labels in common refer to one row.
    """

    __slots__ = ("__weakref__", "_hash", "keys", "kinds", "names", "places", "rows", "widths")

    def __init__(
        self,
        names: tuple[str, ...],
        kinds: bytes,
        widths: bytes,
        rows: array[int],
        keys: tuple[tuple[str, ...], ...],
        places: array[int],
    ) -> None:
        self.names = names
        self.kinds = kinds  # numbers of `Kind`
        self.widths = widths
        self.rows = rows  # for each series, its row of labels
        self.keys = keys  # for each row, the names of its labels
        self.places = places  # for each label of each row, the place of its text
        self._hash = hash((names, kinds, widths, rows.tobytes(), keys, places.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Layout) or self._hash != other._hash:
            return False
        return all(getattr(self, column) == getattr(other, column) for column in _COLUMNS)


_COLUMNS = ("names", "kinds", "widths", "rows", "keys", "places")
_layouts: WeakValueDictionary[int, Layout] = WeakValueDictionary()


def _shared_layout(layout: Layout) -> Layout:
    found = _layouts.get(hash(layout))
    if found is not None and found == layout:
        return found
    _layouts[hash(layout)] = layout
    return layout


class Columns(NamedTuple):
    """A layout, and the texts of the labels of one device, each once."""

    layout: Layout
    texts: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of series."""
        return len(self.layout.names)

    @property
    def kinds(self) -> Sequence[Kind]:
        return [_KINDS[number] for number in self.layout.kinds]

    def labels(self) -> list[Labels]:
        """Return the labels of each row."""
        places = iter(self.layout.places)
        texts = self.texts
        return [tuple([(key, texts[next(places)]) for key in keys]) for keys in self.layout.keys]

    def series(self) -> tuple[Series, ...]:
        """Return the series as objects. Series of one row share one object of labels."""
        layout = self.layout
        labels = self.labels()
        columns = zip(layout.names, layout.rows, layout.kinds, layout.widths, strict=True)
        return tuple(
            [Series(name, labels[row], _KINDS[kind], width) for name, row, kind, width in columns]
        )

    def to_json(self) -> str:
        """Return the canonical text of the shape. An unknown width is left out."""
        layout = self.layout
        texts = [_labels_json(labels) for labels in self.labels()]
        names = {name: encode_basestring(name) for name in set(layout.names)}
        widths = {width: f",{width}]" if width else "]" for width in set(layout.widths)}
        columns = zip(layout.names, layout.rows, layout.kinds, layout.widths, strict=True)
        rows = [
            f"[{names[name]},{texts[row]}{_KIND_TEXTS[kind]}{widths[width]}"
            for name, row, kind, width in columns
        ]
        return f"[{','.join(rows)}]"


def columns_of(series: Sequence[Series]) -> Columns:
    """Return the columns of these series."""
    row_numbers: dict[Labels, int] = {}
    by_identity: dict[int, int] = {}  # most series share the labels object of their row
    rows = []
    for each in series:
        row = by_identity.get(id(each.labels))
        if row is None:
            row = row_numbers.setdefault(each.labels, len(row_numbers))
            by_identity[id(each.labels)] = row
        rows.append(row)

    places: dict[str, int] = {}
    flat = [places.setdefault(text, len(places)) for text in _texts(row_numbers)]
    layout = Layout(
        names=_names(series),
        kinds=bytes([_KIND_NUMBERS[each.kind] for each in series]),
        widths=bytes([each.width for each in series]),
        rows=_numbers(rows, len(row_numbers)),
        keys=tuple([_keys(labels) for labels in row_numbers]),
        places=_numbers(flat, len(places)),
    )
    texts = tuple([interned.value(text) for text in places])
    return Columns(_shared_layout(layout), texts)


def _texts(rows: dict[Labels, int]) -> Iterator[str]:
    for labels in rows:
        for _, text in labels:
            yield text


def _names(series: Sequence[Series]) -> tuple[str, ...]:
    names = [each.name for each in series]
    shared = {name: interned.value(name) for name in set(names)}
    return tuple([shared[name] for name in names])


def _keys(labels: Labels) -> tuple[str, ...]:
    return interned.sequence(tuple([key for key, _ in labels]))


def _numbers(given: Sequence[int], below: int) -> array[int]:
    return array("H" if below <= _SHORT else "I", given)


def _labels_json(labels: Labels) -> str:
    pairs = [f"{encode_basestring(label)}:{encode_basestring(text)}" for label, text in labels]
    return f"{{{','.join(pairs)}}}"
