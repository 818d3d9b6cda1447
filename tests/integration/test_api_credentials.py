"""Credentials and inventory files over HTTP, on real stores; no secret ever comes back."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import redis

from poller.bootstrap import Services
from poller.collectors import credentials
from poller.db.inventory import credential_rows, inventory_feed
from poller.domain.access.scopes import Scope
from poller.service.inventory_forms import value_limits
from poller.web.api.inventory import inventory_files_api
from tests.integration import api_clients
from tests.integration.api_clients import TestClient

API = "/api/v1"
SECRET = "hunter22-planted"
PLANTED: dict[str, dict[str, str]] = {
    "community": {"community": SECRET},
    "snmpv3": {"username": "u", "auth_password": SECRET, "priv_password": f"{SECRET}-2"},
    "login": {"username": "u", "password": SECRET},
    "token": {"token": SECRET},
}


@pytest.fixture
def api(services: Services) -> Iterator[TestClient]:
    with api_clients.client(services) as client:
        yield client


def add(api: TestClient, name: str, kind: str = "community") -> Any:
    return api.post(
        f"{API}/credentials", json={"name": name, "kind": kind, "fields": PLANTED[kind]}
    )


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_secret_goes_in_and_never_comes_out(
    api: TestClient, services: Services, redis_client: redis.Redis, kind: str
) -> None:
    """No response, audit row, cache or error repeats a secret of any kind; a worker has it."""
    bodies = [add(api, "c1", kind)]
    assert bodies[0].status_code == 201, bodies[0].text
    device = {"name": "sw1", "address": "192.0.2.1", "credential": "c1", "targets": []}
    wrong = {**PLANTED[kind], "colour": SECRET}
    headers = {"Idempotency-Key": "k"}
    again = {"name": "c1", "kind": kind, "fields": PLANTED[kind]}
    bodies += [
        api.post(f"{API}/devices", json=device),
        api.get(f"{API}/credentials"),
        api.get(f"{API}/credentials/c1"),
        api.get(f"{API}/devices/sw1"),
        api.get(f"{API}/export", params={"format": "yaml"}),
        api.post(f"{API}/credentials", json=again),
        api.post(f"{API}/credentials", json={**again, "name": "c2", "fields": wrong}),
        api.post(f"{API}/credentials", json={**again, "name": "c2", "password": SECRET}),
        api.post(f"{API}/credentials", json={**again, "name": "c2", "fields": [SECRET]}),
        api.post(f"{API}/credentials", json={**again, "name": "c2"}, headers=headers),
        api.post(f"{API}/credentials/c1/rotate", json={"fields": wrong}),
        api.post(f"{API}/credentials/c1/rotate", json={"fields": PLANTED[kind]}),
        api.patch(f"{API}/credentials/c1", json={"fields": PLANTED[kind]}),
        api.patch(f"{API}/credentials/c1", json={"fields": {"colour": SECRET}}),
        api.get(f"{API}/audit"),
        api.delete(f"{API}/credentials/c1"),
    ]
    assert [body.status_code for body in bodies[6:12]] == [409, 422, 422, 422, 422, 422]
    for body in bodies:
        assert SECRET not in body.text + str(body.headers)
    for key in redis_client.keys("*"):  # type: ignore[union-attr]
        assert SECRET.encode() not in (redis_client.dump(key) or b"")  # type: ignore[operator]
    key = credential_rows.show(services.engine, "c1").id
    sealed = inventory_feed.credential(services.engine, key)
    assert sealed is not None
    opened = services.keyring.open(sealed.envelope, sealed.name, sealed.kind)
    assert SECRET in credentials.from_json(opened).secrets()


def test_a_credential_in_use_is_rotated_but_not_removed(api: TestClient) -> None:
    """An old version is refused; the number of targets that use it is told."""
    tag = add(api, "c1").headers["etag"]
    targets = [{"collector": "snmp"}]
    device = {"name": "sw1", "address": "192.0.2.1", "credential": "c1", "targets": targets}
    assert api.post(f"{API}/devices", json=device).json()["notes"] == []
    new = {"fields": {"community": "short"}}
    done = api.post(f"{API}/credentials/c1/rotate", json=new, headers={"If-Match": tag})
    assert (done.status_code, done.json()["targets"]) == (200, 1)
    [note] = done.json()["notes"]
    assert "fewer than 8 characters" in note
    assert note.endswith("store it: POST /api/v1/credentials/c1/rotate")
    late = api.post(f"{API}/credentials/c1/rotate", json=new, headers={"If-Match": tag})
    assert late.status_code == 412
    assert "is in use" in api.delete(f"{API}/credentials/c1").json()["detail"]
    assert api.patch(f"{API}/devices/sw1", json={"credential": ""}).status_code == 200
    assert api.delete(f"{API}/credentials/c1").status_code == 204
    assert api.get(f"{API}/credentials/c1").status_code == 404


def test_a_credential_of_a_wrong_kind_is_refused(api: TestClient) -> None:
    """The rule is that of the command line: a collector names the kinds it takes."""
    assert add(api, "api", "token").status_code == 201
    targets = [{"collector": "snmp", "credential": "api"}]
    refused = api.post(
        f"{API}/devices", json={"name": "a", "address": "::1", "targets": targets}
    ).json()
    assert 'cannot use credential "api" of kind token' in refused["detail"]


def test_the_kinds_say_which_fields_are_secret(api: TestClient) -> None:
    """A form can be made from the schema of each kind."""
    kinds = {each["kind"]: each for each in api.get(f"{API}/credential-kinds").json()}
    assert set(PLANTED) <= set(kinds)
    assert kinds["login"]["secret_fields"] == ["password"]
    assert kinds["login"]["fields_schema"]["properties"]["password"]["writeOnly"] is True


CSV = "name,address,site,collector,interval\nsw1,192.0.2.1,ams,ping,30s\nsw2,192.0.2.2,fra,ping,\n"
FILES = {
    "text/csv": CSV,
    "application/json": json.dumps([{"name": "sw1", "address": "192.0.2.1"}]),
    "application/yaml": "- name: sw1\n  address: 192.0.2.1\n",
}


def send(api: TestClient, text: str | bytes, media_type: str = "text/csv", **query: Any) -> Any:
    headers = {"Content-Type": media_type}
    return api.post(f"{API}/imports", params=query, content=text, headers=headers)


@pytest.mark.parametrize("media_type", sorted(FILES))
def test_a_file_is_imported_and_exported(api: TestClient, media_type: str) -> None:
    """A dry run changes nothing; an exported file is imported without a change."""
    trial = send(api, FILES[media_type], media_type, dry_run=True)
    assert trial.status_code == 200, trial.text
    assert trial.json()["added"] >= 1
    assert api.get(f"{API}/devices").json()["items"] == []
    assert send(api, FILES[media_type], media_type).json()["dry_run"] is False
    form = media_type.rpartition("/")[2]
    exported = api.get(f"{API}/export", params={"format": form})
    assert exported.headers["content-type"].startswith(media_type)
    again = send(api, exported.content, media_type, update=True).json()
    assert (again["updated"], again["targets_updated"]) == (0, 0)
    assert again["unchanged"] == trial.json()["added"]


@pytest.mark.parametrize(
    ("text", "media_type", "part"),
    [
        ("name,address\na b,192.0.2.1\nx,300.0.0.1\n", "text/csv", "file:2: name"),
        ("name,adress\nx,192.0.2.1\n", "text/csv", "did you mean address"),
        (b"\xff\xfe\x00", "text/csv", "not UTF-8"),
        ("[" * 100_000, "application/json", "deep"),
        ("a: &a [*a, *a]\n", "application/yaml", "file"),
        ("x", "image/png", "Content-Type"),
        ("name,address\nx,192.0.2.1\nx,192.0.2.2\n", "text/csv", "differs from line 2"),
    ],
    ids=["lines", "column", "bytes", "deep", "alias", "type", "twice"],
)
def test_every_bad_line_of_a_file_is_named(
    api: TestClient, text: str | bytes, media_type: str, part: str
) -> None:
    """Nothing of the file is stored."""
    refused = send(api, text, media_type)
    assert refused.status_code == 422, refused.text
    assert part in refused.text
    assert api.get(f"{API}/devices").json()["items"] == []


def test_one_import_runs_at_a_time(api: TestClient) -> None:
    """A second one is told to wait: each may take much memory."""
    with inventory_files_api._importing:
        assert send(api, CSV).status_code == 409
    assert send(api, CSV).status_code == 200


def test_a_slow_file_keeps_nobody_from_importing(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn begins when all of it is there. A file without an end is refused in time."""

    async def send_two(first_ends: bool) -> list[int]:
        is_read, done = asyncio.Event(), asyncio.Event()

        async def slow_file() -> AsyncIterator[bytes]:
            yield b"name,address\n"
            is_read.set()
            await done.wait()

        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(api.app),
            base_url="http://127.0.0.1",
            headers={"Content-Type": "text/csv"},
        ) as client:
            slow = asyncio.create_task(client.post(f"{API}/imports", content=slow_file()))
            await asyncio.wait_for(is_read.wait(), 20)
            quick = await client.post(f"{API}/imports?update=true", content=CSV)
            if first_ends:
                done.set()
            return [quick.status_code, (await slow).status_code]

    assert asyncio.run(send_two(first_ends=True)) == [200, 200]
    monkeypatch.setattr(inventory_files_api, "BODY_S", 0.2)
    assert asyncio.run(send_two(first_ends=False)) == [200, 422]


