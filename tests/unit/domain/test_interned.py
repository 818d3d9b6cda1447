"""Equal values become one object, within limits."""

from __future__ import annotations

from poller.collectors.snmp.wire.value_types import Counter32
from poller.domain import interned


def made(*parts: str) -> str:
    return "".join(parts)


def test_equal_texts_are_one_object() -> None:
    """A label text of ten thousand devices is stored once."""
    assert interned.value(made("ge0", "/1")) is interned.value(made("ge0/", "1"))


def test_values_of_two_types_stay_apart() -> None:
    """A Counter32 has a width, an integer of the same number has none."""
    assert type(interned.value(Counter32(77_777))) is Counter32
    assert type(interned.value(int("77777"))) is int


def test_a_long_text_is_not_kept() -> None:
    """A hostile device must not fill the cache with long texts."""
    first, second = made("x" * 500, "y"), made("x" * 500, "y")
    assert interned.value(first) is first
    assert interned.value(second) is second


def test_equal_mappings_are_one_that_cannot_be_changed() -> None:
    """Each owner replaces its mapping instead of changing it."""
    shared = interned.numbers({"a": 1})
    assert interned.numbers({"a": 1}) is shared
    assert dict(shared) == {"a": 1}
    assert not hasattr(shared, "__setitem__")
