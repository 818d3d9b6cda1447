"""The navigation: each page has a key, an address and a title of its own."""

from __future__ import annotations

from collections import Counter

import pytest

from poller.web.pages.frame import navigation


@pytest.mark.parametrize("field", ["key", "path", "title"])
def test_no_two_pages_share(field: str) -> None:
    """A key that two pages have leads to the first of them only."""
    used = Counter(getattr(entry, field) for entry in navigation.ENTRIES)
    del used[""]  # the path of the overview, and pages without a key
    assert {value: number for value, number in used.items() if number > 1} == {}


def test_a_key_is_one_letter() -> None:
    """It is typed after `g`; `g` itself would begin again."""
    keys = [entry.key for entry in navigation.ENTRIES if entry.key]
    assert [key for key in keys if len(key) != 1 or not key.islower() or key == "g"] == []