@pytest.mark.parametrize("media_type", sorted(FILES))
def test_a_file_of_too_many_rows_is_refused_before_it_is_parsed(
    api: TestClient, monkeypatch: pytest.MonkeyPatch, media_type: str
) -> None:
    """The memory of the web role is bounded by the number of rows, not only by bytes."""
    monkeypatch.setattr(value_limits, "MAX_REQUEST_ROWS", 0)
    assert "more than 0 rows" in send(api, FILES[media_type], media_type).json()["detail"]


def test_a_token_of_one_site_imports_and_exports_its_own_devices(
    api: TestClient, services: Services
) -> None:
    """Lines of other sites are named, also those that would take a device away from there."""
    own = api_clients.client(services, (Scope.INVENTORY,), "ams")
    refused = send(own, CSV)
    assert refused.status_code == 422
    assert [each["field"] for each in refused.json()["fields"]] == ["site"]
    assert "file:3" in refused.text
    assert send(api, CSV).status_code == 200
    theft = "name,address,site\nsw2,192.0.2.9,ams\n"
    assert send(own, theft, update=True).status_code == 422
    assert send(own, "name,address\nsw2,192.0.2.9\n", update=True).status_code == 422
    assert send(own, "name,address\nsw1,192.0.2.9\n", update=True).json()["updated"] == 1
    lines = own.get(f"{API}/export").text.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["name", "sw1"]


