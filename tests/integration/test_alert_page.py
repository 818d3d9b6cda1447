"""The pages of alerts: the list, one alert with its forms, and what people make of them."""

from __future__ import annotations

import gzip
import html
import re
import time
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db.alerts import alert_listing, alert_row, maintenance_rows
from poller.db.alerts.alert_tables import alerts
from poller.db.inventory import devices
from poller.domain.access.scopes import Role, Scope
from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.service.alerts import maintenance_actions
from poller.web.pages.alerts import alert_list_query
from tests.integration.access_sites import BROWSER, KIM, Site, form_token, log_in

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


def store(services: Services, *found: Alert) -> list[int]:
    insert = sa.insert(alerts).returning(alerts.c.id)
    with sql.writing(services.engine) as conn:
        return [conn.execute(insert.values(alert_row.to_values(row))).scalar_one() for row in found]


@pytest.fixture
def alert_id(services: Services) -> int:
    return store(services, ALERT)[0]


@pytest.fixture
def ids(services: Services, alert_id: int) -> list[int]:
    """One of each kind: firing, covered by it, pending, of a dark site, and over."""
    target = TargetDraft(name="snmp", collector="snmp")
    for name, site in (("sw1", "fra"), ("sw2", "fra"), ("sw3", "ber")):
        devices.add(services.engine, DeviceDraft(name, "192.0.2.1", site=site), [target])
    of_second = Subject(2, None, "sw2", "", "fra")
    others = (
        replace(ALERT, subject=of_second, suppressed_by=f"alert:{alert_id}"),
        replace(ALERT, subject=of_second, rule="hot", state=AlertState.PENDING, fired_ms=0),
        replace(ALERT, subject=Subject(site="ber"), rule="dark", severity=Severity.WARNING),
        replace(ALERT, rule="old", state=AlertState.RESOLVED, resolved_ms=NOW - 1_000),
    )
    return [alert_id, *store(services, *others)]


def browser_of(services: Services, role: Role) -> Any:
    site = Site(services)
    site.user("lee", role)
    browser = site.client(**BROWSER)
    log_in(browser)
    return browser


def sent(browser: Any, alert_id: int, page: str, **fields: str) -> Any:
    form = {"csrf_token": form_token(page), **fields}
    return browser.post(f"/alerts/{alert_id}", data=form)


def listed(page: str) -> list[int]:
    """The alerts of a list, in its order."""
    return [int(each) for each in re.findall(r'<tr data-key="(\d+)"', page)]


def test_the_list_shows_first_what_fires(services: Services, ids: list[int]) -> None:
    """What something covers is counted, and listed on demand; filters are the address."""
    browser = browser_of(services, Role.VIEWER)
    page = browser.get("/alerts").text
    assert listed(page) == [ids[3], ids[0], ids[2]]
    assert "Open: 2 firing (1 critical), 1 pending, 1 suppressed." in page
    assert f'<a href="alerts/{ids[0]}">sw1 &lt;b&gt;does not&lt;/b&gt; respond</a>' in page
    covered = browser.get("/alerts", params={"covered": "yes"}).text
    assert listed(covered) == [ids[3], ids[1], ids[0], ids[2]]
    assert f'<a href="alerts/{ids[0]}">alert {ids[0]}</a>' in covered
    for query, found in (
        ({"state": "pending"}, [ids[2]]),
        ({"state": "all"}, [ids[3], ids[0], ids[2], ids[4]]),
        ({"severity": "warning"}, [ids[3]]),
        ({"site": "fra"}, [ids[0], ids[2]]),
        ({"device": "sw2", "covered": "yes"}, [ids[1], ids[2]]),
        ({"rule": "dark"}, [ids[3]]),
        ({"site": "ber", "severity": "critical"}, []),
    ):
        assert listed(browser.get("/alerts", params=query).text) == found, query
    empty = browser.get("/alerts", params={"rule": "none"}).text
    assert "No alert matches." in empty
    wrong = browser.get("/alerts", params={"site": "frb"})
    assert (wrong.status_code, 'value="frb"' in wrong.text) == (422, True)
    assert browser.get("/alerts", params={"after": "x"}).status_code == 422
    assert browser.get("/alerts", params={"severity": "x"}).status_code == 422


