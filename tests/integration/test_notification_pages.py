"""The pages of notifications: receivers, routes and deliveries, a test, and another attempt."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.alerts import delivery_rows
from poller.db.alerts.delivery_rows import MadeNotice, NoticeForReceiver
from poller.db.inventory import devices
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft
from poller.web.pages.alerts import deliveries_query
from tests.integration.access_sites import BROWSER, Site, form_token, log_in, make
from tests.integration.alert_receivers import firing, web
from tests.integration.test_notify_command import audited, dead_delivery

NOWHERE = "http://127.0.0.1:1/"


def told_site(services: Services, monkeypatch: pytest.MonkeyPatch, url: str = NOWHERE) -> Site:
    """A web process with one receiver and one route."""
    receivers = {"hook": {"kind": "webhook", "url": url}}
    routes = {"ops": {"receivers": ["hook"], "severities": ["critical"], "where": "site:fra"}}
    tables = {"receiver": json.dumps(receivers), "route": json.dumps(routes)}
    return make(services, monkeypatch, **tables)


def browser_of(site: Site, role: Role) -> Any:
    site.user(role.value, role)
    browser = site.client(**BROWSER)
    log_in(browser, role.value)
    return browser


def keys(page: str, table: str) -> list[str]:
    """The rows of one table."""
    found = page.partition(f'data-table="{table}"')[2].partition("</table>")[0]
    return re.findall(r'<tr data-key="([^"]*)"', found)


def send(browser: Any, **fields: Any) -> Any:
    shown = browser.get("/notifications").text
    return browser.post("/notifications", data={"csrf_token": form_token(shown), **fields})


def test_without_receivers_the_page_says_that_nobody_is_told(services: Services) -> None:
    """And what is missing."""
    page = Site(services).client(**BROWSER).get("/notifications")
    assert page.status_code == 200
    assert "poller.toml has no table [receiver.NAME]" in page.text
    assert "Nothing was sent yet." in page.text


def test_receivers_routes_and_deliveries_are_listed(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given up is said, and leads to exactly those deliveries and to each text."""
    site = told_site(services, monkeypatch)
    number = dead_delivery(site.services)
    browser = site.client(**BROWSER)
    page = html.unescape(browser.get("/notifications").text)
    assert keys(page, "receivers") == ["hook"]
    assert "gave up the last one" in page
    assert "critical site:fra" in page
    assert keys(page, "deliveries") == [str(number)]
    assert "422 no" in page
    only = browser.get("/notifications?state=dead&receiver=hook").text
    assert keys(only, "deliveries") == [str(number)]
    nothing = browser.get("/notifications?state=sent").text
    assert "No delivery matches." in nothing
    one = browser.get(f"/notifications/{number}").text
    assert "sw-1" in one
    assert 'href="../alerts/1"' in one
    assert browser.get(f"/notifications/{number + 1}").status_code == 404


def test_a_test_of_a_route_shows_what_each_receiver_answered(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that refuses is a result, too; an unknown route is an error with the nearest name."""
    with web() as (url, mood):
        site = told_site(services, monkeypatch, url)
        browser = browser_of(site, Role.OPERATOR)
        taken = send(browser, action="test", route="ops")
        assert "The test of ops was taken" in taken.text
        assert "200 noted" in taken.text
        mood.status = 422
        refused = send(browser, action="test", route="ops")
        assert refused.status_code == 200
        assert "was not taken by every receiver" in refused.text
        unknown = send(browser, action="test", route="opps")
        assert unknown.status_code == 404
        assert "Nothing was changed." in unknown.text
    told = [row for row in audited(site.services) if row[0].startswith("notification")]
    assert told == [("notification.test", "ops")] * 2
    tests = browser.get("/notifications").text
    assert 'name="delivery"' not in tests  # a test is sent anew, not tried again
    nothing = send(browser, action="retry", receiver="hook")
    assert nothing.headers["location"] == "./notifications?retried=0"
    assert "were tests, which are sent anew" in browser.get("/notifications?retried=0").text


def test_dead_deliveries_are_tried_again(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marked ones, or all of a receiver; the page says how many, and the audit log has it."""
    site = told_site(services, monkeypatch)
    number = dead_delivery(site.services)
    browser = browser_of(site, Role.OPERATOR)
    none = send(browser, action="retry")
    assert (none.status_code, "none is marked" in none.text) == (422, True)
    wrong = send(browser, action="retry", delivery=str(number + 9))
    assert wrong.status_code == 404
    done = send(browser, action="retry", delivery=[str(number)])
    assert done.status_code == 303
    after = browser.get(done.headers["location"].lstrip(".")).text
    assert "1 delivery is tried again." in after
    assert keys(browser.get("/notifications?state=waiting").text, "deliveries") == [str(number)]
    assert ("notification.retry", str(number)) in audited(site.services)
    assert send(browser, action="explode").status_code == 422


def test_deliveries_have_pages(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delivery once, the newest first."""
    site = told_site(services, monkeypatch)
    for number in range(7):
        made = [
            MadeNotice(
                "ops", [NoticeForReceiver("hook", replace(firing(), key=f"{number:040x}"))], [], ""
            )
        ]
        delivery_rows.make(site.services.engine, made, [], 1_800_000_000_000 + number)
    monkeypatch.setattr(deliveries_query, "LIMIT", 3)
    browser = site.client(**BROWSER)
    seen: list[int] = []
    address = "/notifications"
    while address:
        page = browser.get(address).text
        seen += map(int, keys(page, "deliveries"))
        following = re.search(r'<a href="([^"]*)" rel="next"', page)
        address = f"/{html.unescape(following[1])}" if following else ""
    assert len(seen) == 7
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("query", ["alert=x", "alert=1&after=WzEsMl0"])
def test_a_wrong_filter_keeps_what_was_typed(services: Services, query: str) -> None:
    """With what is wrong."""
    page = Site(services).client(**BROWSER).get(f"/notifications?{query}")
    assert page.status_code == 422
    assert 'role="alert"' in page.text


def test_only_what_one_may_do_is_shown(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer reads; a token of one site is refused, and a form without its token, too."""
    site = told_site(services, monkeypatch)
    number = dead_delivery(site.services)
    viewer = browser_of(site, Role.VIEWER)
    page = viewer.get("/notifications").text
    assert "Send a test" not in page
    assert "Try" not in page
    assert "Try again" not in viewer.get(f"/notifications/{number}").text
    assert send(viewer, action="retry", delivery=str(number)).status_code == 403
    operator = browser_of(site, Role.OPERATOR)
    forged = operator.post("/notifications", data={"action": "retry", "receiver": "hook"})
    assert forged.status_code == 403
    devices.add(services.engine, DeviceDraft("sw1", address="192.0.2.1", site="fra"), [])
    one_site = site.client(**site.token(Scope.OPERATE, Scope.READ, site="fra"))
    for path in ("/notifications", f"/notifications/{number}"):
        assert one_site.get(path).status_code == 403
    assert keys(viewer.get("/notifications?state=dead").text, "deliveries") == [str(number)]
