"""One series: a line of values with a name, labels and a kind."""

from __future__ import annotations

import enum
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]


class Kind(enum.StrEnum):
    """The meaning of a value: a counter only grows, a gauge moves, an info is 1 and has labels."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Series:
    """Name, labels (sorted by key) and kind of one line of values; the width of a counter or 0."""

    name: str
    labels: Labels
    kind: Kind
    width: int = 0
