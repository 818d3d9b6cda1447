"""The page that the link of a notification opens: look at an alert, acknowledge it, silence it."""

from __future__ import annotations

import time
from typing import Any

import pytest
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db.alerts import alert_listing, alert_row, maintenance_rows
from poller.db.alerts.alert_tables import alerts
from poller.domain.access.scopes import Role
from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity
from tests.integration.access_sites import BROWSER, Site, form_token, log_in

NOW = time.time_ns() // 1_000_000
ALERT = Alert(
    rule="unreachable",
    severity=Severity.CRITICAL,
    subject=Subject(1, None, "sw1", "", "fra"),
    state=AlertState.FIRING,
    since_ms=NOW - 60_000,
    seen_ms=NOW,
    fired_ms=NOW - 60_000,
    text="sw1 <b>does not</b> respond",
)


@pytest.fixture
def alert_id(services: Services) -> int:
    insert = sa.insert(alerts).values(alert_row.to_values(ALERT)).returning(alerts.c.id)
    with sql.writing(services.engine) as conn:
        return int(conn.execute(insert).scalar_one())


def browser_of(services: Services, role: Role) -> Any:
    site = Site(services)
    site.user("lee", role)
    browser = site.client(**BROWSER)
    log_in(browser)
    return browser


def sent(browser: Any, alert_id: int, page: str, **fields: str) -> Any:
    form = {"csrf_token": form_token(page), **fields}
    return browser.post(f"/alerts/{alert_id}", data=form)


def test_a_person_acknowledges_and_silences_by_forms(services: Services, alert_id: int) -> None:
    """Without scripts; each act comes back to the page, which then shows it."""
    browser = browser_of(services, Role.OPERATOR)
    page = browser.get(f"/alerts/{alert_id}").text
    assert "sw1 &lt;b&gt;does not&lt;/b&gt; respond" in page
    done = sent(browser, alert_id, page, action="acknowledge", note="on my way", until="4h")
    assert (done.status_code, done.headers["location"]) == (303, f"./{alert_id}")
    page = browser.get(f"/alerts/{alert_id}").text
    assert "Acknowledged by lee" in page
    sent(browser, alert_id, page, action="unacknowledge")
    sent(browser, alert_id, page, action="silence", reason="spare part", until="1d")
    kinds = [each.kind for each in alert_listing.changes(services.engine, alert_id)]
    assert kinds == ["acknowledged", "unacknowledged", "silenced"]
    [silence] = maintenance_rows.current(services.engine, NOW)
    assert (silence.reason, silence.created_by) == ("spare part", "lee")
    assert "spare part" in browser.get(f"/alerts/{alert_id}").text


def test_a_form_that_cannot_be_used_changes_nothing(services: Services, alert_id: int) -> None:
    """The page says which field, and what was wrong."""
    browser = browser_of(services, Role.OPERATOR)
    page = browser.get(f"/alerts/{alert_id}").text
    refused = sent(browser, alert_id, page, action="silence", reason=" ", until="1d")
    assert refused.status_code == 422
    assert "reason: it is empty." in refused.text
    assert sent(browser, alert_id, page, action="drop", until="1d").status_code == 422
    forged = browser.post(f"/alerts/{alert_id}", data={"action": "acknowledge", "until": "1h"})
    assert forged.status_code == 403
    assert alert_listing.changes(services.engine, alert_id) == []
    assert browser.get("/alerts/4711").status_code == 404


def test_who_may_only_look_sees_no_forms(services: Services, alert_id: int) -> None:
    """And is refused by the server anyway."""
    browser = browser_of(services, Role.VIEWER)
    page = browser.get(f"/alerts/{alert_id}").text
    assert "unreachable" in page
    assert 'value="acknowledge"' not in page
    refused = sent(browser, alert_id, page, action="acknowledge", until="4h")
    assert refused.status_code == 403
    assert alert_listing.changes(services.engine, alert_id) == []
