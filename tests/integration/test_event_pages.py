"""The page of events: groups, one by one, pages, a file, and what a token of one site sees."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from poller import event_publisher
from poller.beat import event_recorder
from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Event, Kind
from poller.state.cluster import event_stream
from poller.web.pages.record import events_query
from tests.integration.access_sites import BROWSER, Site
from tests.integration.happenings import DOWN, without_redis

NOW_MS = DOWN.at_ms
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def site(services: Services) -> Site:
    """Two devices at two sites."""
    for name, place in (("sw1", "ams"), ("sw2", "ber")):
        draft = DeviceDraft(name, address="192.0.2.1", site=place)
        devices.add(services.engine, draft, [TargetDraft(collector="ping")])
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return site.client(**BROWSER)


def publish(site: Site, events: Iterable[Event], to_sql: bool = True) -> None:
    """Put events on the stream, the oldest first, and copy them as the leader does."""
    services = site.services
    in_order = sorted(events, key=lambda event: event.at_ms)
    event_stream.publish(services.redis, services.keys, in_order, 10_000)
    if to_sql:
        event_recorder.copy(services)


def outage(number: int, ago_s: int = 0) -> list[Event]:
    """Devices that went down within a second each."""
    at_ms = NOW_MS - ago_s * 1000
    return [replace(DOWN, at_ms=at_ms - 1000 * each, device=f"ap-{each}") for each in range(number)]


def changes(page: str) -> list[str]:
    """The text of the second column of each line."""
    cells = re.findall(r'<td class="change"[^>]*>(?:<a [^>]*>)?([^<]*)<', page)
    return [html.unescape(cell) for cell in cells]


def times(page: str) -> list[str]:
    return re.findall(r'class="time"><time datetime="([^"]*)"', page)


def followed(page: str, marker: str) -> str:
    """The address of a link that is followed by a marker, as the browser asks for it."""
    found = re.search(rf'<a href="([^"]*)"{marker}', page)
    assert found
    return f"/{html.unescape(found[1])}"


def test_nothing_yet_is_said(browser: Any) -> None:
    """The page without an event says so, and is live."""
    page = browser.get("/events")
    assert page.status_code == 200
    assert "Nothing has changed yet." in page.text
    assert 'data-live="15" data-watch="changes"' in page.text


def test_many_events_of_one_kind_are_one_line_that_leads_to_them(site: Site, browser: Any) -> None:
    """The line has the number, some names and the oldest instant; events of others stand apart."""
    joined = Event(NOW_MS - 3_000, Kind.WORKER_JOINED, "w1 joined")
    publish(site, [*outage(200), joined])
    page = browser.get("/events").text
    assert changes(page) == ["▲ 200 × device went down", "worker joined"]
    assert "ap-0, ap-1, ap-2 and 197 more" in page
    members = browser.get(followed(page, ">▲ 200")).text
    assert set(changes(members)) == {"▲ device went down"}
    assert len(changes(members)) == events_query.LIMIT
    assert 'href="devices/ap-0"' in members
    assert "poller events --kind device_went_down --since" in members


def test_each_event_is_on_one_page(site: Site, browser: Any) -> None:
    """One by one, over all pages, from SQL and from the stream."""
    kinds = [Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED]
    events = [replace(DOWN, at_ms=NOW_MS - 500 * n, kind=kinds[n % 2]) for n in range(120)]
    publish(site, events[20:])
    publish(site, events[:20], to_sql=False)
    seen: list[str] = []
    address, pages = "/events?view=events", 0
    while address:
        page = browser.get(address).text
        seen += times(page)
        pages += 1
        address = followed(page, ' rel="next"') if 'rel="next"' in page else ""
    assert (len(seen), pages) == (120, 3)
    assert seen == sorted(seen, reverse=True)


def test_groups_have_pages_too(site: Site, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is lost where a page ends, and the older pages are not live."""
    monkeypatch.setattr(events_query, "LIMIT", 3)
    alone = [Event(NOW_MS - 600_000 * n, list(Kind)[n], f"m{n}") for n in range(8)]
    publish(site, alone)
    seen: list[str] = []
    page = browser.get("/events").text
    while True:
        seen += re.findall(r'class="message">(m\d)<', page.replace(" <span", "<span"))
        if 'rel="next"' not in page:
            break
        page = browser.get(followed(page, ' rel="next"')).text
        assert 'data-live="0"' in page
    assert seen == [f"m{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("params", "number"),
    [
        ({"device": "sw1"}, 1),
        ({"device": "sw1/snmp"}, 1),
        ({"where": "site:ber"}, 1),
        ({"where": "sw2"}, 1),
        ({"kind": "worker_lost"}, 1),
        ({"bad": "yes"}, 2),
        ({"until": "2000-01-01"}, 0),
        ({"since": "2000-01-01"}, 4),
    ],
)
def test_the_filter_is_that_of_the_command(
    site: Site, browser: Any, params: dict[str, str], number: int
) -> None:
    """The page, its file and its command have the same."""
    publish(
        site,
        [
            replace(DOWN, device="sw1"),
            replace(DOWN, device="sw2", kind=Kind.DEVICE_RECOVERED),
            Event(NOW_MS, Kind.WORKER_LOST, "w1 is silent"),
            Event(NOW_MS, Kind.WORKER_JOINED, "w1 joined"),
        ],
    )
    page = browser.get("/events", params=params).text
    assert len(changes(page)) == number
    if not number:
        assert "No event matches." in page
    file = browser.get("/events/-/events.csv", params=params).text
    assert len(list(csv.DictReader(io.StringIO(file)))) == number
    for text in params.values():
        assert html.escape(text) in page


