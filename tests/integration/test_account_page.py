"""The own account: rights, sessions and the password, for everybody who is logged in."""

from __future__ import annotations

import re
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.access import audit_rows, user_rows
from poller.db.access.audit_rows import AuditQuery
from poller.domain.access.scopes import Role, Scope
from poller.security import passwords
from poller.service.access import browser_logins
from tests.integration import access_sites
from tests.integration.access_sites import (
    BROWSER,
    PASSWORD,
    Site,
    browser_of,
    form_token,
    log_in,
)

NEW = "another long password"
PROVIDER = {
    "oidc_issuer": "https://login.example.net",
    "oidc_client_id": "poller",
    "oidc_client_secret": "hunter22-secret",
}


@pytest.fixture
def site(services: Services) -> Site:
    return Site(services)


def change(browser: Any, old: str = PASSWORD, new: str = NEW, again: str = NEW) -> Any:
    token = form_token(browser.get("/account").text)
    fields = {"csrf_token": token, "old_password": old, "password": new, "again": again}
    return browser.post("/account", data=fields)


def is_logged_in(browser: Any) -> bool:
    return bool(browser.get("/account").status_code == 200)


def test_everybody_who_is_logged_in_has_the_page(site: Site) -> None:
    """A viewer, a token and the person on loopback see their own rights, and no form of others."""
    local = site.client("127.0.0.1", **BROWSER).get("/account").text
    assert "No login is asked" in local
    assert 'type="password"' not in local
    viewer = browser_of(site, Role.VIEWER).get("/account").text
    assert "Your account: viewer" in viewer
    assert "Role viewer" in viewer
    assert re.findall(r'<td class="has">(\w+)</td>', viewer) == ["yes", "yes", "no", "no", "no"]
    assert viewer.count('type="password"') == 3
    token = site.client(**BROWSER, **site.token(Scope.SCRAPE)).get("/account")
    assert token.status_code == 200
    assert "An API token" in token.text
    assert 'type="password"' not in token.text


def test_a_changed_password_ends_the_other_sessions(site: Site, services: Services) -> None:
    """This browser goes on, the next login needs the new one, and the audit log has a row."""
    browser = browser_of(site, Role.VIEWER)
    other = site.client("192.0.2.99", **BROWSER)
    log_in(other, "viewer")
    done = change(browser)
    assert done.headers["location"] == "./account?did=password"
    assert "Your password was changed" in browser.get("/account?did=password").text
    assert not is_logged_in(other)
    assert log_in(other, "viewer").status_code == 401
    assert log_in(other, "viewer", NEW).status_code == 303
    [row] = audit_rows.listing(services.engine, AuditQuery(action="user.password"))
    assert (row.actor, row.subject, row.after) == ("viewer", "viewer", {"sessions_ended": 1})


@pytest.mark.parametrize(
    ("typed", "wrong", "words"),
    [
        ({"old": "not the password"}, "old_password", "The old password is wrong"),
        ({"again": "something else"}, "again", "The two passwords differ"),
        ({"new": "short", "again": "short"}, "password", "at least 12 are needed"),
        ({"new": PASSWORD, "again": PASSWORD}, "password", "the one that you have already"),
    ],
)
def test_a_refused_form_says_which_field(
    site: Site, services: Services, typed: dict[str, str], wrong: str, words: str
) -> None:
    """Nothing is changed, and no password comes back."""
    browser = browser_of(site, Role.VIEWER)
    refused = change(browser, **typed)
    assert refused.status_code == 422
    part = re.search(rf'<label for="field-{wrong}">.*?</div>', refused.text, re.S)
    assert part
    assert words in part[0]
    assert not any(text in refused.text for text in (PASSWORD, NEW, "not the password"))
    assert passwords.matches(user_rows.password_hash(services.engine, "viewer"), PASSWORD)


def test_guessing_the_old_password_is_slowed_down_as_log_ins_are(
    site: Site, services: Services
) -> None:
    """The same counters: after ten failures neither the form nor a login goes on for a while."""
    browser = browser_of(site, Role.VIEWER)
    assert [change(browser, old=f"wrong {n}").status_code for n in range(10)] == [422] * 10
    blocked = change(browser)
    assert blocked.status_code == 429
    assert 0 < int(blocked.headers["retry-after"]) <= 300
    assert log_in(site.client(), "viewer").status_code == 429
    rows = audit_rows.listing(services.engine, AuditQuery(action="password.refused"))
    assert [(row.actor, row.count) for row in rows] == [("viewer", 10), ("viewer", 1)]
    assert is_logged_in(browser)


def test_a_wrong_new_password_is_no_failure(site: Site) -> None:
    """What is refused before the old password is looked at is not counted."""
    browser = browser_of(site, Role.VIEWER)
    assert {change(browser, new="short", again="short").status_code for _ in range(12)} == {422}
    assert change(browser).status_code == 303


def test_a_person_ends_own_sessions_only(site: Site) -> None:
    """That of somebody else is not found, whatever the id is."""
    browser, admin = browser_of(site, Role.VIEWER), browser_of(site, Role.ADMIN)
    other = site.client("192.0.2.99", **BROWSER)
    log_in(other, "viewer")
    page = browser.get("/account").text
    [mine] = re.findall(r'action="account/sessions/([0-9a-f]{12})/end"', page)
    token = {"csrf_token": form_token(page)}
    ended = browser.post(f"/account/sessions/{mine}/end", data=token)
    assert ended.headers["location"] == "../../../account?did=end"
    assert not is_logged_in(other)
    [of_admin] = re.findall(r'data-key="([0-9a-f]{12})"', admin.get("/account").text)
    refused = browser.post(f"/account/sessions/{of_admin}/end", data=token)
    assert refused.status_code == 404
    assert is_logged_in(admin)


def test_the_api_changes_the_own_password(site: Site) -> None:
    """With the checks of the page; a token has no password, and no key keeps the request."""
    browser = browser_of(site, Role.VIEWER)
    headers = {"X-CSRF-Token": browser.get("/api/v1/session").json()["csrf_token"]}
    address = "/api/v1/session/password"
    body = {"old_password": PASSWORD, "password": NEW}
    wrong = browser.post(address, json={**body, "old_password": "wrong"}, headers=headers)
    assert (wrong.status_code, wrong.json()["fields"][0]["field"]) == (422, "old_password")
    short = browser.post(address, json={**body, "password": "short password"[:11]}, headers=headers)
    assert short.status_code == 422
    assert browser.post(address, json=body).status_code == 403  # without the token of forms
    assert browser.post(address, json=body, headers=headers).status_code == 204
    assert log_in(site.client(), "viewer", NEW).status_code == 303
    program = site.client(**site.token(Scope.ADMIN))
    refused = program.post(address, json=body)
    assert refused.status_code == 403
    assert "has no password here" in refused.json()["detail"]
    keyed = program.post(address, json=body, headers={"Idempotency-Key": "x"})
    assert keyed.status_code == 422


def test_a_user_of_a_provider_has_no_password_here(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the sessions, and says where the password is."""
    site = access_sites.make(services, monkeypatch, **PROVIDER)
    login = browser_logins.log_in_by_provider(site.services, "max", Role.OPERATOR, "192.0.2.7")
    browser = site.client(**BROWSER)
    browser.cookies.set("poller_session", login.value)
    page = browser.get("/account").text
    assert "Your account: oidc:max" in page
    assert "single sign-on" in page
    assert 'type="password"' not in page
    fields = {"csrf_token": form_token(page), "password": NEW, "again": NEW}
    assert browser.post("/account", data=fields).status_code == 403
