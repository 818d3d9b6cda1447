"""Log-ins and sessions of the web role."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.domain.access.scopes import Role, Scope
from poller.service.access import user_accounts
from poller.service.access.user_accounts import UserChanges
from tests.integration import access_sites
from tests.integration.access_sites import BROWSER, KIM, PASSWORD, Site, form_token, log_in

EVERYWHERE = "0.0.0.0"


@pytest.fixture
def site(services: Services, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A web process that the network reaches."""
    return access_sites.make(services, monkeypatch, web_bind=EVERYWHERE)


@pytest.fixture
def local(services: Services) -> Site:
    """A web process on loopback."""
    return Site(services)


def test_a_login_is_a_session_with_a_new_value(site: Site) -> None:
    """The cookie is out of reach of scripts; a value that was planted before is not used."""
    site.user()
    browser = site.client()
    planted = "poller_" + "x" * 43
    browser.cookies.set("poller_session", planted)
    done = log_in(browser, next="jobs?x=1")
    assert (done.status_code, done.headers["location"]) == (303, "./jobs?x=1")
    cookie = done.headers["set-cookie"]
    assert planted not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert done.headers["cache-control"] == "no-store"
    page = browser.get("/jobs", headers=BROWSER)
    assert page.status_code == 200
    assert '<a href="account">lee</a>' in page.text


def test_over_tls_the_cookie_is_bound_to_the_host(site: Site) -> None:
    """Its name makes browsers refuse it from anywhere else."""
    site.user()
    done = log_in(site.client(scheme="https"))
    assert done.headers["set-cookie"].startswith("__Host-poller_session=")
    assert "Secure" in done.headers["set-cookie"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("//evil.example", "./evil.example"),
        ("https://evil.example/", "./https://evil.example/"),
        ("/\\evil.example", "./"),
        ("jobs\r\nSet-Cookie: x=1", "./"),
        ("javascript:alert(1)", "./javascript:alert(1)"),
        ("login", "./"),
        ("devices/sw1", "./devices/sw1"),
    ],
)
def test_a_login_leads_to_this_site_only(site: Site, given: str, sent: str) -> None:
    """Every redirect is relative to the present address."""
    site.user()
    assert log_in(site.client(), next=given).headers["location"] == sent