@pytest.mark.parametrize(
    ("params", "status", "said", "field"),
    [
        ({"since": "soon"}, 422, "is not a duration", "since"),
        ({"where": "colour:red"}, 422, "has no key", "where"),
        ({"bad": "yes", "kind": "worker_joined"}, 422, "worker_joined is not bad", "kind"),
        ({"device": "nowhere"}, 404, "No device named", "device"),
        ({"device": "/snmp"}, 422, "a target is named with its device", ""),
        ({"after": "WzFd"}, 422, "not a cursor of this list", ""),
    ],
)
def test_a_wrong_filter_keeps_what_was_typed(
    browser: Any, params: dict[str, str], status: int, said: str, field: str
) -> None:
    """The field is marked, and the file is refused as a whole."""
    page = browser.get("/events", params=params)
    assert page.status_code == status
    assert said in html.unescape(page.text)
    marked = re.findall(r'name="(\w+)"[^>]*aria-invalid', page.text)
    assert marked == ([field] if field else [])
    if "after" not in params:
        assert browser.get("/events/-/events.csv", params=params).status_code == status


def test_texts_of_devices_are_no_markup(site: Site, browser: Any) -> None:
    """Neither on the page nor as a formula in the file."""
    publish(site, [replace(DOWN, device=SCRIPT, message=f"=1+1 {SCRIPT}")])
    assert SCRIPT not in browser.get("/events").text
    assert "'=1+1" in browser.get("/events/-/events.csv").text


def test_events_of_jobs_lead_to_the_job(site: Site, browser: Any) -> None:
    """The name is in the data of the event."""
    publish(site, [Event(NOW_MS, Kind.JOB_FAILED, "job prune failed", data={"job": "prune"})])
    assert '<a href="jobs/prune">prune</a>' in browser.get("/events").text


def test_a_token_of_one_site_sees_only_its_events(site: Site) -> None:
    """In groups, one by one and in the file; another site's device is unknown to it."""
    own = devices.show(site.services.engine, "sw1")
    other = devices.show(site.services.engine, "sw2")
    publish(
        site,
        [
            replace(DOWN, device="sw1", device_id=own.id, target_id=None, message="mine"),
            replace(DOWN, device="sw2", device_id=other.id, target_id=None, message="theirs"),
            Event(NOW_MS, Kind.WORKER_LOST, "theirs"),
        ],
    )
    reader = site.client(**site.token(Scope.READ, site="ams"), accept="text/html")
    for address in ("/events", "/events?view=events", "/events/-/events.csv"):
        answer = reader.get(address)
        assert answer.status_code == 200
        assert "mine" in answer.text
        assert "theirs" not in answer.text
    assert reader.get("/events?device=sw2").status_code == 404
    assert reader.get("/events?where=site:ber").status_code == 403


def test_nobody_sees_them_without_a_login(site: Site, browser: Any) -> None:
    """A browser is led to the login; a token that only scrapes is refused."""
    publish(site, [DOWN])
    site.user()
    assert browser.get("/events").status_code in (302, 303)
    scraper = site.client(**site.token(Scope.SCRAPE))
    assert scraper.get("/events/-/events.csv").status_code == 403


def test_without_redis_the_events_in_sql_are_shown(
    site: Site, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a note that the newest may be missing."""
    publish(site, [DOWN])
    away = without_redis(services, monkeypatch)
    away.__dict__.update(engine=services.engine)
    page = Site(away).client(**BROWSER).get("/events")
    assert page.status_code == 200
    assert changes(page.text) == ["▲ device went down"]
    assert "Events of the last seconds may be missing" in page.text


def test_a_new_event_is_on_the_first_page_at_once(site: Site, browser: Any) -> None:
    """Before the leader has copied it to SQL."""
    event_publisher.emit(site.services, [DOWN])
    assert changes(browser.get("/events").text) == ["▲ device went down"]