def test_pages_go_through_all_states(
    services: Services, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alert is there once, with those that fire on the first pages."""
    monkeypatch.setattr(alert_list_query, "LIMIT", 2)
    browser = browser_of(services, Role.VIEWER)
    seen, address = [], "/alerts?state=all&covered=yes"
    for _ in range(4):
        page = browser.get(address).text
        seen.append(listed(page))
        following = re.search(r'<a href="([^"]*)" rel="next"', page)
        if following is None:
            break
        address = "/" + html.unescape(following[1])
    assert seen == [[ids[3], ids[1]], [ids[0], ids[2]], [ids[4]]]


def test_a_full_page_is_within_its_budget(services: Services) -> None:
    """Fifty alerts of an outage with forms: bytes as they are sent, and elements of a row."""
    subjects = [Subject(n, None, f"access-switch-{n:03}", "", "frankfurt") for n in range(60)]
    cover = "maintenance:12"
    store(services, *(replace(ALERT, subject=each, suppressed_by=cover) for each in subjects))
    page = browser_of(services, Role.OPERATOR).get("/alerts?covered=yes").text
    assert len(listed(page)) == 50
    assert len(gzip.compress(page.encode(), 4)) <= 20_000
    rows = re.findall(r'<tr data-key="\d+".*?</tr>', page, re.DOTALL)
    assert max(len(re.findall(r"<[a-z]", row)) for row in rows) <= 30
    assert len(re.findall(r"<[a-z]", page)) <= 1_500


def test_marked_alerts_are_acknowledged_together(services: Services, ids: list[int]) -> None:
    """One that is over meanwhile is refused by name; the others are done."""
    browser = browser_of(services, Role.OPERATOR)
    page = browser.get("/alerts?site=fra").text
    form = {"csrf_token": form_token(page), "until": "4h", "note": "on my way"}
    marked = {"alert": [str(ids[0]), str(ids[2])]}
    done = browser.post("/alerts?site=fra", data={**form, **marked, "action": "acknowledge"})
    assert done.status_code == 303
    page = browser.get(f"/{done.headers['location']}").text
    assert "2 alerts acknowledged." in page
    assert page.count("acknowledged by lee until") == 2
    late = {"alert": [str(ids[0]), str(ids[4])], "action": "silence", "reason": "spare part"}
    refused = browser.post("/alerts", data={**form, **late})
    assert refused.status_code == 422
    assert "1 alert silenced." in refused.text
    assert f"Alert {ids[4]} is over since" in refused.text
    for wrong, words in (
        ({"action": "silence", **marked}, "Reason: it is empty."),
        ({"action": "acknowledge", **marked, "until": "soon"}, "Until: "),
        ({"action": "acknowledge"}, "Alert: none is marked."),
        ({"action": "drop", **marked}, "Action: "),
    ):
        answer = browser.post("/alerts", data={**form, **wrong})
        assert (answer.status_code, words in answer.text) == (422, True), wrong
    [silence] = maintenance_rows.current(services.engine, NOW)
    assert silence.reason == "spare part"


def test_the_list_of_a_viewer_has_no_forms(services: Services, ids: list[int]) -> None:
    """The server refuses them anyway. A token of one site sees the alerts of that site."""
    browser = browser_of(services, Role.VIEWER)
    page = browser.get("/alerts").text
    assert 'value="acknowledge"' not in page
    assert 'name="alert"' not in page
    form = {"csrf_token": form_token(page), "alert": str(ids[0]), "until": "1h"}
    refused = browser.post("/alerts", data={**form, "action": "acknowledge"})
    assert refused.status_code == 403
    assert alert_listing.changes(services.engine, ids[0]) == []
    site = Site(services)
    of_site = site.token(Scope.READ, site="ber")
    seen = site.client().get("/alerts", headers={**of_site, **BROWSER}).text
    assert listed(seen) == [ids[3]]
    assert "Open: 1 firing." in seen


def test_a_device_shows_its_open_alerts(services: Services, ids: list[int]) -> None:
    """With what covers them; a link leads to those that are over."""
    browser = browser_of(services, Role.VIEWER)
    page = browser.get("/devices/sw2").text
    table = page[page.index('data-table="device-alerts"') :]
    assert re.findall(r'<tr data-key="alert (\d+)"', table) == [str(ids[1]), str(ids[2])]
    assert f'<a href="../alerts/{ids[0]}">alert {ids[0]}</a>' in table
    every = re.search(r'<a href="\.\.(/alerts\?[^"]*)">all on record</a>', table)
    assert every
    assert listed(browser.get(html.unescape(every[1])).text) == [ids[1], ids[2]]
    assert "device-alerts" not in browser.get("/devices/sw3").text


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


def test_a_maintenance_is_added_and_ended_by_forms(services: Services, ids: list[int]) -> None:
    """It recurs, if wanted; silences are in the same list."""
    browser = browser_of(services, Role.OPERATOR)
    page = browser.get("/maintenance", params={"where": "site:fra"}).text
    assert "every alert is told" in page
    assert 'name="where" value="site:fra"' in page
    token = {"csrf_token": form_token(page)}
    once = {**token, "where": "site:fra", "reason": "rack <1>", "end": "2h"}
    made = browser.post("/maintenance", data=once)
    assert (made.status_code, made.headers["location"]) == (303, "./maintenance?did=add&number=1")
    weekly = {"start": "1h", "cron": "0 2 * * sun", "time_zone": "Europe/Berlin", "length": "2h"}
    browser.post("/maintenance", data={**once, **weekly, "rule": "", "end": "300d"})
    silence = {**token, "action": "silence", "until": "1d", "reason": "spare part"}
    browser.post(f"/alerts/{ids[0]}", data=silence)
    page = browser.get("/maintenance?did=add&number=1").text
    assert "Maintenance 1 was added." in page
    assert listed(page) == [3, 2, 1]
    assert "rack &lt;1&gt;" in page
    assert "0 2 * * sun Europe/Berlin, 2h each" in page
    assert "one alert of the rule unreachable" in page
    ended = browser.post("/maintenance/1/end", data=token)
    assert ended.headers["location"] == "../../maintenance?did=end&number=1"
    assert listed(browser.get("/maintenance").text) == [3, 2]
    assert listed(browser.get("/maintenance?over=yes").text) == [3, 2, 1]
    assert browser.post("/maintenance/1/end", data=token).status_code == 422
    assert browser.post("/maintenance/4711/end", data=token).status_code == 404


def test_a_wrong_maintenance_keeps_its_texts(services: Services, ids: list[int]) -> None:
    """The error names the field, and nothing is stored."""
    browser = browser_of(services, Role.OPERATOR)
    page = browser.get("/maintenance").text
    for fields, words in (
        ({"where": ""}, "Where: it would be about nothing in particular."),
        ({"where": "site:frb"}, "frb"),
        ({"reason": ""}, "Reason: it is empty."),
        ({"end": ""}, "End: "),
        ({"end": "1000d"}, "End: it is more than 366 days from now."),
        ({"rule": "none"}, "none"),
        ({"cron": "0 2 * * sun"}, "Length: "),
        ({"cron": "x" * 101}, "Cron: "),
    ):
        form = {"where": "site:fra", "reason": "rack 1", "end": "2h", **fields}
        refused = browser.post("/maintenance", data={"csrf_token": form_token(page), **form})
        assert (refused.status_code, words in refused.text) == (422, True), fields
        assert "Nothing was changed." in refused.text
        for name, text in form.items():
            assert f'name="{name}" value="{text}"' in refused.text
    assert maintenance_rows.current(services.engine, NOW) == []


def test_who_may_only_look_sees_maintenance_without_forms(
    services: Services, ids: list[int]
) -> None:
    """And may not add one; a token of one site sees that of its site."""
    made = {"ends_ms": NOW + 3_600_000, "reason": "rack"}
    for where in ("site:fra", "site:ber"):
        draft = maintenance_actions.MaintenanceDraft(where=where, **made)
        maintenance_actions.add(services, KIM, draft)
    browser = browser_of(services, Role.VIEWER)
    page = browser.get("/maintenance").text
    assert listed(page) == [2, 1]
    assert "you need the role operator" in page
    assert "End now" not in page
    token = {"csrf_token": form_token(page)}
    form = {**token, "where": "site:fra", "reason": "x", "end": "1h"}
    assert browser.post("/maintenance", data=form).status_code == 403
    assert browser.post("/maintenance/1/end", data=token).status_code == 403
    site = Site(services)
    of_site = site.token(Scope.READ, site="ber")
    assert listed(site.client().get("/maintenance", headers={**of_site, **BROWSER}).text) == [2]
