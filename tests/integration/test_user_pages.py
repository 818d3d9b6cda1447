"""The pages of users and sessions on real stores: passwords go in, and are nowhere afterwards."""

from __future__ import annotations

import gzip
import html
import re
from typing import Any

import pytest
from structlog.testing import capture_logs

from poller.bootstrap import Services
from poller.db.access import audit_rows, session_rows, user_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.access.session_rows import NewSession
from poller.domain.access.scopes import Role, Scope
from poller.security import passwords
from tests.integration.access_sites import (
    BROWSER,
    KIM,
    PASSWORD,
    Site,
    browser_of,
    form_token,
    log_in,
)

NEW = "another long password"


@pytest.fixture
def site(services: Services) -> Site:
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return browser_of(site, Role.ADMIN)


def send(browser: Any, address: str, **fields: str) -> Any:
    shown = browser.get("/users")
    return browser.post(address, data={"csrf_token": form_token(shown.text), **fields})


def add(browser: Any, name: str = "lee", role: str = "viewer", **fields: str) -> Any:
    given = {"name": name, "role": role, "password": PASSWORD, "again": PASSWORD, **fields}
    return send(browser, "/users", **given)


def field(page: str, name: str) -> str:
    """The part of the page with one input, its help and its error."""
    found = re.search(rf'<div class="field">\s*<label for="field-{name}">.*?</div>', page, re.S)
    assert found
    return found[0]


def acts(services: Services, subject: str) -> list[str]:
    rows = audit_rows.listing(services.engine, AuditQuery(subject=subject))
    return [row.action for row in rows]


def test_a_user_is_added_changed_and_removed_and_no_password_comes_out(
    browser: Any, services: Services
) -> None:
    """Each step leads to a page that says what was done, and leaves an audit row."""
    with capture_logs() as logs:
        answers = [
            add(browser),
            send(browser, "/users/lee", act="role", role="operator"),
            send(browser, "/users/lee", act="disable"),
            send(browser, "/users/lee", act="enable"),
            send(browser, "/users/lee", act="password", password=NEW, again=NEW),
            browser.get("/users/lee?did=password"),
            browser.get("/users"),
            send(browser, "/users/lee", act="remove"),
        ]
    assert [answer.status_code for answer in answers] == [303] * 5 + [200] * 2 + [303]
    assert answers[0].headers["location"] == "./users?did=add&name=lee"
    assert answers[-1].headers["location"] == "../users?did=remove&name=lee"
    assert "operator" in answers[6].text
    assert "has a new password" in answers[5].text
    assert acts(services, "lee") == ["user.remove"] + ["user.edit"] * 4 + ["user.add"]
    rows = audit_rows.listing(services.engine, AuditQuery(limit=100))
    for text in [answer.text + str(answer.headers) for answer in answers] + [str(logs), str(rows)]:
        assert PASSWORD not in text
        assert NEW not in text


def test_a_new_password_counts_as_it_was_typed(browser: Any, services: Services) -> None:
    """Blanks at its ends belong to it."""
    add(browser)
    blank = f" {NEW} "
    send(browser, "/users/lee", act="password", password=blank, again=blank)
    stored = user_rows.password_hash(services.engine, "lee")
    assert passwords.matches(stored, blank)
    assert not passwords.matches(stored, NEW)


@pytest.mark.parametrize(
    ("fields", "wrong", "status", "words"),
    [
        ({"again": NEW}, "again", 422, "The two passwords differ"),
        ({"password": "short", "again": "short"}, "password", 422, "at least 12 are needed"),
        ({"name": "with/slash"}, "name", 422, "contains &#34;/&#34;"),
        ({"name": "a:b"}, "name", 422, "contains :"),
        ({"name": "admin"}, "name", 409, "already"),
        ({"role": "king"}, "role", 422, "There is no role"),
    ],
)
def test_a_refused_form_keeps_what_was_typed_but_passwords(
    browser: Any, fields: dict[str, str], wrong: str, status: int, words: str
) -> None:
    """The error stands beside its field."""
    refused = add(browser, **fields)
    assert refused.status_code == status
    part = field(refused.text, wrong)
    assert words in part
    assert 'aria-invalid="true"' in part
    name = html.escape(fields.get("name", "lee"))
    assert f'name="name" value="{name}"' in refused.text
    for password in re.findall(r'<input[^>]*type="password"[^>]*>', refused.text):
        assert "value=" not in password


def test_the_last_admin_stays_and_the_error_is_beside_the_form(browser: Any) -> None:
    """Nobody could log in to change that; another admin makes it possible."""
    for act, more in (("role", {"role": "viewer"}), ("disable", {}), ("remove", {})):
        refused = send(browser, "/users/admin", act=act, **more)
        assert refused.status_code == 422, act
        assert "last enabled user with the role admin" in refused.text
        form = re.search(rf'role="alert".*?value="{act}"', refused.text, re.S)
        assert form, act
        assert form[0].count("</form>") == 0
        assert "<code>poller user add NAME --role admin</code>" in refused.text
    add(browser, role="admin")
    assert send(browser, "/users/admin", act="role", role="viewer").status_code == 303


