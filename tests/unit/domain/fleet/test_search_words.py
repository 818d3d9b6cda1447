"""A search as people type it becomes a filter of the one language."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.fleet import search_words
from poller.domain.inventory import target_filter


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", ""),
        ("west", "name:'*west*'"),
        ("sw-*", "name:'sw-*'"),
        ("10.1.2.3", "address:10.1.2.3"),
        ("10.1.", "address:'10.1.*'"),
        ("10.1.0.0/16", "address:10.1.0.0/16"),
        ("state:failing west", "state:failing name:'*west*'"),
        ("site:'two words'", "site:'two words'"),
        ("core-1.west", "name:'*core-1.west*'"),
    ],
)
def test_a_word_without_a_key_is_a_part_of_a_name_or_an_address(typed: str, meant: str) -> None:
    """Words with a key stay as they are."""
    assert search_words.as_filter(typed) == target_filter.parse(meant)


@pytest.mark.parametrize("typed", ["colour:red", "state:fine", "'west", "address:10.0.0.0/99"])
def test_a_search_that_cannot_be_read_says_what_to_do(typed: str) -> None:
    """The error has a hint."""
    with pytest.raises(errors.InvalidInput) as caught:
        search_words.as_filter(typed)
    assert caught.value.hint or caught.value.cause


def test_a_facet_adds_a_value_and_takes_it_away_again() -> None:
    """Other keys stay, and a second value of a key is one of several."""
    begin = target_filter.parse("site:west tag:core")
    failing = search_words.toggled(begin, "states", "failing")
    assert target_filter.text(failing) == "site:west tag:core state:failing"
    both = search_words.toggled(failing, "sites", "east")
    assert target_filter.text(both) == "site:west,east tag:core state:failing"
    assert search_words.toggled(failing, "states", "failing") == begin
