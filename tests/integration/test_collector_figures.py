"""The figures of collectors: counters of the last day, users, the slowest, and a release."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.cli import main
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger, target_statistics
from poller.domain.access.scopes import Role, Scope
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Result
from poller.domain.failures.quarantine import Cause, Incident, Rules
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.poll_totals import Time
from poller.domain.record import target_day
from poller.domain.record.run import Run
from poller.domain.record.target_day import TargetDay
from poller.state.cluster import quarantine_records
from poller.state.cluster.quarantine_records import Release
from poller.state.figures import hourly_totals
from poller.state.figures.hourly_totals import HOUR_MS, HOURS
from tests.integration import api_clients
from tests.integration.access_sites import BROWSER, Site, form_token, log_in
from tests.integration.audited_actions import audited
from tests.integration.breaker_worlds import World

API = "/api/v1/collectors"
NOON = 20_000 * 24 * HOUR_MS + 12 * HOUR_MS
SNMP = TargetDraft(collector="snmp")


def count(services: Services, **fields: int) -> None:
    """Let polls of SNMP end: `ok=3, timeout=1`; the code is that of failed ones."""
    for name, number in fields.items():
        kind = "end" if name in list(Result) else "code"
        services.redis.hincrby(services.keys.poll_totals, f"snmp|{kind}|{name}", number)


def since(services: Services, now_ms: int) -> tuple[int, dict[str, int]]:
    found = hourly_totals.last_day(services.redis, services.keys, now_ms)
    snmp = found.by_collector.get("snmp")
    return found.since_ms, dict(snmp.outcomes) if snmp else {}


def test_counters_are_those_since_the_copy_of_a_day_ago(services: Services) -> None:
    """The first call of an hour copies them; an older copy than a day is not looked at."""
    count(services, ok=1)
    hourly_totals.keep(services.redis, services.keys, NOON - 2 * HOUR_MS)
    count(services, ok=10)
    hourly_totals.keep(services.redis, services.keys, NOON + 5)
    hourly_totals.keep(services.redis, services.keys, NOON + 9)
    count(services, ok=100)
    assert since(services, NOON + 10) == (NOON - 2 * HOUR_MS, {"ok": 110})
    a_day_later = NOON + HOURS * HOUR_MS
    assert since(services, a_day_later) == (NOON + 5, {"ok": 100})
    key = services.keys.hourly_totals(NOON // HOUR_MS)
    assert HOURS * 3_600 < services.redis.ttl(key) <= hourly_totals.KEEP_S


def test_without_a_copy_everything_counts(services: Services) -> None:
    """Also after Redis was emptied and the counters began anew."""
    count(services, ok=7)
    assert since(services, NOON) == (NOON, {"ok": 7})
    hourly_totals.keep(services.redis, services.keys, NOON)
    services.redis.delete(services.keys.poll_totals)
    count(services, ok=2)
    assert since(services, NOON + 1) == (NOON, {"ok": 2})


def test_an_empty_cluster_has_no_figures(services: Services) -> None:
    """The copy of nothing is kept, too: from then on is counted."""
    hourly_totals.keep(services.redis, services.keys, NOON)
    assert since(services, NOON) == (NOON, {})


@pytest.fixture
def fleet(services: Services) -> Services:
    """Two devices with SNMP, of which one timed out."""
    for name in ("sw-1", "sw-2"):
        devices.add(services.engine, DeviceDraft(name, "10.0.0.1"), [SNMP])
    count(services, ok=95, failed=5, timeout=6)
    took = f"snmp|{Time.DURATION}|2"
    services.redis.hset(services.keys.poll_totals, took, 100)
    return services


def test_the_figures_by_api_and_command(
    fleet: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all, and of one with its slowest targets."""
    api = api_clients.client(fleet, (Scope.READ,))
    [item] = api.get(f"{API}/-/stats").json()["items"]
    assert (item["devices"], item["targets"], item["polls"], item["answered"]) == (2, 2, 100, 95)
    assert (item["success"], item["codes"], item["p50_seconds"]) == (0.95, {"timeout": 6}, 0.075)
    assert api.get(f"{API}/nonsense/stats").status_code == 404
    assert api.get(f"{API}/ping/stats").json()["devices"] == 0
    assert main.run(["collectors", "stats"]) == 0
    assert "snmp\t2\t2\t100\t95.00 %\t75 ms\t97.5 ms\t99.5 ms\ttimeout 6" in capsys.readouterr().out
    assert main.run(["collectors", "stats", "snmp", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == [item]
    assert main.run(["collectors", "stats", "snpm"]) == 3


def test_the_slowest_are_of_the_last_day_or_of_now(fleet: Services) -> None:
    """A cluster that is younger than a day shows the newest polls."""
    [first] = targets.of_device(fleet.engine, "sw-1")
    [second] = targets.of_device(fleet.engine, "sw-2")
    now_ms = fleet.board.now_ms()
    run_ledger.write(fleet.engine, [Run(first.id, now_ms, Result.OK, collect_ms=900)])
    api = api_clients.client(fleet, (Scope.READ,))
    body = api.get(f"{API}/snmp/stats").json()
    assert body["slowest_day"] is None
    assert [(each["device"], each["longest_seconds"]) for each in body["slowest"]] == [
        ("sw-1", 0.9)
    ]
    [day_ms] = target_day.ended_days(now_ms, 1)
    slow = TargetDay(day_ms, second.id, polls=9, p50_ms=40, p95_ms=7_000, max_ms=9_000)
    target_statistics.write(fleet.engine, [slow])
    other = Services(fleet.settings)  # a process that has looked at nothing yet
    other.__dict__.update(engine=fleet.engine, redis=fleet.redis)
    body = api_clients.client(other, (Scope.READ,)).get(f"{API}/snmp/stats").json()
    assert body["slowest_day"] is not None
    assert [(each["device"], each["p95_seconds"]) for each in body["slowest"]] == [("sw-2", 7.0)]


def test_users_are_counted_again_after_a_change_of_the_inventory(fleet: Services) -> None:
    """A count that took long rests before."""
    api = api_clients.client(fleet, (Scope.READ,))
    assert api.get(f"{API}/snmp/stats").json()["devices"] == 2
    devices.add(fleet.engine, DeviceDraft("sw-3", "10.0.0.3"), [SNMP])
    from poller.service.cluster import collector_figures

    cache = collector_figures._cache_of(fleet)
    cache._rests_until_mono = 0.0
    assert api.get(f"{API}/snmp/stats").json()["devices"] == 3


def test_the_pages_have_the_figures(fleet: Services) -> None:
    """Each number leads to its devices; a collector has a page of its own."""
    browser = Site(fleet).client(**BROWSER)
    page = html.unescape(browser.get("/collectors").text)
    assert 'href="devices?where=collector%3Asnmp">2</a>' in page
    assert "95.00 %" in page
    assert 'href="collectors/snmp"' in page
    one = html.unescape(browser.get("/collectors/snmp").text)
    assert "no complete response before the deadline" in one.lower()
    assert browser.get("/collectors/snpm").status_code == 404


@pytest.fixture
def world(services: Services) -> World:
    return World(services)


@pytest.fixture
def quarantined(world: World) -> World:
    """SNMP crashed once too often; one of its targets is a dead letter."""
    ids = world.add(1)
    release = Release("snmp", "poller 1")
    incident = Incident(world.board.now_ms(), Cause.CRASH, "it ended <its> process")
    rules = Rules(1, 1)
    keys, client = world.services.keys, world.services.redis
    for _ in range(2):
        quarantine_records.record(client, keys, release, incident, rules)
    world.park(ids, Reason.COLLECTOR_QUARANTINED)
    return world


def test_a_collector_is_released_by_its_button(quarantined: World) -> None:
    """The page says what was requeued, and leads to the results."""
    services = quarantined.services
    browser = Site(services).client(**BROWSER)
    for path in ("/collectors", "/collectors/snmp"):
        page = browser.get(path).text
        assert "Held back" in page
        assert "it ended &lt;its&gt; process" in page
        assert "poller collectors release snmp" in page
    answer = browser.post("/collectors/snmp/release", data={"csrf_token": form_token(page)})
    assert answer.status_code == 303
    told = browser.get(f"/{answer.headers['location'].removeprefix('../../')}").text
    assert "snmp: released, it runs like any other again. 1 dead letter was requeued." in told
    assert "See the results arrive" in told
    assert "Held back" not in told
    assert [row.action for row in audited(services)] == ["collector.release", "dead_letter.requeue"]
    again = browser.post("/collectors/odd/release", data={"csrf_token": form_token(page)})
    assert again.status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_what_one_may_do_is_shown(quarantined: World, role: Role) -> None:
    """And the server refuses the rest; a form of another site changes nothing."""
    site = Site(quarantined.services)
    site.user(role=role)
    browser = site.client(**BROWSER)
    log_in(browser)
    may = role is Role.OPERATOR
    page = browser.get("/collectors").text
    assert ("/release" in page) is may
    forged: dict[str, Any] = {"csrf_token": "0" * 64}
    assert browser.post("/collectors/snmp/release", data=forged).status_code == 403
    sent = browser.post("/collectors/snmp/release", data={"csrf_token": form_token(page)})
    assert sent.status_code == (303 if may else 403)
