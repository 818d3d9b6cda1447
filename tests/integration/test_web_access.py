"""Who may use the page and the API: tokens, sessions, proxies, loopback, and forged requests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from poller import errors
from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db import migrate
from poller.db.access import token_rows
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.service.access import api_tokens, login_demand
from poller.web.access import recent_rows
from poller.web.access.access_control import PUBLIC, STATIC
from poller.web.api.contract.needs import Needs, PageNeeds
from tests.conftest import wait_until
from tests.integration import access_sites
from tests.integration.access_sites import BROWSER, KIM, Site, log_in

EVERYWHERE = "0.0.0.0"
ISSUER = {
    "oidc_issuer": "https://login.example.net",
    "oidc_client_id": "poller",
    "oidc_client_secret": "hunter22-secret",
}


@pytest.fixture
def site(services: Services, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A web process that the network reaches."""
    return access_sites.make(services, monkeypatch, web_bind=EVERYWHERE)


@pytest.fixture
def local(services: Services) -> Site:
    """A web process on loopback."""
    return Site(services)


def routes(site: Site) -> list[tuple[str, str, APIRoute]]:
    """Every method and path, with a value in each parameter."""
    found = []
    for route in site.app.routes:
        assert isinstance(route, APIRoute), route
        path = re.sub(r"\{(\w+)[^}]*\}", lambda part: _value(part[1]), route.path)
        found += [(method, path, route) for method in sorted(route.methods)]
    return found


def _value(parameter: str) -> str:
    return "1" if parameter.endswith("id") else "x"


def needed(route: APIRoute) -> Needs | None:
    for each in route.dependant.dependencies:
        if isinstance(each.call, Needs):
            return each.call
        if isinstance(each.call, PageNeeds):
            return each.call.needs
    return None


def is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(STATIC)


def test_every_route_is_public_or_needs_a_right(site: Site) -> None:
    """A route that was added without a right would be open to every login."""
    open_routes = {path for _, path, route in routes(site) if needed(route) is None}
    assert {path for path in open_routes if not is_public(path)} == set()


def test_without_a_login_every_route_is_refused(site: Site) -> None:
    """401 beyond loopback, whatever the method; probes and the login page respond."""
    client = site.client()
    refused = {}
    for method, path, _ in routes(site):
        if not is_public(path):
            refused[f"{method} {path}"] = client.request(method, path).status_code
    assert len(refused) > 20
    assert set(refused.values()) == {401}
    assert client.get("/api/v1/sites").headers["www-authenticate"] == "Bearer"
    assert client.get("/nonsense").status_code == 401
    assert client.get("/healthz").status_code == 200
    assert client.get("/login").status_code == 200


def test_with_too_small_a_scope_every_route_is_refused(site: Site) -> None:
    """A token with all scopes that do not include the needed one gets 403."""
    client = site.client()
    headers = {
        scope: site.token(scope, name=scope.value) for scope in Scope if scope is not Scope.ADMIN
    }
    without = {
        Scope.READ: Scope.SCRAPE,
        Scope.OPERATE: Scope.INVENTORY,
        Scope.INVENTORY: Scope.OPERATE,
        Scope.ADMIN: Scope.OPERATE,
    }
    statuses = {}
    for method, path, route in routes(site):
        right = needed(route)
        if right is not None and right.scope is not Scope.SCRAPE:
            token = headers[without[right.scope]]
            statuses[f"{method} {path}"] = client.request(method, path, headers=token).status_code
    assert set(statuses.values()) == {403}, statuses


def test_a_token_has_its_scopes_and_its_site(site: Site) -> None:
    """A scraper reads metrics only; a token of a site sees no page about all sites."""
    client = site.client()
    scrape = site.token(Scope.SCRAPE, name="prometheus")
    assert client.get("/metrics", headers=scrape).status_code == 200
    assert client.get("/api/overview", headers=scrape).status_code == 403
    who = client.get("/api/v1/session", headers=scrape).json()
    assert (who["name"], who["kind"], who["scopes"], who["csrf_token"]) == (
        "prometheus",
        "token",
        ["scrape"],
        "",
    )
    devices.add(site.services.engine, DeviceDraft("sw1", address="192.0.2.1", site="ams"))
    of_site = site.token(Scope.OPERATE, name="portal", site="ams")
    assert client.get("/api/v1/session", headers=of_site).json()["site"] == "ams"
    assert client.get("/api/v1/sites/ams", headers=of_site).status_code == 200
    for path in ("/", "/api/overview", "/jobs", "/metrics"):
        assert client.get(path, headers=of_site).status_code == 403


