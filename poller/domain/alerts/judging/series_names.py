"""The series of a shape as people know them: `ifName=eth0` instead of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from poller.domain.alerts import mark
from poller.domain.metrics import series_identity
from poller.domain.metrics.counter_evidence import EvidenceFinder
from poller.domain.metrics.reading import Labels, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity, Key

#: Shapes that a process knows by name: those of targets for which a rule holds, or nearly.
_MOST_SHAPES = 512


@dataclass(frozen=True, slots=True)
class SeriesNames:
    """The parts that a plan leaves out: texts, labels and evidence, by column."""

    series: Sequence[Series]
    keys: Sequence[Key]
    texts: Sequence[str]
    finder: EvidenceFinder


@lru_cache(maxsize=_MOST_SHAPES)
def names_of(shape: SeriesSet, by: Identity) -> SeriesNames:
    """Return the names of a shape's series."""
    keys = series_identity.series_keys(shape, by)
    texts = {labels: _text(labels) for _, labels in keys}
    return SeriesNames(
        shape.series, keys, [texts[labels] for _, labels in keys], EvidenceFinder(shape)
    )


def _text(labels: Labels) -> str:
    """The labels that identify a series; "" for the only one of its name."""
    return mark.plain(",".join(f"{label}={text}" for label, text in labels))
