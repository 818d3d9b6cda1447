"""`key=value` words become values of the types a collector declares."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from poller import errors
from poller.cli.arguments import key_values
from poller.service.inventory import option_texts


class Inner(BaseModel):
    x: int


class Model(BaseModel):
    port: int = 1
    names: tuple[str, ...] = ()
    maybe: list[int] | None = None
    either: str | list[str] = ""
    table: dict[str, int] = {}
    inner: Inner | None = None


def test_pairs_are_split_at_the_first_equals_sign() -> None:
    """A value may contain equals signs."""
    assert key_values.pairs(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize("given", [["a"], ["=b"], ["a=1", "a=2"]])
def test_odd_pairs_are_refused(given: list[str]) -> None:
    """A missing key, a missing sign and a repeated key are errors."""
    with pytest.raises(errors.InvalidInput):
        key_values.pairs(given)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("port", "161", "161"),
        ("names", "a, b", ["a", "b"]),
        ("names", '["a,b"]', ["a,b"]),
        ("names", "[a, b]", ["a", "b"]),
        ("maybe", "1,2", ["1", "2"]),
        ("either", "a,b", "a,b"),
        ("table", '{"a": 1}', {"a": 1}),
        ("inner", '{"x": 1}', {"x": 1}),
        ("unknown", "x", "x"),
    ],
)
def test_lists_and_structures_are_parsed(key: str, text: str, expected: object) -> None:
    """Other texts are left to the model."""
    assert option_texts.typed(Model, {key: text}) == {key: expected}


def test_a_broken_structure_names_the_option() -> None:
    """The error quotes the option's name."""
    with pytest.raises(errors.InvalidInput, match='"table"'):
        option_texts.typed(Model, {"table": "{"})