def test_the_first_user_is_told_what_changes_before_the_button(site: Site) -> None:
    """Afterwards the page asks for the login of that user, and leads back to what was done."""
    browser = site.client("127.0.0.1", **BROWSER)
    page = browser.get("/users").text
    before, _, after = page.partition('<button class="main">')
    assert "From the first user on, the page and the API ask for a login." in before
    assert "Flower stays open at" in before
    assert after.startswith("Add the first user, and ask for a login")
    refused = add(browser, role="viewer")
    assert refused.status_code == 422
    assert "needs the role admin" in refused.text
    assert user_rows.listing(site.services.engine) == []

    added = add(browser, role="admin")
    asked = browser.get(f"/{added.headers['location'].removeprefix('./')}")
    assert asked.headers["location"] == "./login?next=users%3Fdid%3Dadd%26name%3Dlee"
    done = log_in(browser, next="users?did=add&name=lee")
    shown = browser.get(f"/{done.headers['location'].removeprefix('./')}")
    assert "User &#34;lee&#34; was added." in shown.text
    assert "Before you add the first user" not in shown.text


def test_a_disabled_user_and_a_new_password_end_sessions(site: Site, browser: Any) -> None:
    """The next request of the user is asked for a login."""
    lee = browser_of(site, Role.OPERATOR)
    assert lee.get("/devices").status_code == 200
    send(browser, "/users/operator", act="password", password=NEW, again=NEW)
    assert lee.get("/devices").status_code == 303
    log_in(lee, "operator", NEW)
    assert lee.get("/devices").status_code == 200
    send(browser, "/users/operator", act="disable")
    assert lee.get("/devices").status_code == 303


def test_a_session_is_listed_and_ended(site: Site, browser: Any) -> None:
    """Who, from where; the session of this browser has no button."""
    lee = browser_of(site, Role.OPERATOR, peer="192.0.2.99")
    page = browser.get("/users").text
    assert "192.0.2.99" in page
    assert page.count("this browser") == 1
    [end] = re.findall(r'action="(sessions/[0-9a-f]{12}/end)"', page)
    of_user = browser.get("/users/operator").text
    assert f'action="../{end}"' in of_user
    ended = send(browser, f"/{end}", back="operator")
    assert ended.headers["location"] == "../../users/operator?did=end"
    assert lee.get("/devices").status_code == 303
    assert "There is no session" in browser.get("/users/operator").text
    assert send(browser, f"/{end}").status_code == 404


def test_long_lists_have_pages(browser: Any, services: Services) -> None:
    """Users by name and sessions by age; each is on one page."""
    for number in range(60):
        user_rows.add(services.engine, f"u{number:02}", Role.VIEWER, "hash", KIM)
        new = NewSession(
            f"{number:02}" * 32, "oidc:x", Role.VIEWER, session_rows.OIDC, "::1", 60_000
        )
        session_rows.add(services.engine, new, KIM)
    users, sessions = [], []
    address = "/users"
    for _ in range(2):
        page = browser.get(address).text
        assert len(gzip.compress(page.encode(), 4)) <= 20_000
        users += re.findall(r'data-key="(u\d\d)"', page)
        found = re.search(r'href="(users\?after=[^"]*)"', page)
        address = "/" + html.unescape(found[1]) if found else ""
    address = "/users"
    for _ in range(2):
        page = browser.get(address).text
        sessions += re.findall(r'<tr data-key="([0-9a-f]{12})"', page)
        found = re.search(r'href="(users\?sessions=[^"#]*)', page)
        address = "/" + html.unescape(found[1]) if found else ""
    assert users == [f"u{number:02}" for number in range(60)]
    assert len(sessions) == len(set(sessions)) == 61


def test_others_than_admins_see_and_do_nothing(site: Site, browser: Any) -> None:
    """Neither the pages nor their entries in the navigation; forms need their token."""
    operator = browser_of(site, Role.OPERATOR)
    page = operator.get("/devices").text
    for path in ("users", "tokens", "audit"):
        assert f'href="{path}"' not in page
        assert operator.get(f"/{path}").status_code == 403
    token = {"csrf_token": form_token(page)}
    for address in ("/users", "/users/admin", "/tokens", "/tokens/x/remove", "/sessions/ab/end"):
        assert operator.post(address, data=token).status_code == 403, address
        assert browser.post(address, data={}).status_code == 403, address
    limited = site.client(**BROWSER, **site.token(Scope.ADMIN))
    assert limited.get("/users").status_code == 200
