"""What an import changes: by field, and as a digest that stands for all of it."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.domain.inventory.import_changes import FieldChange, ImportChanges

DEVICE: dict[str, Any] = {
    "name": "sw1",
    "address": "192.0.2.1",
    "site_id": 1,
    "credential_id": None,
    "tags": ["core"],
    "requires": {},
    "enabled": True,
}


def changes(expected: str = "") -> ImportChanges:
    made = ImportChanges(expected)
    made.name_references({"west": 1, "east": 2}, {"lab": 7})
    return made


def test_only_fields_that_differ_are_changes() -> None:
    """Sites and credentials have their names, as in a file."""
    found = changes()
    found.add_device({**DEVICE, "site_id": 2, "credential_id": 7}, DEVICE, ("", "core-1"))
    assert found.rows[0].fields == [
        FieldChange("site", "west", "east"),
        FieldChange("credential", "", "lab"),
        FieldChange("parent", "", "core-1"),
    ]
    assert not found.rows[0].is_new


def test_a_new_row_has_nothing_before() -> None:
    """All of its fields are new."""
    found = changes()
    found.add_device(DEVICE, None, None)
    assert found.rows[0].is_new
    assert {each.before for each in found.rows[0].fields} == {None}
    assert found.rows[0].fields[0] == FieldChange("address", None, "192.0.2.1")


def test_the_digest_stands_for_the_changes_and_not_for_their_order() -> None:
    """Another value before or after is another digest."""
    digests = set()
    for names in (["a", "b"], ["b", "a"]):
        found = changes()
        for name in names:
            found.add_device({**DEVICE, "name": name}, None, None)
        digests.add(found.digest)
    assert len(digests) == 1
    other = changes()
    other.add_device({**DEVICE, "name": "a"}, None, None)
    other.add_device({**DEVICE, "name": "b"}, {**DEVICE, "name": "b", "tags": []}, None)
    assert other.digest not in digests


def test_other_changes_than_the_expected_ones_are_refused() -> None:
    """Without an expectation any change is fine."""
    seen = changes()
    seen.add_device(DEVICE, None, None)
    same = changes(seen.digest)
    same.add_device(DEVICE, None, None)
    same.refuse_others()
    with pytest.raises(errors.EditConflict):
        changes(seen.digest).refuse_others()
    changes().refuse_others()
