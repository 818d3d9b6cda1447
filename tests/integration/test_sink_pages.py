"""The pages of sinks and of settings on real stores: who sees them, and a marked sample."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import devices
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.record.sink_report import SinkReport, SinkState
from tests.integration.access_sites import BROWSER, Site, form_token, log_in, make
from tests.integration.test_api_cluster import a_sink, a_worker, cut_redis

SECRET = "planted-hunter22"


@pytest.fixture
def site(services: Services) -> Site:
    """A web process that knows one site."""
    devices.add(services.engine, DeviceDraft("sw1", address="192.0.2.1", site="ams"), [])
    return Site(services)


def browser_of(site: Site, role: Role) -> Any:
    site.user(role.value, role)
    browser = site.client(**BROWSER)
    log_in(browser, role.value)
    return browser


def names(page: str) -> list[str]:
    """The sinks in the order of their rows."""
    return re.findall(r'<tr data-key="([^"]*)" data-command="poller sinks test', page)


def audited(site: Site) -> list[tuple[str, str]]:
    rows = audit_rows.listing(site.services.engine, AuditQuery())
    return [(row.action, row.subject) for row in rows if row.action == "sink.test"]


def test_a_sink_that_is_down_stands_first_and_is_said_in_words(site: Site) -> None:
    """With its error, what to do, what waits and what was lost; and the kinds below."""
    services = site.services
    now_ms = services.board.now_ms()
    down = a_sink(
        SinkState.DOWN, spooled_polls=1_200, spooled_bytes=4_096, oldest_ms=now_ms - 200_000,
        error="prom does not answer", hint="start it", error_ms=now_ms, retry_ms=now_ms + 30_000,
        dropped={"full": 64}, stored_ms=now_ms - 240_000,
    )  # fmt: skip
    a_worker(services, "poll-1@h", sinks=(a_sink(stored_ms=now_ms), a_sink_of_sql()))
    a_worker(services, "poll-2@h", sinks=(down,))
    page = html.unescape(site.client(**BROWSER).get("/sinks").text)
    assert names(page) == ["prom", "sql"]
    assert "Sink prom is down: prom does not answer; 1,200 polls wait on disk" in page
    assert "in 1 of 2 workers" in page
    assert "What to do: start it" in page
    assert "64 polls" in page
    assert "full 64" in page
    assert "poller sinks test prom" in page
    assert "never" in page  # sql has stored nothing yet
    assert "remote_write" in page
    assert 'data-live="5"' in page


def a_sink_of_sql() -> SinkReport:
    return replace(a_sink(), name="sql", kind="sql")


def test_one_marked_sample_is_sent_and_its_answer_shown(site: Site) -> None:
    """An operator sends it; the page says what the store answered, and the audit log has it."""
    browser = browser_of(site, Role.OPERATOR)
    page = browser.get("/sinks").text
    answer = browser.post("/sinks", data={"csrf_token": form_token(page), "name": "sql"})
    assert answer.status_code == 200
    assert "sql (sql) took one sample in" in answer.text
    assert 'data-live="0"' in answer.text
    assert audited(site) == [("sink.test", "sql")]


def test_a_store_that_does_not_answer_is_a_result(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the error and what to do about it."""
    table = '{"prom": {"kind": "remote_write", "url": "http://127.0.0.1:1/api/v1/write"}}'
    site = make(services, monkeypatch, sink=table, sinks="sql,prom")
    browser = browser_of(site, Role.OPERATOR)
    page = browser.get("/sinks").text
    assert names(page) == ["sql", "prom"]
    assert "no running worker has it" in page
    answer = browser.post("/sinks", data={"csrf_token": form_token(page), "name": "prom"})
    assert answer.status_code == 200
    assert "prom (remote_write) did not take the sample" in answer.text
    assert "What to do:" in answer.text


def test_a_sink_that_does_not_exist_is_refused(site: Site) -> None:
    """With the nearest name; nothing is sent."""
    browser = browser_of(site, Role.OPERATOR)
    form = {"csrf_token": form_token(browser.get("/sinks").text), "name": "sqk"}
    answer = browser.post("/sinks", data=form)
    assert answer.status_code == 404
    assert "No sample was sent" in answer.text
    assert audited(site) == []


def test_a_viewer_sees_sinks_and_may_not_test_them(site: Site) -> None:
    """The button is not there, and the server refuses; so is a form without its token."""
    viewer = browser_of(site, Role.VIEWER)
    page = viewer.get("/sinks").text
    assert names(page) == ["sql"]
    assert "Send one marked sample" not in page
    token = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', viewer.get("/devices").text)
    assert token
    refused = viewer.post("/sinks", data={"csrf_token": token[1], "name": "sql"})
    assert refused.status_code == 403
    operator = browser_of(site, Role.OPERATOR)
    assert operator.post("/sinks", data={"name": "sql"}).status_code == 403
    one_site = site.client(**site.token(Scope.OPERATE, Scope.READ, site="ams"))
    assert one_site.get("/sinks").status_code == 403
    assert audited(site) == []


def test_sinks_are_shown_without_redis(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their states are not known then, and the page says so."""
    cut_redis(site.services, monkeypatch)
    page = site.client(**BROWSER).get("/sinks")
    assert page.status_code == 200
    assert "The reports of workers cannot be read" in page.text
    assert names(page.text) == ["sql"]


def test_settings_are_for_administrators(site: Site) -> None:
    """The page is not in the navigation of others, and the server refuses them."""
    admin, operator = browser_of(site, Role.ADMIN), browser_of(site, Role.OPERATOR)
    assert 'href="settings"' in admin.get("/sinks").text
    assert admin.get("/settings").status_code == 200
    assert 'href="settings"' not in operator.get("/sinks").text
    assert operator.get("/settings").status_code == 403
    one_site = site.client(**site.token(Scope.OPERATE, Scope.READ, site="ams"))
    assert one_site.get("/settings").status_code == 403


def test_a_setting_has_its_value_origin_and_meaning_and_no_secret(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were set first; a search looks at all, a link shows all."""
    monkeypatch.setenv("POLLER_DATABASE_URL", f"postgresql://u:{SECRET}@h/db")
    site = make(services, monkeypatch, batch_size="32")
    browser = site.client(**BROWSER)
    page = browser.get("/settings").text
    assert "environment POLLER_BATCH_SIZE" in page
    assert "default: 64" in page
    assert ">tick_s<" not in page
    every = browser.get("/settings?show=all").text
    assert ">tick_s<" in every
    found = browser.get("/settings?q=POLLER_TICK").text
    assert re.findall(r'class="name">(\w+)<', found) == ["tick_s"]
    assert "No setting matches." in browser.get("/settings?q=nonsense").text
    for text in (page, every, browser.get(f"/settings?q={SECRET}x").text):
        assert f"{SECRET}@" not in text
    assert "********" in every


def test_a_search_does_not_find_a_secret(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at what is shown: a secret cannot be guessed letter by letter."""
    site = make(services, monkeypatch, database_url=f"postgresql://u:{SECRET}@h/db")
    page = site.client(**BROWSER).get(f"/settings?q={SECRET}").text
    assert "No setting matches." in page
