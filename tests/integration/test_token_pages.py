"""The page of tokens on real stores: a value is in one answer, and nowhere else."""

from __future__ import annotations

import re
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from poller.bootstrap import Services
from poller.db.access import audit_rows, token_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import devices
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft
from tests.integration.access_sites import Site, browser_of, form_token

DAY_MS = 86_400_000


@pytest.fixture
def site(services: Services) -> Site:
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return browser_of(site, Role.ADMIN)


def make(browser: Any, **fields: Any) -> Any:
    token = form_token(browser.get("/tokens").text)
    given = {"name": "ci", "scope": ["read", "operate"], "life": "90d", **fields}
    return browser.post("/tokens", data={"csrf_token": token, **given})


def value_in(page: str) -> str:
    found = re.search(r"poller_[A-Za-z0-9_-]{43}", page)
    assert found
    return found[0]


def test_a_value_is_shown_once_and_works(
    site: Site, browser: Any, services: Services, redis_client: redis.Redis
) -> None:
    """No later page, address, header, log line, audit row or key of Redis has it."""
    with capture_logs() as logs:
        made = make(browser)
        value = value_in(made.text)
        later = [make(browser), browser.get("/tokens"), browser.get("/audit?subject=ci")]
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    assert made.text.count(value) == 1
    assert 'data-live="0"' in made.text  # the page does not read itself again
    assert later[0].status_code == 409  # the same form again, as a reload sends it
    rows = audit_rows.listing(services.engine, AuditQuery(limit=100))
    texts = [each.text + str(each.headers) + str(each.url) for each in later]
    texts += [str(made.headers), str(made.url), str(logs), str(rows)]
    for key in redis_client.keys("*"):  # type: ignore[union-attr]
        texts.append(str(redis_client.dump(key)))
    assert not any(value in text for text in texts)
    program = site.client()
    answer = program.get("/api/v1/session", headers={"Authorization": f"Bearer {value}"}).json()
    assert (answer["name"], answer["scopes"]) == ("ci", ["scrape", "read", "operate"])


def test_a_token_has_the_site_and_the_end_of_its_form(browser: Any, services: Services) -> None:
    """An empty life is a token that never ends; sites are suggested."""
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", site="fra"))
    assert '<option value="fra">' in browser.get("/tokens").text
    assert make(browser, site="fra").status_code == 200
    assert make(browser, name="forever", life="").status_code == 200
    ci, forever = token_rows.listing(services.engine)
    assert (ci.site, ci.scopes) == ("fra", (Scope.READ, Scope.OPERATE))
    assert ci.expires_ms is not None
    assert abs(ci.expires_ms - ci.created_at.timestamp() * 1000 - 90 * DAY_MS) < 60_000
    assert (forever.site, forever.expires_ms) == (None, None)


@pytest.mark.parametrize(
    ("fields", "beside", "words"),
    [
        ({"name": "a/b"}, 'label for="field-name"', "contains"),
        ({"scope": []}, 'fieldset class="scopes" aria-invalid', "A token needs a scope"),
        ({"site": "nowhere"}, 'label for="field-site"', "nowhere"),
        ({"scope": ["admin"], "site": "fra"}, 'label for="field-site"', "cannot be limited"),
        ({"life": "soon"}, 'label for="field-life"', "is not a duration"),
        ({"life": "20000d"}, 'label for="field-life"', "ten years"),
    ],
)
def test_a_refused_form_keeps_what_was_typed(
    browser: Any, services: Services, fields: dict[str, Any], beside: str, words: str
) -> None:
    """The error stands beside its field, and nothing is made."""
    devices.add(services.engine, DeviceDraft("sw1", "192.0.2.1", site="fra"))
    refused = make(browser, **fields)
    assert refused.status_code == 422
    part = re.search(rf"<{beside}.*?(?:</div>|</fieldset>)", refused.text, re.S)
    assert part
    assert words in part[0]
    for scope in fields.get("scope", ["read", "operate"]):
        assert f'name="scope" value="{scope}" checked' in refused.text
    assert f'value="{fields.get("name", "ci")}"' in refused.text
    assert token_rows.listing(services.engine) == []


def test_a_removed_token_is_refused_at_once(site: Site, browser: Any) -> None:
    """The list asks before, and says afterwards what was done."""
    headers = {"Authorization": f"Bearer {value_in(make(browser).text)}"}
    program = site.client()
    assert program.get("/api/v1/session", headers=headers).status_code == 200
    page = browser.get("/tokens").text
    assert "Remove ci, which ends its use" in page
    removed = browser.post("/tokens/ci/remove", data={"csrf_token": form_token(page)})
    assert removed.headers["location"] == "../../tokens?did=remove&name=ci"
    assert program.get("/api/v1/session", headers=headers).status_code == 401
    assert "Token &#34;ci&#34; was removed." in browser.get("/tokens?did=remove&name=ci").text