def test_a_token_of_one_site_reads_nothing_about_the_others(site: Site) -> None:
    """The sentence counts all sites, and links lead to what it may open."""
    devices.add(site.services.engine, DeviceDraft("sw1", address="192.0.2.1", site="ams"))
    client = site.client()
    of_site = site.token(Scope.READ, name="portal", site="ams")
    page = client.get("/devices/sw1", headers={**of_site, **BROWSER})
    assert page.status_code == 200
    assert 'class="health"' not in page.text
    rooms = re.search(r'<nav class="rooms".*?</nav>', page.text, re.DOTALL)
    assert rooms
    for path in re.findall(r'href="([^"]*)"', rooms[0]):
        found = client.get(f"/{path.removeprefix('../')}", headers={**of_site, **BROWSER})
        assert found.status_code == 200, path
    assert 'role="search"' not in page.text
    assert client.get("/readyz", headers=of_site).json().keys() == {"status"}


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer poller_" + "x" * 43, "Bearer x", "bearer poller_\u00e9"],
)
def test_a_wrong_token_is_refused_whatever_else_is_sent(local: Site, header: str) -> None:
    """On loopback too, where no token at all would be admitted."""
    client = local.client("127.0.0.1")
    assert client.get("/api/v1/session").json()["kind"] == "local"
    response = client.get("/api/v1/session", headers={"Authorization": header.encode("latin-1")})
    is_bearer = header.startswith(("Bearer ", "bearer "))
    assert response.status_code == (401 if is_bearer else 200)


def test_a_token_in_the_address_is_refused(site: Site) -> None:
    """Addresses are kept in logs; the text does not repeat the token."""
    header = site.token(Scope.ADMIN)
    value = header["Authorization"].removeprefix("Bearer ")
    response = site.client().get("/api/v1/sites", params={"token": value}, headers=header)
    assert response.status_code == 422
    assert "must not be in the address" in response.json()["detail"]
    assert value not in response.text


def test_a_removed_or_expired_token_is_refused(site: Site) -> None:
    """Another process that knew the token refuses it as soon as its row is old."""
    client = site.client()
    header = site.token(Scope.READ)
    assert client.get("/api/v1/sites", headers=header).status_code == 200
    api_tokens.remove(site.services, KIM, "ci")
    site.forget()
    assert client.get("/api/v1/sites", headers=header).status_code == 401
    over = site.token(Scope.READ, name="over", lives_ms=1)
    assert client.get("/api/v1/sites", headers=over).status_code == 401


def test_the_last_use_of_a_token_is_stored_once_a_minute(site: Site) -> None:
    """The row is written beside the request, and not by each of them."""
    client = site.client()
    header = site.token(Scope.READ)
    client.get("/api/v1/sites", headers=header)
    engine = site.services.engine
    wait_until(lambda: token_rows.get(engine, "ci").last_used_ms, "the last use")
    first = token_rows.get(engine, "ci").last_used_ms
    client.get("/api/v1/sites", headers=header)
    assert token_rows.get(engine, "ci").last_used_ms == first


def test_on_loopback_no_login_is_asked_until_somebody_can_log_in(local: Site) -> None:
    """The page says so; with the first user it asks, and a token changes nothing."""
    client = local.client("127.0.0.1")
    page = client.get("/", headers=BROWSER)
    assert page.status_code == 200
    assert "no login asked" in page.text
    local.token(Scope.READ)
    local.forget()
    assert client.get("/", headers=BROWSER).status_code == 200
    local.user()
    redirected = client.get("/jobs/prune?x=1", headers=BROWSER)
    assert redirected.status_code == 303
    assert redirected.headers["location"] == "../login?next=jobs%2Fprune%3Fx%3D1"
    assert client.get("/api/overview").status_code == 401


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Forwarded-User", "Forwarded", "X-Real-IP", "Via"]
)
def test_a_proxy_on_loopback_does_not_make_the_world_local(local: Site, header: str) -> None:
    """A request that a proxy passed on is not from this machine."""
    client = local.client("127.0.0.1")
    assert client.get("/api/overview", headers={header: "192.0.2.9"}).status_code == 401


def test_readyz_names_no_server_to_strangers(site: Site) -> None:
    """Whether the process is ready is public; why is not."""
    assert site.client().get("/readyz").json() == {"status": "ready"}
    header = site.token(Scope.READ)
    assert "redis" in site.client().get("/readyz", headers=header).json()


def test_users_are_managed_by_admins_and_one_stays(site: Site) -> None:
    """The password is in no response and in no audit row, and the last admin stays."""
    admin = site.client(**site.token(Scope.ADMIN))
    secret = "the secret of max, 123"
    new = {"name": "max", "role": "admin", "password": secret}
    made = admin.post("/api/v1/users", json=new)
    assert (made.status_code, made.json()["role"]) == (201, "admin")
    assert admin.post("/api/v1/users", json=new).status_code == 409
    weak = {"name": "eve", "password": "short-pw-x"}
    refused = admin.post("/api/v1/users", json=weak)
    assert (refused.status_code, "short-pw-x" in refused.text) == (422, False)
    assert admin.patch("/api/v1/users/max", json={"role": "viewer"}).status_code == 422
    assert admin.delete("/api/v1/users/max").status_code == 422
    admin.post("/api/v1/users", json={**new, "name": "lee"})
    assert admin.patch("/api/v1/users/max", json={"enabled": False}).json()["enabled"] is False
    assert admin.delete("/api/v1/users/max").status_code == 204
    assert [user["name"] for user in admin.get("/api/v1/users").json()["items"]] == ["lee"]
    rows = admin.get("/api/v1/audit", params={"limit": 2, "actor": "ci"}).json()
    assert [row["action"] for row in rows["items"]] == ["user.remove", "user.edit"]
    older = admin.get("/api/v1/audit", params={"cursor": rows["next"], "actor": "ci"}).json()
    assert [row["action"] for row in older["items"]] == ["user.add", "user.add"]
    assert secret not in str((rows, older, made.text))


