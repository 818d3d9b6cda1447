"""The form of a device: what it changes, its errors, and the command that does the same."""

from __future__ import annotations

import pytest
import web_devices

from poller import errors
from poller.web.pages.inventory import device_form
from poller.web.pages.inventory.device_form import Choices

FORM = device_form.build(web_devices.DEVICE, Choices(["lab", "old"], ["east", "west"]))


def test_every_field_that_people_edit_is_in_the_form() -> None:
    """Lists are words, and stored credentials are chosen, never typed."""
    fields = {each.name: each for each in FORM.fields}
    assert set(fields) == set(web_devices.DEVICE.fields)
    assert (fields["tags"].text, fields["requires"].text) == ("core new", "zone=dmz")
    assert fields["credential"].choices == ["", "lab", "old"]
    assert fields["site"].suggestions == ["east", "west"]


def test_only_changed_texts_are_changes() -> None:
    """What was not sent and what was not touched stays."""
    sent = {each.name: each.text for each in FORM.fields}
    assert device_form.changes(FORM, sent) == {}
    sent |= {"tags": "core  edge", "enabled": "false", "credential": ""}
    assert device_form.changes(FORM, sent) == {
        "tags": ["core", "edge"],
        "enabled": False,
        "credential": "",
    }


def test_a_credential_that_is_not_offered_stays() -> None:
    """A reader who may not use it does not take it away by saving the form."""
    form = device_form.build(web_devices.DEVICE, Choices([], []))
    [credential] = [each for each in form.fields if each.name == "credential"]
    assert credential.text in credential.choices


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (errors.InvalidInput("the address is empty", field="address"), "address"),
        (errors.AlreadyExists('a device is named "sw2" already'), "name"),
        (errors.NotAllowed("parent: no device"), "parent"),
        (errors.NotAllowed('credential "x" is not used at site "west"'), "credential"),
        (errors.EditConflict("device sw1 was changed meanwhile"), ""),
    ],
)
def test_an_error_stands_beside_its_field(error: errors.PollerError, field: str) -> None:
    """What was typed is kept."""
    wrong = device_form.refused(FORM, {"address": "typed"}, error)
    assert [each.name for each in wrong.fields if each.error] == ([field] if field else [])
    assert {each.name: each.text for each in wrong.fields}["address"] == "typed"
    assert wrong.error == str(error)


def test_the_command_makes_the_same_changes() -> None:
    """It can be pasted as it is."""
    changed = {"name": "sw 2", "tags": ["a", "b"], "requires": [], "enabled": False, "site": ""}
    assert device_form.command("sw1", changed) == (
        "poller device edit sw1 --rename 'sw 2' --tag a --tag b --no-requires --disable --site ''"
    )


def test_a_new_device_needs_only_its_address() -> None:
    """Its name is the address unless one is given."""
    fields = {each.name: each for each in device_form.of_new({"address": "x"}, Choices())}
    assert [each.name for each in fields.values() if each.is_required] == ["address"]
    assert fields["address"].text == "x"
