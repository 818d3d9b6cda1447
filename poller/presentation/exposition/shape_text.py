"""The text of polls of one shape: all but the numbers is written once and kept.

A poll of 154 samples is one string format, about a tenth of the cost of writing each line.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from poller.domain.metrics.reading import Kind, SeriesSet
from poller.presentation.exposition import prometheus_text
from poller.presentation.exposition.prometheus_text import FLOAT_MANTISSA

#: Names of the metrics that are shown; None shows all.
Shown = Collection[str] | None


class ShapeText:
    """Writes the polls of one shape: metrics sorted by name, samples by labels."""

    def __init__(
        self, shape: SeriesSet, help_texts: Mapping[str, str], shown: Shown = None
    ) -> None:
        found = [
            (series.name, series.labels, position, series.kind)
            for position, series in enumerate(shape.series)
            if shown is None or series.name in shown
        ]
        found.sort(key=itemgetter(0, 1))
        self.samples = len(found)
        self.help_texts = help_texts
        self._kinds = [kind for _, _, _, kind in found]
        self._template = _template(found, help_texts)
        self._pick: Any = None
        if len(found) > 1:
            self._pick = itemgetter(*(position for _, _, position, _ in found))
        elif found:
            only = found[0][2]
            self._pick = lambda values: (values[only],)

    def text(self, values: Sequence[float]) -> str:
        """Return the lines of a poll, each with its end."""
        if self._pick is None:
            return ""
        picked = self._pick(values)
        if math.isfinite(sum(picked)) and max(picked) < FLOAT_MANTISSA:
            return str(self._template % picked)
        return self._template % tuple(map(_exact, picked, self._kinds))


class ShapeTexts:
    """The texts of the shapes in use; the least recently used gives way."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._texts: OrderedDict[Any, ShapeText] = OrderedDict()

    def get(
        self, shape: SeriesSet, help_texts: Mapping[str, str], shown: frozenset[str] | None = None
    ) -> ShapeText:
        """Return the text of a shape with these help texts, which are compared by identity.

        The kept text holds the mapping, so that no other one gets its identity.
        """
        key = (shape.id, id(help_texts), shown)
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = ShapeText(shape, help_texts, shown)
            if len(self._texts) > self._most:
                self._texts.popitem(last=False)
        else:
            self._texts.move_to_end(key)
        return found


def _template(found: Sequence[Any], help_texts: Mapping[str, str]) -> str:
    lines = []
    last = None
    for name, labels, _, kind in found:
        if name != last:
            lines += [_plain(line) for line in prometheus_text.head(name, kind, help_texts)]
            last = name
        lines.append(f"{_plain(prometheus_text.series_text(name, labels))} %s")
    return "".join(f"{line}\n" for line in lines)


def _plain(text: str) -> str:
    return text.replace("%", "%%")


def _exact(value: float, kind: Kind) -> str:
    """A value that is no usual number: a large counter, NaN or infinite."""
    if kind is Kind.COUNTER and math.isfinite(value) and value >= FLOAT_MANTISSA:
        value %= FLOAT_MANTISSA
    return prometheus_text.value_text(value)