def test_a_token_is_in_one_response_only(site: Site) -> None:
    """Lists and the audit log have its name; a site that is unknown is named."""
    admin = site.client(**site.token(Scope.ADMIN))
    made = admin.post("/api/v1/tokens", json={"name": "t", "scopes": ["read"], "lives_s": 60})
    value = made.json()["token"]
    assert value.startswith("poller_")
    listed = admin.get("/api/v1/tokens")
    assert [token["name"] for token in listed.json()["items"]] == ["ci", "t"]
    first = admin.get("/api/v1/tokens", params={"limit": 1}).json()
    second = admin.get("/api/v1/tokens", params={"limit": 1, "cursor": first["next"]}).json()
    assert [page["items"][0]["name"] for page in (first, second)] == ["ci", "t"]
    assert second["next"] is None
    assert value not in listed.text + admin.get("/api/v1/audit").text
    wrong = admin.post("/api/v1/tokens", json={"name": "u", "scopes": ["read"], "site": "ams"})
    assert wrong.status_code == 422
    keyed = {"Idempotency-Key": "a"}
    again = admin.post("/api/v1/tokens", json={"name": "v", "scopes": ["read"]}, headers=keyed)
    assert again.status_code == 422
    assert admin.delete("/api/v1/tokens/t").status_code == 204


def test_beyond_loopback_somebody_must_be_able_to_log_in(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user, a token, a provider or a proxy; the error has the command that makes a user."""
    site = access_sites.make(services, monkeypatch, web_bind=EVERYWHERE)
    with pytest.raises(errors.InvalidSetting, match="no user and no token") as refused:
        login_demand.check_exposure(site.services)
    assert "poller user add NAME --role admin" in refused.value.hint
    assert "poller token add NAME --scope read" in refused.value.hint
    site.token(Scope.READ)
    login_demand.check_exposure(site.services)
    api_tokens.remove(site.services, KIM, "ci")
    with pytest.raises(errors.InvalidSetting):
        login_demand.check_exposure(site.services)
    provider = access_sites.make(services, monkeypatch, **ISSUER)
    login_demand.check_exposure(provider.services)


def test_a_database_that_is_away_admits_nobody_new(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that was used lately still works, so that an operator can look; others get 503."""
    header = site.token(Scope.READ)
    other = site.token(Scope.READ, name="other")
    client = site.client()
    assert client.get("/api/overview", headers=header).status_code == 200
    monkeypatch.setattr(recent_rows, "FRESH_S", 0.0)
    site.services.engine.dispose()
    file = Path(site.services.engine.url.database or "")
    file.rename(file.with_suffix(".away"))
    assert client.get("/api/overview", headers=header).status_code == 200
    refused = client.get("/api/v1/sites", headers=other)
    assert refused.status_code == 503
    assert refused.json()["code"] == errors.StoreUnavailable.code
    tried = log_in(client)
    assert tried.status_code == 503
    for told in (refused.text, tried.text, client.get("/login").text):
        assert file.name not in told  # nobody has logged in
    assert client.get("/api/overview").status_code == 401
    assert client.get("/healthz").status_code == 200
    file.with_suffix(".away").rename(file)


def test_characters_that_no_database_takes_are_refused(
    services: Services, monkeypatch: pytest.MonkeyPatch, fresh_postgres_url: str
) -> None:
    """A zero byte in a name is a mistake of the caller, on PostgreSQL too."""
    engine = sql.create(fresh_postgres_url)
    migrate.upgrade(engine)
    monkeypatch.setitem(services.__dict__, "engine", engine)
    site = Site(services)
    admin = site.client("127.0.0.1")
    paths = ["users/a%00b", "tokens/a%00b", "audit?actor=%00", "audit?subject=a%00"]
    assert [admin.get(f"/api/v1/{path}").status_code for path in paths] == [422] * 4
    assert admin.delete("/api/v1/users/a%00b").status_code == 422
    assert admin.delete("/api/v1/tokens/a%00b").status_code == 422
    assert admin.delete("/api/v1/sessions/a%00b").status_code == 422
    surrogate = {"name": "max", "password": "\ud800" * 20}
    body = json.dumps(surrogate).encode()
    headers = {"Content-Type": "application/json"}
    assert admin.post("/api/v1/users", content=body, headers=headers).status_code == 422
    named = {"name": "t", "scopes": ["read"], "site": "a\0b"}
    assert admin.post("/api/v1/tokens", json=named).status_code == 422
    assert log_in(admin, "a\0b", "x\0y").status_code == 401
    engine.dispose()
