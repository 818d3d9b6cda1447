"""The form of a new device: it carries what was found and typed, and sends what was chosen."""

from __future__ import annotations

import pytest

from poller import errors
from poller.collectors import descriptions
from poller.collectors.ping.collector import PingCollector
from poller.service.discovery.address_discovery import AddressResult, Discovery, Suggested
from poller.web.access.form_values import FormValues
from poller.web.pages.inventory import new_device_commands, new_device_form
from poller.web.pages.inventory.new_device_commands import Takes
from poller.web.pages.inventory.new_device_form import NewDeviceForm

EMPTY = NewDeviceForm(dict.fromkeys(new_device_form.DEVICE, ""))
SNMP = Suggested(
    "snmp",
    {"port": 1161, "modules": ["system", "if_mib"]},
    "a switch",
    "lab",
    "core sw/1",
    {"sysName": "core sw/1"},
)
PING = Suggested("ping", {}, "it answers ICMP")
FOUND = AddressResult("192.0.2.1", [Discovery("snmp", [SNMP]), Discovery("ping", [PING])], 1161)
HAND = new_device_form.hand_form("ping", list(descriptions.options(PingCollector())), ["lab"])


def typed(**fields: str | list[str]) -> FormValues:
    lists = {key: [value] if isinstance(value, str) else value for key, value in fields.items()}
    return FormValues({key.replace("__", "."): value for key, value in lists.items()})


def found(name: str = "", credential: str = "") -> NewDeviceForm:
    texts = {**EMPTY.texts, "address": "192.0.2.1:1161", "name": name, "credential": credential}
    return new_device_form.with_found(NewDeviceForm(texts), FOUND)


def test_an_empty_name_becomes_what_the_device_calls_itself() -> None:
    """In the form of a name of the inventory; a typed one stays."""
    assert found().texts["name"] == "core-sw-1"
    assert found("mine").texts["name"] == "mine"
    assert found().facts == [("sysName", "core sw/1")]


@pytest.mark.parametrize(("text", "name"), [("  ", ""), ("-x", "x"), ("a\x1bb", ""), ("é1", "é1")])
def test_a_name_that_cannot_be_one_is_none(text: str, name: str) -> None:
    """Whatever a device sends, the form has a name that can be stored, or none."""
    assert new_device_form.usable_name(text) == name


def test_the_credential_that_worked_becomes_that_of_the_device() -> None:
    """Targets that used it have none of their own, and are chosen."""
    form = found(credential="old")
    assert form.texts["credential"] == "lab"
    assert [(row.collector, row.is_chosen, row.credential) for row in form.rows] == [
        ("snmp", True, ""),
        ("ping", False, ""),
    ]


def test_a_form_that_was_sent_is_read_back() -> None:
    """Every suggestion survives the next step, chosen or not."""
    form = found()
    sent = {key: [text] for row in form.rows for key, text in row.texts.items()}
    sent |= {key: [text] for key, text in form.texts.items()}
    sent |= {"rows": ["2"], "fact": ["sysName=core sw/1"], "target": ["0"]}
    assert new_device_form.read(FormValues(sent), None) == form


def test_what_was_chosen_is_sent_to_the_service() -> None:
    """Options are words of the form key=value, as on the command line."""
    form = found()
    assert form.rows[0].options == "port=1161 modules=system,if_mib"
    assert new_device_form.device_fields(form) == {
        "name": "core-sw-1",
        "address": "192.0.2.1:1161",
        "credential": "lab",
    }
    options = {"port": "1161", "modules": "system,if_mib"}
    assert new_device_form.target_fields(form) == [{"collector": "snmp", "options": options}]


def test_a_device_without_a_name_has_that_of_its_address() -> None:
    """As in the files of a discovery."""
    form = NewDeviceForm({**EMPTY.texts, "address": "192.0.2.7"})
    assert new_device_form.device_fields(form)["name"] == "192.0.2.7"


def test_a_target_by_hand_is_sent_with_the_suggested_ones() -> None:
    """Its fields have names of their own in the form."""
    sent = typed(collector="ping", hand__interval="30s", target="hand")
    form = new_device_form.read(
        FormValues({**sent._fields, "hand.option.count": ["7"], "address": ["192.0.2.1"]}), HAND
    )
    assert form.has_hand
    assert new_device_form.target_fields(form) == [
        {"collector": "ping", "interval": "30s", "options": {"count": "7"}}
    ]


def test_another_collector_by_hand_begins_empty() -> None:
    """Options of the one before mean something else."""
    form = new_device_form.read(typed(collector="http", hand__interval="30s"), HAND)
    assert form.hand == HAND


def test_options_that_cannot_be_read_name_their_target() -> None:
    """The error stands beside the field."""
    sent = {"rows": ["1"], "target": ["0"], "t.0.collector": ["snmp"], "t.0.options": ["port"]}
    form = new_device_form.read(FormValues(sent), None)
    with pytest.raises(errors.InvalidInput) as refused:
        new_device_form.target_fields(form)
    assert refused.value.field == "targets.0.options"
    [row] = new_device_form.refused(form, refused.value).rows
    assert (row.wrong, row.error) == ("options", '"port" is not of the form key=value')


def test_an_error_of_the_target_by_hand_stands_beside_its_option() -> None:
    """It comes after the chosen suggestions."""
    form = NewDeviceForm(EMPTY.texts, rows=found().rows, hand=HAND, has_hand=True)
    text = 'collector ping: option "count": many is not a whole number'
    error = errors.InvalidInput(text, field="targets.1.options")
    marked = new_device_form.refused(form, error).hand
    assert marked is not None
    assert [each.name for each in marked.fields if each.error] == ["hand.option.count"]


def test_the_commands_do_the_same() -> None:
    """The first target comes with its device, others by `target add`."""
    form = NewDeviceForm(
        {**found().texts, "site": "west", "tags": "core edge"}, ["old"], found().rows
    )
    targets = [*new_device_form.target_fields(form), {"collector": "ping", "options": {}}]
    assert new_device_commands.discover(form) == (
        "poller discover 192.0.2.1:1161 --credential lab --credential old"
    )
    takes = {"snmp": Takes(["lab"], "port"), "ping": Takes((), "")}
    assert new_device_commands.collect(form, targets, takes) == [
        "poller collect snmp 192.0.2.1 --credential lab -o port=1161 -o modules=system,if_mib",
        "poller collect ping 192.0.2.1",
    ]
    by_hand = [{"collector": "snmp", "options": {}}]
    assert new_device_commands.collect(form, by_hand, takes) == [
        "poller collect snmp 192.0.2.1:1161 --credential lab"
    ]
    assert new_device_commands.add(form, targets) == [
        "poller device add core-sw-1 192.0.2.1:1161 --site west --credential lab --tag core"
        " --tag edge --collector snmp -o port=1161 -o modules=system,if_mib",
        "poller target add core-sw-1 --collector ping",
    ]
