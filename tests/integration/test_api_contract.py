"""The contract of the API, shown on sites: access, errors, pages, tags, repeated requests."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import pytest
from fastapi.routing import APIRoute

from poller import errors
from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.state.requests import request_records
from poller.web.api import api_v1
from poller.web.api.contract import idempotency, resources
from poller.web.api.contract.needs import Needs, OperatingAll
from tests.conftest import wait_until
from tests.integration import api_clients


@dataclass
class Gate:
    """Lets an act of the API last until the test opens it."""

    acts: int = 0
    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


NO_RIGHTS: tuple[Scope, ...] = ()


@pytest.fixture
def sites(services: Services) -> Services:
    for name in ("ams", "ber", "fra"):
        devices.add(services.engine, DeviceDraft(f"sw-{name}", address="192.0.2.1", site=name))
    return services


def test_a_list_has_pages(sites: Services) -> None:
    """The cursor of a page leads to the next one; the last page has none."""
    api = api_clients.client(sites)
    first = api.get("/api/v1/sites", params={"limit": 2}).json()
    assert [item["name"] for item in first["items"]] == ["ams", "ber"]
    last = api.get("/api/v1/sites", params={"limit": 2, "cursor": first["next"]}).json()
    assert [item["name"] for item in last["items"]] == ["fra"]
    assert last["next"] is None


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "WzFd", "WyJhIiwiYiJd", "%00", "W" * 2001])
def test_a_wrong_cursor_is_refused(sites: Services, cursor: str) -> None:
    """A text that is no cursor of this list is named."""
    response = api_clients.client(sites).get("/api/v1/sites", params={"cursor": cursor})
    assert response.status_code == 422
    assert "cursor" in response.json()["detail"]


def test_an_edit_for_an_old_version_is_refused(sites: Services) -> None:
    """The second of two editors who read the same version learns of the first."""
    api = api_clients.client(sites)
    tag = api.get("/api/v1/sites/ams").headers["etag"]
    body = {"requires": {"zone": "dmz"}}
    done = api.patch("/api/v1/sites/ams", json=body, headers={"If-Match": tag})
    assert done.status_code == 200
    assert done.json()["requires"] == {"zone": "dmz"}
    again = api.patch("/api/v1/sites/ams", json={"requires": {}}, headers={"If-Match": tag})
    assert again.status_code == 412
    assert again.json()["code"] == "P105"
    new_tag = {"If-Match": done.headers["etag"]}
    assert api.patch("/api/v1/sites/ams", json={"requires": {}}, headers=new_tag).is_success


def test_a_change_leaves_an_audit_row(sites: Services) -> None:
    """The row has the actor, the address, and the fields that differ."""
    api = api_clients.client(sites)
    assert api.patch("/api/v1/sites/ams", json={"requires": {"zone": "dmz"}}).is_success
    [row] = audit_rows.listing(sites.engine, AuditQuery())
    found = asdict(row)
    assert (found["actor"], found["kind"], found["action"]) == ("ci", "token", "site.edit")
    assert (found["before"], found["after"]) == ({"requires": {}}, {"requires": {"zone": "dmz"}})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "part"),
    [
        ("GET", "/sites/amz", None, 404, "P101", "ams"),
        ("DELETE", "/sites/ams", None, 422, "P201", "has a device"),
        ("PATCH", "/sites/ams", {"requires": {"a": "b c"}}, 422, "P201", "a=b c"),
        ("PATCH", "/sites/ams", {"requires": 3}, 422, "P201", "requires"),
        ("PATCH", "/sites/ams", {"nonsense": 3}, 422, "P201", "nonsense"),
        ("POST", "/sites/ams", None, 405, "P201", "Method"),
        ("GET", "/nonsense", None, 404, "P101", "Not Found"),
        ("GET", "", None, 404, "P101", "Not Found"),
        ("GET", "/", None, 404, "P101", "Not Found"),
    ],
)
def test_an_error_is_a_problem_document(
    sites: Services, method: str, path: str, body: object, status: int, code: str, part: str
) -> None:
    """The document has the code, says what was wrong and what to do."""
    response = api_clients.client(sites).request(method, f"/api/v1{path}", json=body)
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert part in problem["detail"] + problem["hint"]


def test_a_missing_store_is_503(sites: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told to come back."""
    api = api_clients.client(sites)
    sites.engine.dispose()
    file = sites.settings.home / "poller.db"
    file.rename(file.with_suffix(".away"))
    response = api.get("/api/v1/sites")
    assert response.status_code == 503
    assert response.headers["retry-after"]
    assert response.json()["code"].startswith("P3")