def test_a_token_of_one_site_counts_the_users_of_its_site(
    api: TestClient, services: Services
) -> None:
    """How many devices of other sites use a credential is not its business."""
    add(api, "shared")
    for name, site in (("sw1", "ams"), ("sw2", "fra"), ("sw3", "fra")):
        device = {"name": name, "address": "192.0.2.1", "site": site, "credential": "shared"}
        assert api.post(f"{API}/devices", json=device).status_code == 201
    own = api_clients.client(services, (Scope.READ,), "ams")
    listed = own.get(f"{API}/credentials").json()["items"]
    assert [(each["name"], each["devices"], each["targets"]) for each in listed] == [
        ("shared", 1, 1)
    ]
    assert own.get(f"{API}/credentials/shared").json()["devices"] == 1
    assert api.get(f"{API}/credentials/shared").json()["devices"] == 3


def test_an_export_beyond_memory_goes_through_a_file(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is the same as from memory."""
    lines = [f"sw{number},192.0.2.1,ams" for number in range(500)]
    assert send(api, "name,address,site\n" + "\n".join(lines) + "\n").status_code == 200
    small = api.get(f"{API}/export").text
    monkeypatch.setattr(inventory_files_api, "_BYTES_IN_MEMORY", 10)
    monkeypatch.setattr(inventory_files_api, "_CHUNK_BYTES", 100)
    assert api.get(f"{API}/export").text == small
    assert len(io.StringIO(small).readlines()) == 501
