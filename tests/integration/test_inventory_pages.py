"""The pages that add, edit and remove devices and targets, on real stores."""

from __future__ import annotations

import re

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft
from tests.integration import api_clients
from tests.integration.audited_actions import audited
from tests.integration.test_device_pages import DeviceWorld, Pages


@pytest.fixture
def world(services: Services) -> DeviceWorld:
    return DeviceWorld(services, minutes=5)


@pytest.fixture
def pages(world: DeviceWorld) -> Pages:
    return Pages(api_clients.client(world.services))


def version(html: str) -> str:
    [found] = re.findall(r'name="version" value="([^"]*)"', html)
    return str(found)


def test_a_device_is_edited_and_renamed(world: DeviceWorld, pages: Pages) -> None:
    """The fields of the command line; the page of the new name says that it was saved."""
    html = pages.get("/devices/sw1/edit")
    assert 'value="192.0.2.1"' in html
    sent = {"version": version(html), "name": "sw9", "tags": "edge lab", "address": "192.0.2.9"}
    assert pages.post("/devices/sw1/edit", **sent) == (303, "../sw9?did=edit&target=")
    found = devices.show(world.services.engine, "sw9")
    assert (found.address, found.tags, found.site) == ("192.0.2.9", ("edge", "lab"), "west")
    assert targets.show(world.services.engine, "sw9", "snmp").id == world.id
    assert [row.action for row in audited(world.services)] == ["device.edit"]


def test_a_wrong_field_changes_nothing_and_keeps_what_was_typed(
    world: DeviceWorld, pages: Pages
) -> None:
    """The error of the command line is beside its field."""
    status, html = pages.post("/devices/sw1/edit", name="other", tags="typed")
    assert status == 409
    assert 'value="typed"' in html
    assert "Nothing was changed." in html
    [wrong] = re.findall(r'id="field-(\w+)"[^>]*aria-invalid', html)
    assert wrong == "name"
    status, html = pages.post("/devices/sw1/edit", address="a b")
    assert status == 422
    assert re.findall(r'id="field-(\w+)"[^>]*aria-invalid', html) == ["address"]
    assert devices.show(world.services.engine, "sw1").tags == ("core",)


def test_an_edit_of_an_old_version_is_refused(world: DeviceWorld, pages: Pages) -> None:
    """Somebody else saved meanwhile."""
    old = version(pages.get("/devices/sw1/edit"))
    devices.edit(world.services.engine, "sw1", DeviceDraft("sw1", tags=("theirs",)))
    status, html = pages.post("/devices/sw1/edit", version=old, tags="mine")
    assert status == 412
    assert "Nothing was changed." in html
    assert devices.show(world.services.engine, "sw1").tags == ("theirs",)


def test_a_target_is_added_by_its_collector(world: DeviceWorld, pages: Pages) -> None:
    """First the collector is chosen, then its options are typed."""
    assert 'href="?collector=ping"' in pages.get("/devices/sw1/add-target")
    assert 'name="option.count"' in pages.get("/devices/sw1/add-target?collector=ping")
    sent = {"collector": "ping", "interval": "30s", "option.count": "7"}
    status, path = pages.post("/devices/sw1/add-target", **sent)
    assert (status, path) == (303, "../sw1?did=target&target=ping")
    found = targets.show(world.services.engine, "sw1", "ping")
    assert (found.interval_ms, found.options) == (30_000, {"count": 7})
    assert "sw1/ping: added" in pages.get("/devices/sw1?did=target&target=ping")


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"interval": "soon"}, "interval"),
        ({"option.count": "many"}, "option-count"),
        ({"name": "snmp"}, "name"),
    ],
)
def test_a_wrong_target_is_shown_again(
    world: DeviceWorld, pages: Pages, sent: dict[str, str], field: str
) -> None:
    """With its error beside the field, and nothing is stored."""
    status, html = pages.post("/devices/sw1/add-target", collector="ping", **sent)
    assert status in (409, 422)
    assert re.findall(r'id="field-([\w-]+)"[^>]*aria-invalid', html) == [field]
    assert len(targets.of_device(world.services.engine, "sw1")) == 1


def test_a_target_and_a_device_are_removed_after_a_question(
    world: DeviceWorld, pages: Pages
) -> None:
    """The question says what is lost, and what becomes of the history."""
    html = pages.get("/devices/sw1/targets/snmp/remove")
    assert "until their retention ends" in html
    path = "/devices/sw1/targets/snmp/remove"
    assert pages.post(path, version=version(html))[0] == 303
    assert targets.of_device(world.services.engine, "sw1") == []
    html = pages.get("/devices/sw1/remove")
    status, path = pages.post("/devices/sw1/remove", version=version(html))
    assert (status, path) == (303, "../-/removed?name=sw1")
    assert "sw1 is removed" in pages.get("/devices/-/removed?name=sw1")
    with pytest.raises(errors.NotFound):
        devices.show(world.services.engine, "sw1")


def test_a_reader_gets_none_of_the_forms(world: DeviceWorld) -> None:
    """They are not linked, and the server refuses them."""
    reading = Pages(api_clients.client(world.services, [Scope.READ]))
    for path in ("edit", "remove", "add-target", "targets/snmp/remove"):
        reading.get(f"/devices/sw1/{path}", 403)
        assert reading.post(f"/devices/sw1/{path}")[0] == 403
    assert "add-target" not in reading.get("/devices/sw1/config")


def test_a_token_of_one_site_edits_its_site_only(world: DeviceWorld) -> None:
    """A device of another site does not exist for it, and it moves none away."""
    west = Pages(api_clients.client(world.services, [Scope.READ, Scope.INVENTORY], site="west"))
    west.get("/devices/other/edit", 404)
    assert west.post("/devices/other/remove")[0] == 404
    assert west.post("/devices/sw1/edit", site="east")[0] == 403
    assert devices.show(world.services.engine, "sw1").site == "west"
