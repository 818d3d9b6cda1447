"""Names, tags and requirements: valid forms and messages for the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.domain.inventory import naming
from poller.domain.scheduling import queue_routing


@pytest.mark.parametrize("text", ["sw1", "core-1.west", "größe", "a" * 200, "r1:chassis", "日本"])
def test_names_that_pass(text: str) -> None:
    """Printable and without blanks, in any script."""
    assert naming.checked_name(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("a b", "a blank"),
        ("a/b", '"/"'),
        ("a\x00b", "unprintable"),
        ("a\nb", "a blank"),
        ("a" * 201, "201"),
        ("-a", "starts with -"),
        ("a\\b", '"'),
        (7, "must be text"),
        (None, "must be text"),
    ],
)
def test_invalid_names(text: object, reason: str) -> None:
    """The message names the fault in one printable line."""
    with pytest.raises(errors.InvalidInput, match=reason) as caught:
        naming.checked_name(text)
    assert caught.value.message.isprintable()


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_requirements_never_confuse_queues(pairs: dict[str, str]) -> None:
    """Valid requirements can be parsed from the queue's name."""
    try:
        checked = naming.parse_requirements(pairs)
    except errors.InvalidInput:
        return
    name = queue_routing.queue_name("snmp", checked)
    assert dict(part.split("=") for part in name.split(";")[1:]) == pairs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a"], '"a" is not of the form'),
        (["=b"], "key is empty"),
        (["a="], "value is empty"),
        (["a=b c"], "value contains a blank"),
        (["a=b;c=d"], 'value contains ";"'),
        (["a=1", "a=2"], '"a" is given twice'),
        (["a=b,c"], 'value contains ","'),
        (["a=b=c"], 'value contains "="'),
        (["\u00e4=b"], 'key contains "\u00e4"'),
        (["a=\x07"], "unprintable"),
        (["a=b\n"], "value contains a blank"),
        (["a=" + "b" * 65], "has 65 characters"),
        ({"a": 5}, "value is 5, not text"),
        ({5: "a"}, "key is 5, not text"),
        ({"a": None}, "value is None, not text"),
    ],
)
def test_odd_requirements_are_named(words: list[str] | dict[str, str], said: str) -> None:
    """A key with two values and a YAML value that is not text are refused."""
    with pytest.raises(errors.InvalidInput, match='"') as caught:
        naming.parse_requirements(words)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_tags_are_sorted_and_unique() -> None:
    """Two spellings of one set are equal."""
    assert naming.checked_tags(["b", "a", "b"]) == ("a", "b")
    with pytest.raises(errors.InvalidInput, match='"two words"'):
        naming.checked_tags(["two words"])
