"""Tags that are added and removed."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.inventory import tag_change
from poller.domain.inventory.tag_change import TagChange


def test_tags_are_added_and_removed() -> None:
    """Other tags stay, each once and in order."""
    change = tag_change.checked(None, ["new", "core"], ["old"])
    assert change == TagChange(("core", "new"), ("old",))
    assert change.applied_to(["old", "lab", "core"]) == ["core", "lab", "new"]


def test_nothing_to_add_or_remove_is_no_change() -> None:
    """A replacement alone is left to the fields of the device."""
    assert tag_change.checked(["a"], [], []) is None


@pytest.mark.parametrize(("tags", "add"), [(["a"], ["b"]), ([], ["b"]), (None, ["a b"])])
def test_a_contradiction_or_a_bad_tag_is_refused(tags: list[str] | None, add: list[str]) -> None:
    """New tags replace the old ones, added ones change them: not both."""
    with pytest.raises(errors.InvalidInput):
        tag_change.checked(tags, add, [])
