"""The range of texts with a prefix ends where the next prefix begins."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.db.inventory.key_order import first_behind

TEXTS = st.text(max_size=6)


@given(st.text(min_size=1, max_size=4), TEXTS, TEXTS)
def test_the_first_text_behind_a_prefix_separates(prefix: str, end: str, other: str) -> None:
    """Texts with the prefix are before it; a later text without the prefix is not."""
    behind = first_behind(prefix)
    assert not behind or prefix + end < behind
    if other > prefix and not other.startswith(prefix):
        assert behind
        assert other >= behind


def test_there_is_nothing_behind_the_last_character() -> None:
    """A prefix of last characters only has no end."""
    assert first_behind("\U0010ffff\U0010ffff") == ""
    assert first_behind("\ud7ff") == "\ue000"