@pytest.mark.parametrize(
    ("given", "site", "method", "path", "status"),
    [
        (None, None, "GET", "/sites", 401),
        (NO_RIGHTS, None, "GET", "/sites", 403),
        ((Scope.SCRAPE,), None, "GET", "/sites", 403),
        ((Scope.READ,), None, "GET", "/sites", 200),
        ((Scope.READ,), None, "DELETE", "/sites/ams", 403),
        ((Scope.OPERATE,), None, "DELETE", "/sites/ams", 403),
        ((Scope.ADMIN,), "ams", "DELETE", "/sites/ams", 403),
        ((Scope.READ,), "ams", "GET", "/sites/fra", 404),
        ((Scope.READ,), "ams", "GET", "/sites/ams", 200),
    ],
)
def test_rights_decide(
    sites: Services,
    given: tuple[Scope, ...] | None,
    site: str | None,
    method: str,
    path: str,
    status: int,
) -> None:
    """A caller without a login, with too few scopes, or of another site is refused."""
    api = api_clients.client(sites, given, site)
    assert api.request(method, f"/api/v1{path}").status_code == status


def test_a_token_of_one_site_sees_that_site_only(sites: Services) -> None:
    """Other sites are not in its list."""
    api = api_clients.client(sites, (Scope.READ,), "ams")
    assert [item["name"] for item in api.get("/api/v1/sites").json()["items"]] == ["ams"]


def test_every_route_declares_the_right_it_needs(services: Services) -> None:
    """A route that was added without a right would be open to everybody."""
    app = api_clients.client(services).app
    routes = [each for each in app.routes if isinstance(each, APIRoute)]  # type: ignore[attr-defined]
    ours = [each for each in routes if each.path.startswith("/api/v1/")]
    assert len(ours) > 5
    without = []
    for route in ours:
        needed = [each.call for each in route.dependant.dependencies]
        if not any(isinstance(call, Needs) for call in needed):
            without.append(route.path)
    assert without == []


def test_a_body_beyond_the_limit_is_refused(sites: Services) -> None:
    """The limit holds with and without a declared length."""
    api = api_clients.client(sites)
    text = b'{"requires": {"a": "' + b"x" * 2_000_000 + b'"}}'
    headers = {"Content-Type": "application/json"}
    assert api.patch("/api/v1/sites/ams", content=text, headers=headers).status_code == 413
    pieces = (text[at : at + 65_536] for at in range(0, len(text), 65_536))
    assert api.patch("/api/v1/sites/ams", content=pieces, headers=headers).status_code == 413


def test_the_openapi_document_describes_errors_and_logins(services: Services) -> None:
    """Each operation has the problem document as its errors."""
    api = api_clients.client(services)
    document = api.get(api_v1.DOCUMENT).json()
    patch = document["paths"]["/api/v1/sites/{name}"]["patch"]
    assert "application/problem+json" in patch["responses"]["412"]["content"]
    assert {"token", "session"} <= set(document["components"]["securitySchemes"])
    assert document["components"]["schemas"]["Problem"]["required"]


def test_a_code_is_explained(services: Services) -> None:
    """The address in `type` of a problem leads to its explanation."""
    api = api_clients.client(services)
    problem = api.get("/api/v1/sites/nowhere").json()
    explained = api.get(problem["type"])
    assert explained.json()["code"] == "P101"


@pytest.fixture
def counted(services: Services) -> api_clients.TestClient:
    """An application with a route that counts how often it acts."""
    api = api_clients.client(services)
    router = resources.router("counter")
    acts: list[int] = []

    @router.post("", status_code=201)
    def act(call: OperatingAll, fail: bool = False) -> dict[str, int]:
        acts.append(1)
        if fail:
            raise errors.InvalidInput("this fails")
        return {"acts": len(acts)}

    @router.post("/secret", openapi_extra=idempotency.HOLDS_SECRET)
    def secret(call: OperatingAll) -> dict[str, int]:
        return {}

    api.app.router.routes.extend(router.routes)  # type: ignore[attr-defined]
    return api


