"""A file is imported by page: all problems at once, or a preview that the import is held to."""

from __future__ import annotations

import html
import re

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.collectors.credentials import Community
from poller.db.inventory import credential_rows, devices, targets
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.integration import api_clients
from tests.integration.audited_actions import audited
from tests.integration.test_device_pages import Pages, cells
from tests.integration.test_new_device_pages import form_of

IMPORT = "/devices/-/import"
FILE = (
    "name,address,site,tags,collector,options,interval\n"
    "sw1,192.0.2.9,west,core,snmp,port=1161,5m\n"
    "sw2,192.0.2.2,west,access,ping,,1m\n"
)


@pytest.fixture
def pages(services: Services) -> Pages:
    """A browser; the inventory has sw1 with a target."""
    draft = DeviceDraft("sw1", "192.0.2.1", site="west", tags=("core",))
    target = TargetDraft("snmp", "snmp", {"port": 161}, interval_ms=60_000)
    devices.add(services.engine, draft, [target])
    return Pages(api_clients.client(services))


def sent(text: str, **fields: str) -> dict[str, str]:
    return {"text": text.replace("\n", "\r\n"), "update": "yes", "do": "preview", **fields}


def expected(page: str) -> str:
    [found] = re.findall(r'name="expected" value="(\w+)"', page)
    return str(found)


def test_three_errors_are_three_lines(services: Services, pages: Pages) -> None:
    """Each has its line, its field and what to do; the text stays, and nothing is stored."""
    text = (
        "name,address,collector,interval\n"
        "a,192.0.2.300,ping,1m\n"
        "b,192.0.2.2,pnig,1m\n"
        "c,192.0.2.3,ping,5 min\n"
    )
    status, page = pages.post(IMPORT, **sent(text))
    assert status == 422
    assert [row[:2] for row in cells(page, "problems")] == [
        ["2", "address"],
        ["3", "collector"],
        ["4", "interval"],
    ]
    assert "did you mean ping?" in page
    assert "c,192.0.2.3,ping,5 min" in html.unescape(page)
    assert 'value="import"' not in page
    assert [row.action for row in audited(services)] == []


def test_what_was_previewed_is_imported(services: Services, pages: Pages) -> None:
    """Each field before and after; one audit row, and no trace of the preview."""
    status, page = pages.post(IMPORT, **sent(FILE))
    assert status == 200
    assert "1 device added, 1 changed, 0 left alone" in page
    assert "1 target added, 1 changed, 0 left alone" in page
    rows = {row[0]: row for row in cells(html.unescape(page), "import-changes")}
    assert list(rows) == ["sw1", "sw1/snmp", "sw2", "sw2/ping"]
    assert rows["sw1"][2] == "address 192.0.2.1 → 192.0.2.9"
    assert "option port 161 → 1161" in rows["sw1/snmp"][2]
    assert "interval 1m → 5m" in rows["sw1/snmp"][2]
    assert rows["sw2"][1] == "new device"
    assert devices.show(services.engine, "sw1").address == "192.0.2.1"

    again = sent(FILE, do="import", expected=expected(page))
    status, path = pages.post(IMPORT, **again)
    assert status == 303
    assert "1 device added, 1 changed" in pages.get(f"/devices/-/{path}")
    assert devices.show(services.engine, "sw1").address == "192.0.2.9"
    [target] = targets.of_device(services.engine, "sw1")
    assert (target.options, target.interval_ms) == ({"port": 1161}, 300_000)
    assert [row.action for row in audited(services)] == ["device.import"]

    status, page = pages.post(IMPORT, **sent(FILE))
    assert "The inventory has all of it already." in page
    assert 'value="import"' not in page


@pytest.mark.parametrize("changed", ["inventory", "file"])
def test_another_plan_than_the_previewed_one_is_not_carried_out(
    services: Services, pages: Pages, changed: str
) -> None:
    """Somebody changed what the preview showed: the new one is shown, and can be imported."""
    _, page = pages.post(IMPORT, **sent(FILE))
    text = FILE
    if changed == "inventory":
        devices.edit(services.engine, "sw1", DeviceDraft("sw1", address="192.0.2.77"))
    else:
        text = FILE.replace("192.0.2.9", "192.0.2.8")
    status, page = pages.post(IMPORT, **sent(text, do="import", expected=expected(page)))
    assert status == 412
    assert "is not what the preview showed" in page
    assert "Nothing was imported" in page
    with pytest.raises(errors.NotFound):
        devices.show(services.engine, "sw2")
    rows = cells(html.unescape(page), "import-changes")
    shown = "192.0.2.77 → 192.0.2.9" if changed == "inventory" else "192.0.2.1 → 192.0.2.8"
    assert rows[0][2] == f"address {shown}"
    status, _ = pages.post(IMPORT, **sent(text, do="import", expected=expected(page)))
    assert status == 303
    assert devices.show(services.engine, "sw2").address == "192.0.2.2"


