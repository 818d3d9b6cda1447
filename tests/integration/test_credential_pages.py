"""The pages of credentials on real stores: secrets go in, and are nowhere afterwards."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
import redis
import sqlalchemy as sa
from structlog.testing import capture_logs

from poller.bootstrap import Services
from poller.collectors import credentials
from poller.collectors.credentials import SnmpV3
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import credential_rows, devices, inventory_feed
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.integration.access_sites import BROWSER, Site, browser_of, form_token

SECRET = "planted-hunter22"
OTHER = "planted-swordfish"
V3 = {"field.username": "mon", "field.auth_password": SECRET, "field.priv_password": OTHER}
TARGET = TargetDraft(name="snmp", collector="snmp")


@pytest.fixture
def site(services: Services) -> Site:
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return browser_of(site, Role.ADMIN)


def send(browser: Any, address: str, **fields: str) -> Any:
    shown = browser.get(address.removesuffix("/remove"))
    return browser.post(address, data={"csrf_token": form_token(shown.text), **fields})


def add(browser: Any, name: str = "core", kind: str = "snmpv3", **fields: str) -> Any:
    given = fields or V3
    return send(browser, "/credentials/-/add", name=name, kind=kind, **given)


def opened(services: Services, name: str) -> dict[str, Any]:
    key = credential_rows.show(services.engine, name).id
    sealed = inventory_feed.credential(services.engine, key)
    assert sealed is not None
    text = services.keyring.open(sealed.envelope, sealed.name, sealed.kind)
    found = credentials.from_json(text)
    assert isinstance(found, SnmpV3)
    return {name: getattr(value, "get_secret_value", lambda v=value: v)() for name, value in found}


def test_a_secret_goes_in_and_is_nowhere_afterwards(
    browser: Any, services: Services, redis_client: redis.Redis
) -> None:
    """No page, address, log line, audit row or key of Redis has it; a worker can open it."""
    with capture_logs() as logs:
        answers = [
            add(browser),
            browser.get("/credentials/core?did=add"),
            browser.get("/credentials"),
            add(browser),  # the name is taken
            add(browser, "wrong", **{**V3, "field.auth_protocol": SECRET}),
            send(browser, "/credentials/core", kind="snmpv3", **{**V3, "field.username": ""}),
            send(browser, "/credentials/core", kind="login", **{"field.password": SECRET}),
            browser.get("/credentials/core?kind=login"),
        ]
    assert [answer.status_code for answer in answers] == [303, 200, 200, 409, 422, 303, 422, 200]
    kept = [str(row) for row in audit_rows.listing(services.engine, AuditQuery(limit=500))]
    texts = [answer.text + str(answer.headers) for answer in answers] + kept + [str(logs)]
    for key in redis_client.keys("*"):  # type: ignore[union-attr]
        texts.append(str(redis_client.dump(key)))
    for text in texts:
        assert SECRET not in text
        assert OTHER not in text
    assert opened(services, "core")["auth_password"] == SECRET


def test_an_empty_field_stays_as_it_was(browser: Any, services: Services) -> None:
    """Only what is typed changes, unless all fields are replaced."""
    add(browser)
    changed = {"field.auth_password": " blanks stay ", "field.priv_protocol": "AES256"}
    assert send(browser, "/credentials/core", kind="snmpv3", **changed).status_code == 303
    found = opened(services, "core")
    assert found["auth_password"] == " blanks stay "
    assert (found["username"], found["priv_password"]) == ("mon", OTHER)
    assert found["priv_protocol"] == "AES256"

    replaced = {"field.username": "new", "field.auth_password": SECRET, "replace": "yes"}
    assert send(browser, "/credentials/core", kind="snmpv3", **replaced).status_code == 303
    found = opened(services, "core")
    assert (found["username"], found["priv_password"]) == ("new", None)


def test_a_refused_form_keeps_what_was_typed_but_secrets(browser: Any) -> None:
    """The error stands beside its field, with the words of the API."""
    refused = add(browser, "with/slash")
    assert refused.status_code == 422
    assert 'value="with/slash"' in refused.text
    assert 'value="mon"' in refused.text
    assert 'aria-invalid="true"' in refused.text
    assert "contains &#34;/&#34;" in refused.text
    passwords = re.findall(r'<input[^>]*type="password"[^>]*>', refused.text)
    assert len(passwords) == 2
    for field in passwords:
        assert "value=" not in field
        assert 'autocomplete="new-password"' in field

    empty = send(browser, "/credentials/-/add", name="n", kind="community")
    assert empty.status_code == 422
    field = re.search(
        r'<div class="field">\s*<label for="field-field-community">.*?</div>', empty.text, re.S
    )
    assert field
    assert "Field required" in field[0]


def test_the_list_says_who_uses_and_who_changed_each(browser: Any, services: Services) -> None:
    """The number leads to the devices; the author is for those who read the audit log."""
    add(browser)
    add(browser, "spare")
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", credential="core"), [TARGET])
    devices.add(services.engine, DeviceDraft("sw2", "192.0.2.2"), [TARGET])
    page = browser.get("/credentials").text
    assert "1 device, 1 target" in page
    assert "nothing" in page
    assert '<td class="by">admin</td>' in page
    link = re.search(r'href="(devices\?where=credential[^"]*)"', page)
    assert link
    listed = browser.get("/" + html.unescape(link[1])).text
    assert re.findall(r'<tr data-key="([^"]*)"', listed) == ["sw1"]


def test_a_credential_in_use_stays_and_its_users_are_named(
    browser: Any, services: Services
) -> None:
    """What nothing uses is removed."""
    add(browser)
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", credential="core"), [TARGET])
    refused = send(browser, "/credentials/core/remove")
    assert refused.status_code == 422
    assert "is in use (by sw1)" in refused.text
    devices.edit(services.engine, "sw1", DeviceDraft("sw1", credential=""))
    removed = send(browser, "/credentials/core/remove")
    assert removed.status_code == 303
    assert "was removed" in browser.get("/credentials?did=remove&name=core").text
    assert credential_rows.listing(services.engine) == []


def test_after_a_rotation_its_devices_are_polled_on_request(
    browser: Any, services: Services
) -> None:
    """The page offers the poll of all devices that use it; the list of them confirms it."""
    add(browser)
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", credential="core"), [TARGET])
    sent = send(browser, "/credentials/core", kind="snmpv3", **{"field.auth_password": OTHER})
    page = browser.get("/credentials/" + sent.headers["location"].removeprefix("./")).text
    assert "Poll them now" in page
    where = re.search(r'name="where" value="([^"]*)"', page)
    assert where
    form = {"csrf_token": form_token(page), "action": "poll", "where": html.unescape(where[1])}
    asked = browser.post("/devices/-/bulk", data=form)
    assert asked.status_code == 200
    assert "<code>sw1" in asked.text


def test_an_edit_of_an_older_version_is_refused(browser: Any, services: Services) -> None:
    """Two people do not overwrite each other's secrets."""
    add(browser)
    page = browser.get("/credentials/core").text
    version = re.search(r'name="version" value="([^"]*)"', page)
    assert version
    first = {"kind": "snmpv3", "field.auth_password": OTHER, "version": html.unescape(version[1])}
    assert send(browser, "/credentials/core", **first).status_code == 303
    late = send(browser, "/credentials/core", **first)
    assert late.status_code in (409, 412)
    assert "was changed since it was read" in late.text


