"""Details of a run become a JSON object that fits, whatever a handler returned."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poller.domain.jobs import run_details


def size(document: dict[str, Any]) -> int:
    return len(json.dumps(document, ensure_ascii=False).encode())


def test_plain_details_stay_as_they_are() -> None:
    """JSON values of usual size are kept, nested ones too."""
    details = {"rows": 3, "share": 0.5, "done": True, "none": None, "parts": [{"a": ["é"]}, []]}
    assert run_details.storable(details) == details
    assert run_details.storable({}) == {}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**30, "a number of 100 bits"),
        pytest.param(10**5000, "a number of 16610 bits", id="huge"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\ufffd"),
        ("a\0b", "a\ufffdb"),
        pytest.param("a\ud800b", "a?b", id="half a pair"),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
    ],
)
def test_values_that_json_lacks_become_text(value: Any, stored: Any) -> None:
    """NaN, bytes, huge numbers, instants and characters that a database refuses."""
    assert run_details.storable({"value": value}) == {"value": stored}


def test_keys_become_text() -> None:
    """JSON has no other keys."""
    assert run_details.storable({1: "a", None: "b", "c\0": 1}) == {"1": "a", "None": "b", "c�": 1}


def test_another_value_than_a_mapping_is_kept_under_a_name() -> None:
    """A list or a number is no object."""
    assert run_details.storable([1, 2]) == {"value": [1, 2]}
    assert run_details.storable(None) == {"value": None}


def test_large_details_are_cut_with_a_note() -> None:
    """Keys that come first are kept; a text is cut between characters."""
    details = {"first": 1, "text": "漢🙂" * 10_000, "last": 2}
    stored = run_details.storable(details)
    assert run_details.LIMIT_BYTES * 0.9 < size(stored) <= run_details.LIMIT_BYTES
    assert stored["first"] == 1
    assert details["text"].startswith(stored["text"])
    assert str(run_details.LIMIT_BYTES) in stored[run_details.CUT]
    assert "last" not in stored


def test_details_just_below_the_limit_are_not_cut() -> None:
    """Sixteen KiB less the room for the note is kept whole."""
    details = {"text": "x" * (run_details.LIMIT_BYTES - 300)}
    assert run_details.storable(details) == details


def test_cycles_end() -> None:
    """A value that contains itself is followed some steps deep."""
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle
    wide: list[Any] = []
    wide.extend([wide] * 50)
    assert size(run_details.storable(cycle)) < run_details.LIMIT_BYTES
    assert size(run_details.storable({"wide": wide})) <= run_details.LIMIT_BYTES


class Hostile:
    """An object whose methods raise."""

    def __str__(self) -> str:
        raise SystemExit("no")


class HostileMapping(dict[str, Any]):
    """A mapping whose items cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("no")


def test_code_of_the_handler_that_raises_is_noted() -> None:
    """Neither a value nor a mapping of the handler keeps the run from its end."""
    assert run_details.storable({"value": Hostile()}) == {"value": "<Hostile>"}
    assert "RuntimeError" in run_details.storable(HostileMapping(a=1))[run_details.CUT]


_LONG = st.builds(lambda part, number: part * number, st.text(max_size=5), st.integers(0, 20_000))
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | _LONG
_VALUES = _SCALARS | st.lists(_SCALARS) | st.dictionaries(st.text() | st.integers(), _SCALARS)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), _VALUES))
def test_anything_fits(details: dict[str, Any]) -> None:
    """The result is strict JSON within the limit, without NUL and halves of characters."""
    stored = run_details.storable(details)
    text = json.dumps(stored, ensure_ascii=False, allow_nan=False)
    assert len(text.encode()) <= run_details.LIMIT_BYTES
    assert not any("\0" in part for part in _texts(stored))


def _texts(value: Any) -> Iterator[str]:
    """All texts of a JSON value, its keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