def test_a_wrong_login_says_the_same_for_every_reason(site: Site) -> None:
    """An unknown name, a wrong password and a disabled user cannot be told apart."""
    site.user()
    site.user("max")
    user_accounts.edit(site.services, KIM, "max", UserChanges(enabled=False))
    browser = site.client()
    answers = [
        log_in(browser, "nobody"),
        log_in(browser, "lee", "wrong password!"),
        log_in(browser, "max"),
        log_in(browser, "x" * 500),
    ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert len({answer.text for answer in answers}) == 1
    assert "The name or the password is wrong." in answers[0].text
    assert "set-cookie" not in answers[0].headers


def test_too_many_wrong_logins_of_a_user_have_to_wait(site: Site) -> None:
    """Other addresses do not help, and the right password does not either until the window ends."""
    site.user()
    for number in range(10):
        assert log_in(site.client(f"192.0.2.{number}"), "lee", "wrong").status_code == 401
    blocked = log_in(site.client("192.0.2.99"))
    assert blocked.status_code == 429
    assert 0 < int(blocked.headers["retry-after"]) <= 300
    redis: Any = site.services.redis
    names = redis.keys("poller:logins:*")
    assert len(names) == 12
    assert all(redis.ttl(name) > 0 for name in names)
    assert not any("lee" in name or "192.0.2" in name for name in names)


def test_refused_logins_are_two_audit_rows_a_window(site: Site) -> None:
    """The first failure of a user and the last allowed one; unknown names count together."""
    site.user()
    for number in range(12):
        log_in(site.client(f"192.0.2.{number}"), "lee", "wrong password!")
    for number in range(4):
        log_in(site.client("192.0.2.200"), f"secret-{number}")
    found = audit_rows.listing(site.services.engine, AuditQuery(action="login.refused"))
    assert [(row.subject, row.address, row.count) for row in reversed(found)] == [
        ("lee", "192.0.2.0", 1),
        ("lee", "192.0.2.9", 10),
        ("unknown", "192.0.2.200", 1),
    ]
    assert {row.actor for row in found} == {"nobody"}


def test_right_logins_are_not_counted(site: Site) -> None:
    """Thirty people behind one address log in one after the other."""
    site.user()
    statuses = {log_in(site.client()).status_code for _ in range(25)}
    assert statuses == {303}


def test_without_redis_each_process_counts_for_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guessing of passwords is slowed down, and people can log in."""
    from poller.state.cluster import login_attempts

    def away(*_: object) -> int:
        raise errors.StoreUnavailable("Redis is away")

    monkeypatch.setattr(login_attempts, "count", away)
    monkeypatch.setattr(login_attempts, "take_back", away)
    site.user()
    assert log_in(site.client()).status_code == 303
    statuses = [log_in(site.client(), "lee", "wrong").status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_cannot_log_a_browser_in(site: Site, headers: dict[str, str]) -> None:
    """A victim would work in the account of the attacker."""
    site.user()
    form = {"name": "lee", "password": PASSWORD}
    refused = site.client().post("/login", data=form, headers=headers)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


def test_a_login_is_a_form_and_nothing_else(site: Site) -> None:
    """A JSON body or a body without a type is refused, and a huge one is not read."""
    site.user()
    client = site.client()
    body = {"name": "lee", "password": PASSWORD}
    assert client.post("/login", json=body).status_code == 422
    assert client.post("/login", content=b"name=lee").status_code == 422
    assert client.post("/login", data={"name": "x" * 10_000}).status_code == 422


def test_a_session_must_show_its_token_for_a_change(site: Site) -> None:
    """The cookie alone, and the token of another session, are refused."""
    site.user()
    site.user("max")
    browser, other = site.client(), site.client()
    log_in(browser)
    log_in(other, "max")
    token = browser.get("/api/v1/session").json()["csrf_token"]
    foreign = other.get("/api/v1/session").json()["csrf_token"]
    new = {"name": "ci", "scopes": ["read"]}
    for headers in ({}, {"X-CSRF-Token": foreign}, {"X-CSRF-Token": "\u00e9".encode("latin-1")}):
        refused = browser.post("/api/v1/tokens", json=new, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "P601")
    cross = {"X-CSRF-Token": token, "Sec-Fetch-Site": "cross-site"}
    assert browser.post("/api/v1/tokens", json=new, headers=cross).status_code == 403
    made = browser.post("/api/v1/tokens", json=new, headers={"X-CSRF-Token": token})
    assert made.status_code == 201
    assert browser.delete("/api/v1/tokens/ci").status_code == 403


def test_a_log_out_needs_the_token_and_ends_the_session(site: Site) -> None:
    """Another site cannot log a user out; the old cookie is worth nothing afterwards."""
    site.user()
    browser = site.client()
    value = log_in(browser).cookies["poller_session"]
    assert browser.post("/logout", data={}).status_code == 403
    token = form_token(browser.get("/jobs", headers=BROWSER).text)
    done = browser.post("/logout", data={"csrf_token": token}, headers=BROWSER)
    assert (done.status_code, done.headers["location"]) == (303, "./login")
    browser.cookies.set("poller_session", value)
    assert browser.get("/api/overview").status_code == 401
    rows = audit_rows.listing(site.services.engine, AuditQuery(actor="lee"))
    assert [row.action for row in rows] == ["session.logout", "session.login"]
    assert value not in str(rows)


def test_a_second_login_replaces_the_first(site: Site) -> None:
    """The login form of an old tab works, and ends the session that the browser had."""
    site.user()
    site.user("max")
    browser = site.client()
    first = log_in(browser).cookies["poller_session"]
    assert log_in(browser, "max").status_code == 303
    assert browser.get("/api/v1/session").json()["name"] == "max"
    stolen = site.client()
    stolen.cookies.set("poller_session", first)
    assert stolen.get("/api/overview").status_code == 401


def test_the_local_actor_takes_no_form_of_another_site(local: Site) -> None:
    """Types that any site can send, foreign origins and foreign names are refused."""
    client = local.client("127.0.0.1")
    body = b'{"name": "ci", "scopes": ["read"]}'
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": media_type}
        refused = client.post("/api/v1/tokens", content=body, headers=headers)
        assert refused.status_code == 403, media_type
    assert client.post("/api/v1/tokens", content=body).status_code == 403
    plain = {"Content-Type": "application/json"}
    for foreign in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        refused = client.post("/api/v1/tokens", content=body, headers=plain | foreign)
        assert refused.status_code == 403
    assert client.delete("/api/v1/tokens/x", headers={"Origin": "null"}).status_code == 403
    rebound = client.post("/api/v1/tokens", content=body, headers=plain | {"Host": "evil.example"})
    assert rebound.status_code == 421
    own = plain | {"Origin": "http://127.0.0.1"}
    assert client.post("/api/v1/tokens", content=body, headers=own).status_code == 201


def test_a_demotion_and_a_revocation_end_rights(site: Site) -> None:
    """The next request has the new role; a revoked session has none."""
    site.user()
    site.user("max", Role.ADMIN)
    browser = site.client()
    log_in(browser, "max")
    assert browser.get("/api/v1/users").status_code == 200
    user_accounts.edit(site.services, KIM, "max", UserChanges(role=Role.VIEWER))
    site.forget()
    assert browser.get("/api/v1/users").status_code == 403
    admin = site.client(**site.token(Scope.ADMIN))
    [session] = admin.get("/api/v1/sessions").json()["items"]
    assert (session["name"], session["address"], session["source"]) == ("max", "192.0.2.7", "local")
    assert admin.delete(f"/api/v1/sessions/{session['id']}").status_code == 204
    assert browser.get("/api/overview").status_code == 401
    assert admin.delete(f"/api/v1/sessions/{session['id']}").status_code == 404


def test_an_idle_session_ends(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser is asked again."""
    site = access_sites.make(
        services, monkeypatch, web_bind=EVERYWHERE, session_idle_hours="0.0000001"
    )
    site.user()
    browser = site.client()
    log_in(browser)
    assert browser.get("/api/overview").status_code == 401
