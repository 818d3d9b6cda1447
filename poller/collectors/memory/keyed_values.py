"""A mapping of OIDs to values that is kept long and read rarely.

Like devices share the tuple of OIDs, and each value that many of them have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from poller.domain import interned

Value = int | float | str | bytes | None


class KeyedValues(NamedTuple):
    """Keys, and the value of each."""

    keys: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, Value]) -> KeyedValues:
        values = [_shared(value) for value in mapping.values()]
        return cls(interned.sequence(tuple(mapping)), tuple(values))

    def to_dict(self) -> dict[str, Value]:
        return dict(zip(self.keys, self.values, strict=True))


NO_VALUES = KeyedValues()


def _shared(value: Value) -> Value:
    return interned.value(value) if isinstance(value, int | str | bytes) else value