def test_an_import_without_a_preview_is_a_preview(services: Services, pages: Pages) -> None:
    """A form that names no plan changes nothing."""
    status, page = pages.post(IMPORT, **sent(FILE, do="import"))
    assert status == 200
    assert "Would be done" in page
    assert devices.show(services.engine, "sw1").address == "192.0.2.1"


def test_devices_that_exist_are_left_alone_unless_they_may_change(pages: Pages) -> None:
    """As without `--update`."""
    fields = sent(FILE)
    del fields["update"]
    status, page = pages.post(IMPORT, **fields)
    assert status == 422
    [row] = cells(html.unescape(page), "problems")
    assert row[:3] == ["2", "name", "There is a device of this name already"]
    assert 'name="update" value="yes">' in page


def test_a_file_without_targets_gets_the_chosen_collector(services: Services, pages: Pages) -> None:
    """The default one, another one, or none."""
    for collector, shown in (("", "x/ping"), ("snmp", "x/snmp"), ("-", "")):
        text = "- name: x\n  address: 192.0.2.5\n"
        _, page = pages.post(IMPORT, **sent(text, collector=collector))
        names = [row[0] for row in cells(page, "import-changes")]
        assert names == ["x", *([shown] if shown else [])]


@pytest.mark.parametrize("form", ["csv", "yaml", "json"])
def test_the_examples_can_be_imported(services: Services, pages: Pages, form: str) -> None:
    """They name a credential, which has to exist."""
    secret = Community.from_text("planted-hunter22")
    envelope = services.keyring.seal(secret.to_json(), "core-snmp", secret.kind)
    credential_rows.add(services.engine, "core-snmp", secret.kind, envelope)
    text = pages.get(f"/devices/-/example.{form}")
    status, page = pages.post(IMPORT, **sent(text))
    assert status == 200, page
    assert "1 device added, 1 changed" in page
    assert pages.post(IMPORT, **sent(text, do="import", expected=expected(page)))[0] == 303
    assert devices.show(services.engine, "sw2").parent == "sw1"
    exported = pages.get("/api/v1/export?format=csv")
    assert "The inventory has all of it already." in pages.post(IMPORT, **sent(exported))[1]


def test_a_text_that_is_no_inventory_is_refused(pages: Pages) -> None:
    """So is none at all, and one that is larger than a form may be."""
    assert "There is no text" in pages.post(IMPORT, **sent(" "))[1]
    status, page = pages.post(IMPORT, **sent("[1, 2"))
    assert status == 422
    assert cells(page, "problems")[0][1] == "file"
    many = "".join(f"device-{number},192.0.2.1,west\n" for number in range(2_500))
    status, page = pages.post(IMPORT, **sent("name,address,site\n" + many))
    assert status == 200
    assert "2,500 devices added" in page
    assert "and 4,800 more" in page
    assert pages.post(IMPORT, **sent("x" * 4_200_000))[0] == 413


def test_secrets_of_options_are_not_in_a_preview(services: Services, pages: Pages) -> None:
    """An old option with a secret may be stored; its change is shown without it."""
    url = "https://192.0.2.1/x?api_key=planted-hunter22"
    target = TargetDraft("old", "ping", {"url": url})
    targets.add(services.engine, "sw1", target)
    text = "name,target,collector,options\nsw1,old,ping,count=2\n"
    status, page = pages.post(IMPORT, **sent(text))
    assert status == 200
    assert "option url" in page
    assert "planted-hunter22" not in page


def test_a_reader_imports_nothing(services: Services, pages: Pages) -> None:
    """The server refuses the form, the preview and the examples."""
    reading = Pages(api_clients.client(services, [Scope.READ]))
    reading.get(IMPORT, 403)
    reading.get("/devices/-/example.csv", 403)
    assert reading.post(IMPORT, **sent(FILE))[0] == 403


def test_a_token_of_one_site_imports_into_its_site(services: Services, pages: Pages) -> None:
    """Other sites are problems of their lines."""
    west = Pages(api_clients.client(services, [Scope.INVENTORY], site="west"))
    text = FILE.replace("192.0.2.2,west", "192.0.2.2,east")
    west.get(IMPORT)
    status, page = west.post(IMPORT, **sent(text))
    assert status == 422
    [row] = cells(html.unescape(page), "problems")
    assert row[:3] == ["3", "site", 'You are limited to site "west"']
    status, page = west.post(IMPORT, **sent(FILE))
    assert status == 200
    assert west.post(IMPORT, **sent(FILE, do="import", expected=expected(page)))[0] == 303


def test_a_form_of_another_site_imports_nothing(services: Services, pages: Pages) -> None:
    """The form has a token of its browser."""
    answer = pages.client.post(IMPORT, data=sent(FILE, csrf_token="x"))
    assert answer.status_code == 403
    assert form_of(pages.get(IMPORT))["csrf_token"] != ["x"]
