"""The text of polls of one shape: all but the numbers is written once and kept.

A poll of 154 samples is one string format, about a tenth of the cost of writing each line. Devices
of one model share the format; only the texts of their labels are their own.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from poller.domain.metrics.reading import Kind, Labels, SeriesSet
from poller.presentation.exposition import prometheus_text
from poller.presentation.exposition.prometheus_text import FLOAT_MANTISSA

#: Names of the metrics that are shown; None shows all.
Shown = Collection[str] | None
#: Of each line: metric, kind, position of its number in a poll, and which labels it has.
_Line = tuple[str, Kind, int, int]


class _Layout:
    """The lines of shapes that differ in their labels only."""

    def __init__(self, lines: Sequence[_Line], size: int, help_texts: Mapping[str, str]) -> None:
        self.help_texts = help_texts  # held, so that no other mapping gets its identity
        self.template = _template(lines, help_texts)
        self.counters = [False] * size
        places: list[int] = []
        for _, kind, position, row in lines:
            self.counters[position] = kind is Kind.COUNTER
            places += (size + row, position)  # the labels stand behind the numbers
        self.pick: Any = itemgetter(*places) if places else None


class ShapeText:
    """Writes the polls of one shape: metrics sorted by name, samples by labels."""

    def __init__(
        self,
        shape: SeriesSet,
        help_texts: Mapping[str, str],
        shown: Shown = None,
        layouts: dict[Any, _Layout] | None = None,
    ) -> None:
        found = [
            (series.name, series.labels, position, series.kind)
            for position, series in enumerate(shape.series)
            if shown is None or series.name in shown
        ]
        found.sort(key=itemgetter(0, 1))
        self.samples = len(found)
        rows: dict[Labels, int] = {}
        lines: list[_Line] = []
        for name, labels, position, kind in found:
            row = rows.setdefault(labels, len(rows))
            lines.append((name, kind, position, row))
        self._labels = tuple(prometheus_text.labels_text(labels) for labels in rows)
        self._layout = _layout(lines, len(shape), help_texts, layouts)

    def text(self, values: Sequence[float]) -> str:
        """Return the lines of a poll, each with its end."""
        layout = self._layout
        if layout.pick is None:
            return ""
        shown: Sequence[Any] = values
        if not math.isfinite(sum(values)) or max(values) >= FLOAT_MANTISSA:
            shown = list(map(_exact, values, layout.counters))
        return str(layout.template % layout.pick((*shown, *self._labels)))


class ShapeTexts:
    """The texts of the shapes in use; the least recently used gives way."""

    def __init__(self, most: int = 50_000, most_layouts: int = 1_000) -> None:
        self._most = most
        self._most_layouts = most_layouts
        self._texts: OrderedDict[Any, ShapeText] = OrderedDict()
        self._layouts: dict[Any, _Layout] = {}

    def get(
        self, shape: SeriesSet, help_texts: Mapping[str, str], shown: frozenset[str] | None = None
    ) -> ShapeText:
        """Return the text of a shape with these help texts, which are compared by identity."""
        key = (shape.id, id(help_texts), shown)
        found = self._texts.get(key)
        if found is not None:
            self._texts.move_to_end(key)
            return found
        if len(self._layouts) >= self._most_layouts:
            self._layouts.clear()
            self._texts.clear()  # their mappings may be gone, and their identities used again
        found = self._texts[key] = ShapeText(shape, help_texts, shown, self._layouts)
        if len(self._texts) > self._most:
            self._texts.popitem(last=False)
        return found


def _layout(
    lines: Sequence[_Line],
    size: int,
    help_texts: Mapping[str, str],
    layouts: dict[Any, _Layout] | None,
) -> _Layout:
    if layouts is None:
        return _Layout(lines, size, help_texts)
    key = (tuple(lines), size, id(help_texts))
    if key not in layouts:
        layouts[key] = _Layout(lines, size, help_texts)
    return layouts[key]


def _template(lines: Sequence[_Line], help_texts: Mapping[str, str]) -> str:
    texts = []
    last = None
    for name, kind, _, _ in lines:
        if name != last:
            texts += [_plain(line) for line in prometheus_text.head(name, kind, help_texts)]
            last = name
        texts.append(f"{_plain(name)}%s %s")
    return "".join(f"{text}\n" for text in texts)


def _plain(text: str) -> str:
    return text.replace("%", "%%")


def _exact(value: float, is_counter: bool) -> str:
    """A value that may be no usual number: a large counter, NaN or infinite."""
    if is_counter and math.isfinite(value) and value >= FLOAT_MANTISSA:
        value %= FLOAT_MANTISSA
    return prometheus_text.value_text(value)
