"""Devices, targets and bulk changes over HTTP, on real stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.db.tables import targets as targets_table
from poller.domain.access.scopes import Scope
from tests.integration import api_clients
from tests.integration.api_clients import TestClient

API = "/api/v1"
EDITOR = (Scope.INVENTORY,)
NEW = {"name": "x", "address": "192.0.2.9"}


@pytest.fixture
def api(services: Services) -> Iterator[TestClient]:
    """A client with all rights, and three devices at two sites."""
    with api_clients.client(services) as client:
        for name, site in (("sw1", "ams"), ("sw2", "ams"), ("rt1", "fra")):
            body = {"name": name, "address": "192.0.2.1", "site": site}
            targets = [{"collector": "ping", "interval": "30s"}]
            done = client.post(f"{API}/devices", json={**body, "targets": targets})
            assert done.status_code == 201, done.text
        yield client


def names(response: Any) -> list[str]:
    assert response.status_code == 200, response.text
    return [item["name"] for item in response.json()["items"]]


def test_a_device_is_added_shown_changed_and_removed(api: TestClient) -> None:
    """Absent fields stay; tags are added and removed; the response names the new site."""
    body = {
        "name": "sw9",
        "address": "192.0.2.9",
        "site": "rtm",
        "tags": ["core"],
        "targets": [{"collector": "snmp", "options": {"modules": "system,if_mib"}}],
    }
    added = api.post(f"{API}/devices", json=body)
    assert added.status_code == 201
    assert added.json()["new_sites"] == [{"name": "rtm", "similar": None}]
    assert "snmp needs a credential" in added.json()["notes"][0]

    edit = {"add_tags": ["lab"], "remove_tags": ["core"], "enabled": False}
    assert api.patch(f"{API}/devices/sw9", json=edit).status_code == 200
    shown = api.get(f"{API}/devices/sw9").json()
    assert (shown["site"], shown["tags"], shown["enabled"]) == ("rtm", ["lab"], False)
    [target] = shown["targets"]
    assert (target["name"], target["interval"]) == ("snmp", "1m")
    assert target["options"] == {"modules": ["system", "if_mib"]}

    assert api.delete(f"{API}/devices/sw9").status_code == 204
    assert api.get(f"{API}/devices/sw9").status_code == 404


def test_a_device_without_targets_in_the_body_gets_the_default_one(api: TestClient) -> None:
    """An empty list is no target."""
    body = {"name": "a", "address": "192.0.2.9"}
    assert api.post(f"{API}/devices", json=body).json()["target_count"] == 1
    none = {**body, "name": "b", "targets": []}
    assert api.post(f"{API}/devices", json=none).json()["target_count"] == 0


def test_a_list_of_devices_has_a_filter_and_pages(api: TestClient) -> None:
    """Following `next` shows each matching device once."""
    assert names(api.get(f"{API}/devices", params={"where": "site:ams"})) == ["sw1", "sw2"]
    page = api.get(f"{API}/devices", params={"limit": 2})
    assert names(page) == ["rt1", "sw1"]
    following = {"limit": 2, "cursor": page.json()["next"]}
    assert names(api.get(f"{API}/devices", params=following)) == ["sw2"]
    assert api.get(f"{API}/devices", params={"where": "sit:ams"}).status_code == 422


def test_targets_are_changed_by_id_and_by_name(api: TestClient) -> None:
    """An option that is null is removed; the others stay."""
    body = {"collector": "http", "name": "web", "options": {"path": "/a", "method": "HEAD"}}
    added = api.post(f"{API}/devices/sw1/targets", json=body)
    assert added.status_code == 201, added.text
    address = f"{API}/targets/{added.json()['id']}"
    edit = {"options": {"method": None, "expect": "200"}, "interval": "5m", "name": "page"}
    changed = api.patch(address, json=edit)
    assert changed.status_code == 200, changed.text
    shown = api.get(address).json()
    assert (shown["name"], shown["interval_ms"]) == ("page", 300_000)
    assert set(shown["options"]) == {"path", "expect"}
    by_name = f"{API}/devices/sw1/targets/page"
    assert api.get(by_name).json() == shown
    assert api.patch(by_name, json={"enabled": False}).json()["enabled"] is False
    assert names(api.get(f"{API}/devices/sw1/targets")) == ["page", "ping"]
    assert names(api.get(f"{API}/targets", params={"where": "collector:http"})) == ["page"]
    assert api.delete(by_name).status_code == 204
    assert api.get(address).status_code == 404


@pytest.mark.parametrize("address", ["devices/sw1", "devices/sw1/targets/ping"])
def test_the_second_of_two_editors_learns_of_the_first(api: TestClient, address: str) -> None:
    """A change for an old version is refused, and nothing is removed by mistake."""
    address = f"{API}/{address}"
    old = {"If-Match": api.get(address).headers["etag"]}
    done = api.patch(address, json={"enabled": False}, headers=old)
    assert done.status_code == 200
    assert api.patch(address, json={"enabled": True}, headers=old).status_code == 412
    assert api.delete(address, headers=old).status_code == 412
    assert api.delete(address, headers={"If-Match": done.headers["etag"]}).status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "part"),
    [
        ("POST", "devices", {"name": "sw1", "address": "192.0.2.1"}, 409, "already"),
        ("POST", "devices", {"name": "a b", "address": "192.0.2.1"}, 422, "contains a blank"),
        ("POST", "devices", {"name": "a\0", "address": "192.0.2.1"}, 422, "unprintable"),
        ("POST", "devices", {"name": "x" * 201, "address": "192.0.2.1"}, 422, "name"),
        ("POST", "devices", {"name": 3, "address": "192.0.2.1"}, 422, "name"),
        ("POST", "devices", {"name": "x", "address": "300.1.1.1"}, 422, "300.1.1.1"),
        ("POST", "devices", {"name": "x", "address": "::1", "credential": "no"}, 422, '"no"'),
        ("POST", "devices", {"name": "x", "address": "::1", "colour": 1}, 422, "colour"),
        ("POST", "devices", [], 422, "valid"),
        ("PATCH", "devices/sw1", {}, 422, "nothing to change"),
        ("PATCH", "devices/sw1", {"site": None}, 422, "site"),
        ("PATCH", "devices/sw1", {"name": ""}, 422, "name is empty"),
        ("PATCH", "devices/sw1", {"name": "sw2"}, 409, "already"),
        ("PATCH", "devices/sw1", {"tags": ["a"], "add_tags": ["b"]}, 422, "replace"),
        ("PATCH", "devices/nope", {"site": "x"}, 404, "nope"),
        ("POST", "devices/sw1/targets", {"collector": "smnp"}, 422, "unknown collector"),
        ("POST", "devices/sw1/targets", {"collector": "ping"}, 409, "already"),
        (
            "POST",
            "devices/sw1/targets",
            {"collector": "snmp", "options": {"prt": 1}},
            422,
            'unknown option "prt"',
        ),
        (
            "POST",
            "devices/sw1/targets",
            {"collector": "http", "options": {"path": "/\0"}},
            422,
            "NUL",
        ),
        ("PATCH", "devices/sw1/targets/ping", {"interval": "5 min"}, 422, "duration"),
        ("PATCH", "devices/sw1/targets/ping", {"interval": "9" * 50}, 422, "out of bounds"),
        ("PATCH", "devices/sw1/targets/ping", {"min": "5s"}, 422, "a fixed interval has no min"),
        ("PATCH", "targets/999999", {"enabled": True}, 404, "999999"),
        ("PATCH", "targets/0", {"enabled": True}, 422, "target_id"),
        ("GET", "targets/999999999999999999999", None, 422, "target_id"),
        ("POST", "devices/bulk", {"where": " ", "action": "remove"}, 422, "where"),
        ("POST", "devices/bulk", {"where": "site:ams", "action": "melt"}, 422, "action"),
        ("POST", "devices/bulk", {"where": "site:ams", "action": "edit"}, 422, "changes"),
        (
            "POST",
            "devices/bulk",
            {"where": "site:ams", "action": "remove", "changes": {"site": "x"}},
            422,
            "changes",
        ),
        ("POST", "devices/bulk", {"where": "site:ams", "action": "remove"}, 409, "confirm: 2"),
        (
            "POST",
            "devices/bulk",
            {"where": "site:ams", "action": "remove", "confirm": 3},
            409,
            "confirm: 2",
        ),
        ("POST", "devices/bulk", {"where": "name:none", "action": "remove"}, 404, "name:none"),
        (
            "POST",
            "targets/bulk",
            {"where": "name:*", "action": "edit", "changes": {"name": "x"}},
            422,
            "for one target",
        ),
    ],
)
def test_a_wrong_request_changes_nothing(
    api: TestClient,
    services: Services,
    method: str,
    path: str,
    body: object,
    status: int,
    part: str,
) -> None:
    """The problem names the field and what to do; the version of the inventory stays."""
    before = inventory_feed.version(services.engine)
    response = api.request(method, f"{API}/{path}", json=body)
    problem = response.json()
    assert response.status_code == status, problem
    assert part in problem["detail"] + problem["hint"]
    assert inventory_feed.version(services.engine) == before


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "hint"),
    [
        ("POST", "devices", {**NEW, "credential": "comunity"}, "credential", "community"),
        (
            "POST",
            "devices",
            {**NEW, "targets": [{"collector": "ping"}, {"collector": "snmp", "credential": "c"}]},
            "targets.1.credential",
            "/credentials",
        ),
        (
            "POST",
            "devices",
            {**NEW, "targets": [{"collector": "pin"}]},
            "targets.0.collector",
            "ping",
        ),
        ("PATCH", "devices/sw1", {"credential": "comunity"}, "credential", "community"),
        ("PATCH", "devices/sw1/targets/ping", {"credential": "nope"}, "credential", ""),
        ("PATCH", "devices/sw1/targets/ping", {"interval": "5 min"}, "interval", "5m"),
        ("POST", "devices/sw1/targets", {"collector": "smnp"}, "collector", "snmp"),
        (
            "POST",
            "devices/bulk",
            {"where": "site:ams", "action": "edit", "changes": {"credential": "comunity"}},
            "credential",
            "community",
        ),
        (
            "POST",
            "targets/bulk",
            {"where": "site:ams", "action": "edit", "changes": {"credential": "comunity"}},
            "credential",
            "community",
        ),
        ("POST", "targets/bulk", {"where": "site:amz", "action": "remove"}, "where", "ams"),
        ("POST", "tokens", {"name": "x", "scopes": ["read"], "site": "amz"}, "site", "ams"),
    ],
)
def test_a_name_that_does_not_exist_is_the_problem_of_its_field(
    api: TestClient, method: str, path: str, body: object, field: str, hint: str
) -> None:
    """422, the field, and the nearest name that exists."""
    stored = {"name": "community", "kind": "community", "fields": {"community": "s3cretword"}}
    assert api.post(f"{API}/credentials", json=stored).status_code == 201
    response = api.request(method, f"{API}/{path}", json=body)
    problem = response.json()
    assert response.status_code == 422, problem
    assert [each["field"] for each in problem["fields"]] == [field], problem
    assert hint in problem["hint"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"collector": "http", "options": ' + b'{"a":' * 40 + b"1" + b"}" * 41,
        b'{"collector": "http", "options": ' + b"[" * 100_000,
        b'{"collector": "http", "options": {"path": NaN}}',
        b'{"collector": "http", "options": {"path": "\\ud800"}}',
        b'{"collector": "\\ud800"}',
        b"\xff\xfe",
        b"",
    ],
    ids=["deep", "bottomless", "nan", "half a character", "half a name", "bytes", "empty"],
)
def test_a_hostile_body_is_refused(api: TestClient, body: bytes) -> None:
    """Neither the parser nor a store fails."""
    headers = {"Content-Type": "application/json"}
    response = api.post(f"{API}/devices/sw1/targets", content=body, headers=headers)
    assert response.status_code in (400, 422), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_bulk_change_counts_first_and_needs_its_number(api: TestClient) -> None:
    """A dry run changes nothing; the number it says confirms the change."""
    bulk: dict[str, Any] = {
        "where": "site:ams",
        "action": "edit",
        "changes": {"site": "rtm", "add_tags": ["moved"]},
    }
    trial = api.post(f"{API}/devices/bulk", json={**bulk, "dry_run": True}).json()
    assert (trial["matches"], trial["samples"], trial["changed"]) == (2, ["sw1", "sw2"], 0)
    assert trial["new_sites"][0]["name"] == "rtm"
    done = api.post(f"{API}/devices/bulk", json={**bulk, "confirm": 2}).json()
    assert done["changed"] == 2
    moved = api.get(f"{API}/devices", params={"where": "site:rtm tag:moved"})
    assert names(moved) == ["sw1", "sw2"]

    add = {"where": "site:rtm", "action": "add_target", "target": {"collector": "snmp"}}
    assert api.post(f"{API}/devices/bulk", json={**add, "confirm": 2}).json()["changed"] == 2
    port = {
        "where": "collector:snmp",
        "action": "edit",
        "changes": {"options": {"port": 1161}},
        "confirm": 2,
    }
    assert api.post(f"{API}/targets/bulk", json=port).json()["changed"] == 2
    mixed = {**port, "where": "site:rtm", "confirm": 4}
    assert "of one collector" in api.post(f"{API}/targets/bulk", json=mixed).json()["detail"]
    off = {"where": "site:rtm", "action": "disable", "confirm": 4}
    assert api.post(f"{API}/targets/bulk", json=off).json()["changed"] == 4
    removal = {"where": "collector:snmp", "action": "remove", "confirm": 2}
    assert api.post(f"{API}/targets/bulk", json=removal).json()["changed"] == 2
    gone = {"where": "site:rtm", "action": "remove", "confirm": 2}
    result = api.post(f"{API}/devices/bulk", json=gone).json()
    assert (result["changed"], result["targets_removed"]) == (2, 2)
    assert names(api.get(f"{API}/devices")) == ["rt1"]


def test_a_repeated_post_adds_once(api: TestClient) -> None:
    """The second request has the first response instead of a conflict."""
    body = {"name": "once", "address": "192.0.2.9"}
    headers = {"Idempotency-Key": "k1"}
    first = api.post(f"{API}/devices", json=body, headers=headers)
    again = api.post(f"{API}/devices", json=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()


def test_a_token_of_one_site_stays_there(api: TestClient, services: Services) -> None:
    """Devices of other sites do not exist for it, and it moves none across the border."""
    own = api_clients.client(services, EDITOR, "ams")
    assert names(own.get(f"{API}/devices")) == ["sw1", "sw2"]
    assert {item["device"] for item in own.get(f"{API}/targets").json()["items"]} == {"sw1", "sw2"}
    foreign = api.get(f"{API}/devices/rt1").json()["targets"][0]["id"]
    for method, path, body, status in (
        ("GET", "devices/rt1", None, 404),
        ("GET", "devices/rt1/targets", None, 404),
        ("GET", f"targets/{foreign}", None, 404),
        ("PATCH", f"targets/{foreign}", {"enabled": False}, 404),
        ("DELETE", f"targets/{foreign}", None, 404),
        ("DELETE", "devices/rt1", None, 404),
        ("PATCH", "devices/rt1", {"enabled": False}, 404),
        ("POST", "devices/rt1/targets", {"collector": "snmp"}, 404),
        ("PATCH", "devices/sw1", {"site": "fra"}, 403),
        ("PATCH", "devices/sw1", {"site": ""}, 403),
        ("POST", "devices", {"name": "x", "address": "::1", "site": "fra"}, 403),
        ("POST", "devices", {"name": "x", "address": "::1"}, 403),
        ("GET", "devices?where=site:fra", None, 403),
        ("POST", "devices/bulk", {"where": "site:fra", "action": "remove"}, 403),
        ("POST", "targets/bulk", {"where": "site:fra", "action": "remove"}, 403),
        ("POST", "devices/bulk", {"where": "name:rt1", "action": "remove"}, 404),
        ("POST", "credentials", {"name": "x", "kind": "token", "fields": {}}, 403),
    ):
        response = own.request(method, f"{API}/{path}", json=body)
        assert response.status_code == status, (method, path, response.text)
    new = {"name": "sw3", "address": "::1", "site": "ams"}
    assert own.post(f"{API}/devices", json=new).status_code == 201
    gone = {"where": "name:*", "action": "remove", "confirm": 3}
    assert own.post(f"{API}/devices/bulk", json=gone).json()["changed"] == 3
    assert names(api.get(f"{API}/devices")) == ["rt1"]


def test_a_token_of_one_site_uses_only_credentials_of_its_site(
    api: TestClient, services: Services
) -> None:
    """Otherwise it could send every stored secret to an address of its choice."""
    for name in ("ours", "theirs"):
        body = {"name": name, "kind": "community", "fields": {"community": f"{name}-secret"}}
        assert api.post(f"{API}/credentials", json=body).status_code == 201
    assert api.patch(f"{API}/devices/sw1", json={"credential": "ours"}).status_code == 200
    own = api_clients.client(services, EDITOR, "ams")
    assert names(own.get(f"{API}/credentials")) == ["ours"]
    assert own.get(f"{API}/credentials/theirs").status_code == 404
    assert own.patch(f"{API}/devices/sw2", json={"credential": "ours"}).status_code == 200
    target = {"collector": "snmp", "credential": "theirs"}
    device = {"name": "x", "address": "::1", "site": "ams"}
    file = "name,address,site,credential\nx,192.0.2.7,ams,theirs\n"
    csv = {"Content-Type": "text/csv"}
    for response in (
        own.patch(f"{API}/devices/sw2", json={"credential": "theirs"}),
        own.post(f"{API}/devices/sw2/targets", json=target),
        own.post(f"{API}/devices", json={**device, "credential": "theirs"}),
        own.post(f"{API}/devices", json={**device, "targets": [target]}),
        own.patch(f"{API}/devices/sw2/targets/ping", json={"credential": "theirs"}),
        own.post(f"{API}/imports", content=file, headers=csv),
    ):
        assert response.status_code in (403, 422), response.text
        assert "not used at site" in response.text


QUERY = "view=all&access_token=planted-in-url"
LEGACY = {"url": f"http://192.0.2.1/health?{QUERY}", "path": "/"}


@pytest.fixture
def legacy(api: TestClient, services: Services) -> int:
    """The id of a target with a token in its URL, from before such options were refused."""
    assert api.post(f"{API}/devices", json={"name": "web", "address": "::1"}).is_success
    target = {"collector": "http", "options": {"url": "http://192.0.2.1/health?view=all"}}
    made = api.post(f"{API}/devices/web/targets", json=target).json()
    with services.engine.begin() as conn:
        row = targets_table.c.id == made["id"]
        conn.execute(targets_table.update().where(row).values(options=LEGACY))
    return int(made["id"])


def test_a_secret_in_a_url_is_shown_to_nobody(
    api: TestClient, services: Services, legacy: int
) -> None:
    """An editor sees the rest of the query, a reader nothing of it; an import needs the whole."""
    reader = api_clients.client(services, (Scope.READ,))
    edited = api.patch(f"{API}/targets/{legacy}", json={"options": {"redirects": 1}})
    assert edited.is_success, edited.text
    for client, part in ((api, "view=all"), (reader, "health?***")):
        for path in (
            "targets",
            f"targets/{legacy}",
            f"targets/{legacy}/why",
            "devices/web",
            "devices/web/targets",
            "devices/web/targets/http",
        ):
            text = client.get(f"{API}/{path}").text
            assert part in text, path
            assert "planted-in-url" not in text, path
    assert "planted-in-url" not in edited.text + api.get(f"{API}/audit").text
    for form in ("csv", "json", "yaml"):
        query = {"format": form}
        assert "planted-in-url" not in reader.get(f"{API}/export", params=query).text
        assert QUERY in api.get(f"{API}/export", params=query).text


def test_a_new_secret_in_a_url_is_refused(api: TestClient, services: Services, legacy: int) -> None:
    """The hint names the kinds of credentials; a masked text is no value either."""
    masked = api_clients.client(services, (Scope.READ,)).get(f"{API}/export?format=json").content
    file = api.get(f"{API}/export?format=json").content
    json = {"Content-Type": "application/json"}
    for refused, part in (
        (api.patch(f"{API}/targets/{legacy}", json={"options": LEGACY}), "credential (token or"),
        (api.post(f"{API}/devices/web/targets", json=http_target("/?api_key=1")), "credential"),
        (api.post(f"{API}/imports?update=true", content=file, headers=json), "credential (token"),
        (api.post(f"{API}/imports?update=true", content=masked, headers=json), "stands for"),
    ):
        assert refused.status_code == 422, refused.text
        assert part in refused.text
        assert "planted-in-url" not in refused.text
    assert api.post(f"{API}/devices/web/targets", json=http_target("/?page=1")).is_success


def http_target(path: str) -> dict[str, Any]:
    return {"collector": "http", "name": "more", "options": {"path": path}}


@pytest.mark.parametrize("given", [(Scope.READ,), (Scope.OPERATE,)])
def test_readers_and_operators_change_nothing(
    api: TestClient, services: Services, given: tuple[Scope, ...]
) -> None:
    """Every changing route needs the scope inventory."""
    weak = api_clients.client(services, given)
    for method, path in (
        ("POST", "devices"),
        ("PATCH", "devices/sw1"),
        ("DELETE", "devices/sw1"),
        ("POST", "devices/bulk"),
        ("POST", "devices/sw1/targets"),
        ("PATCH", "devices/sw1/targets/ping"),
        ("DELETE", "devices/sw1/targets/ping"),
        ("PATCH", "targets/1"),
        ("DELETE", "targets/1"),
        ("POST", "targets/bulk"),
        ("POST", "credentials"),
        ("POST", "credentials/x/rotate"),
        ("DELETE", "credentials/x"),
        ("POST", "imports"),
    ):
        assert weak.request(method, f"{API}/{path}", json={}).status_code == 403, path
    for path in ("devices", "targets", "credentials", "credential-kinds", "export"):
        assert weak.get(f"{API}/{path}").status_code == 200, path