def test_only_those_who_may_change_it_see_the_forms(site: Site, browser: Any) -> None:
    """A viewer sees names and kinds, and is refused everything else."""
    add(browser)
    viewer = browser_of(site, Role.VIEWER)
    page = viewer.get("/credentials/core").text
    assert "snmpv3" in page
    assert 'type="password"' not in page
    assert '<td class="by">' not in viewer.get("/credentials").text
    token = {"csrf_token": form_token(page)}
    for address in ("/credentials/-/add", "/credentials/core", "/credentials/core/remove"):
        assert viewer.post(address, data={**token, "kind": "snmpv3"}).status_code == 403


def test_a_token_of_one_site_sees_what_its_site_uses(site: Site, browser: Any) -> None:
    """Others do not exist for it."""
    add(browser)
    add(browser, "elsewhere")
    services = site.services
    device = DeviceDraft("sw1", "192.0.2.1", site="fra", credential="core")
    devices.add(services.engine, device, [TARGET])
    with sql.reading(services.engine) as conn:
        assert conn.execute(sa.text("select count(*) from credentials")).scalar_one() == 2
    limited = site.client(**BROWSER, **site.token(Scope.INVENTORY, site="fra"))
    page = limited.get("/credentials").text
    assert "core" in page
    assert "elsewhere" not in page
    assert limited.get("/credentials/elsewhere").status_code == 404
    assert limited.get("/credentials/-/add").status_code == 403