def test_a_repeated_post_acts_once(counted: api_clients.TestClient) -> None:
    """The second request with the key has the first response; another key acts again."""
    first = counted.post("/api/v1/counter", headers={"Idempotency-Key": "a"})
    again = counted.post("/api/v1/counter", headers={"Idempotency-Key": "a"})
    assert (first.status_code, first.json()) == (201, {"acts": 1})
    assert (again.status_code, again.json()) == (201, {"acts": 1})
    assert again.headers["idempotent-replayed"] == "true"
    assert counted.post("/api/v1/counter", headers={"Idempotency-Key": "b"}).json() == {"acts": 2}
    assert counted.post("/api/v1/counter").json() == {"acts": 3}


def test_a_key_is_for_one_request(counted: api_clients.TestClient) -> None:
    """Another request with the same key is refused; a failed one may be repeated."""
    key = {"Idempotency-Key": "a"}
    assert counted.post("/api/v1/counter?fail=true", headers=key).status_code == 422
    assert counted.post("/api/v1/counter", headers=key).json() == {"acts": 2}
    refused = counted.post("/api/v1/counter?fail=true", headers=key)
    assert (refused.status_code, "another request" in refused.json()["detail"]) == (422, True)


def test_a_response_with_a_secret_is_never_kept(counted: api_clients.TestClient) -> None:
    """The header is refused where a secret would get into Redis."""
    refused = counted.post("/api/v1/counter/secret", headers={"Idempotency-Key": "a"})
    assert (refused.status_code, "secret" in refused.json()["detail"]) == (422, True)


@pytest.fixture
def gate(counted: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A route of the application that acts for as long as the test wants, with a short lease."""
    monkeypatch.setattr(request_records, "LEASE_S", 1)
    gate = Gate()
    router = resources.router("gate")

    @router.post("")
    def pass_gate(call: OperatingAll, crash: bool = False, length: int = 0) -> dict[str, str]:
        gate.acts += 1
        gate.entered.set()
        assert gate.opened.wait(20)
        if crash:
            raise RuntimeError("a bug")
        return {"text": "x" * length}

    counted.app.router.routes.extend(router.routes)  # type: ignore[attr-defined]
    return gate


def test_a_request_that_outlives_its_lease_acts_once(
    counted: api_clients.TestClient, gate: Gate, services: Services
) -> None:
    """The second of two requests is told to wait for as long as the first one runs."""
    key = {"Idempotency-Key": "a"}
    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(counted.post, "/api/v1/gate", headers=key)
        assert gate.entered.wait(20)
        [sign] = services.redis.keys(services.keys.running_request("*"))  # type: ignore[misc]
        services.redis.pexpire(sign, 400)
        wait_until(lambda: services.redis.pttl(sign) > 500, "the lease was extended")  # type: ignore[operator]
        again = counted.post("/api/v1/gate", headers=key)
        assert (again.status_code, again.json()["code"]) == (409, "P103")
        gate.opened.set()
        assert first.result().status_code == 200
    assert counted.post("/api/v1/gate", headers=key).headers["idempotent-replayed"] == "true"
    assert (gate.acts, services.redis.exists(sign)) == (1, 0)


def test_a_request_whose_response_was_lost_does_not_act_again(
    counted: api_clients.TestClient, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller has the response of the act; a repeated request is asked to look what happened."""

    def fail(*arguments: object) -> None:
        raise errors.StoreUnavailable("Redis is away")

    gate.opened.set()
    for method in ("finish", "give_up"):
        monkeypatch.setattr(request_records.RequestRecord, method, fail)
    key = {"Idempotency-Key": "a"}
    assert counted.post("/api/v1/gate", headers=key).status_code == 200
    wait_until(lambda: again(counted, key) == (409, "P106"), "the lease ended")
    assert gate.acts == 1


@pytest.mark.parametrize("query", ["crash=true", "length=70000"])
def test_a_request_without_a_kept_response_does_not_act_again(
    counted: api_clients.TestClient, gate: Gate, query: str
) -> None:
    """A crash leaves no response, and a large one is not kept."""
    gate.opened.set()
    key = {"Idempotency-Key": "a"}
    counted.post(f"/api/v1/gate?{query}", headers=key)
    assert again(counted, key, query) == (409, "P106")
    assert gate.acts == 1


def again(api: api_clients.TestClient, key: dict[str, str], query: str = "") -> tuple[int, str]:
    response = api.post(f"/api/v1/gate?{query}" if query else "/api/v1/gate", headers=key)
    return response.status_code, response.json()["code"]
