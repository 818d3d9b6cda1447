"""`poller notify` and `/api/v1/notifications` do the same, and are audited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from poller import bootstrap
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.alerts import delivery_rows
from poller.db.alerts.delivery_rows import MadeNotice, NoticeForReceiver
from poller.domain.access.scopes import Scope
from poller.domain.alerts.telling.delivery import DeliveryState, NextStep
from tests.integration import api_clients
from tests.integration.alert_receivers import Mood, firing, web
from tests.integration.commands import Cli, ok

API = "/api/v1/notifications"
DEAD = NextStep(DeliveryState.DEAD, 0, is_event=True)


def configure(monkeypatch: pytest.MonkeyPatch, url: str, **route: Any) -> Services:
    """Services with one webhook and one route."""
    receivers = {"hook": {"kind": "webhook", "url": url}}
    routes = {"ops": {"receivers": ["hook"], **route}}
    monkeypatch.setenv("POLLER_RECEIVER", json.dumps(receivers))
    monkeypatch.setenv("POLLER_ROUTE", json.dumps(routes))
    bootstrap.services.cache_clear()
    return bootstrap.services()


def dead_delivery(services: Services) -> int:
    """Store a delivery that was given up."""
    now_ms = database_clock.now_ms(services.engine)
    notice = firing()
    made = MadeNotice("ops", [NoticeForReceiver("hook", notice)], [(1, "firing", 0)], "told")
    delivery_rows.make(services.engine, [made], [], now_ms)
    taken = delivery_rows.take(services.engine, "hook", "t", now_ms, now_ms)
    assert taken is not None
    delivery_rows.end_attempt(services.engine, taken, "t", DEAD, "422 no", now_ms)
    return taken.id


def audited(services: Services) -> list[tuple[str, str]]:
    rows = audit_rows.listing(services.engine, AuditQuery())[::-1]
    return [(row.action, row.subject) for row in rows]


def test_a_route_is_tested_by_command(
    services: Services, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows what was sent and answered, and fails if a receiver does not take it."""
    with web() as (url, mood):
        changed = configure(monkeypatch, url)
        shown = ok(cli("notify", "test", "ops"))
        assert "200 noted" in shown.out
        assert "[test]" in shown.out
        assert mood.bodies[0]["kind"] == "test"
        mood.status = 503
        failed = cli("notify", "test", "ops", "--json")
        assert failed.code == 1
        assert failed.json["receivers"][0]["error"].startswith("hook answers with status 503")
        assert cli("notify", "test", "opps").code == 3
    assert audited(changed) == [("notification.test", "ops")] * 2
    items = ok(cli("notify", "deliveries", "--json")).json["items"]
    assert [(each["kind"], each["state"]) for each in items] == [("test", "dead"), ("test", "sent")]


def test_receivers_and_routes_are_listed(
    services: Services, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what waits and failed; without tables it says that nobody is told."""
    assert "nobody is told" in cli("notify").err
    changed = configure(monkeypatch, "http://127.0.0.1:1/", severities=["critical"])
    dead_delivery(changed)
    body = ok(cli("notify", "--json")).json
    [receiver], [route] = body["receivers"], body["routes"]
    assert (receiver["routes"], receiver["dead"], receiver["problem"]) == (["ops"], 1, "")
    assert receiver["last_answer"] == "422 no"
    assert route["severities"] == ["critical"]
    screen = ok(cli("notify")).out
    assert "hook" in screen
    assert "critical" in screen
    assert api_clients.client(changed).get(API).json()["routes"] == body["routes"]


def test_a_dead_delivery_is_retried_by_command(
    services: Services, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By id or receiver; another id changes nothing."""
    changed = configure(monkeypatch, "http://127.0.0.1:1/")
    number = dead_delivery(changed)
    assert cli("notify", "retry").code == 2
    assert cli("notify", "retry", str(number + 1)).code == 3
    shown = ok(cli("notify", "deliveries", str(number), "--json")).json
    assert (shown["state"], shown["answer"]) == ("dead", "422 no")
    assert "sw-1" in shown["body"]
    assert "1 delivery is tried again" in ok(cli("notify", "retry", str(number))).out
    items = ok(cli("notify", "deliveries", "--state", "waiting", "--json")).json["items"]
    assert [each["id"] for each in items] == [number]
    assert audited(changed) == [("notification.retry", str(number))]


def test_the_api_does_the_same(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test, list, show and retry; a token of one site and one that only reads are refused."""
    with web(Mood()) as (url, mood):
        changed = configure(monkeypatch, url)
        api = api_clients.client(changed)
        tested = api.post(f"{API}/routes/ops/test").json()
        assert (tested["ok"], tested["receivers"][0]["answer"]) == (True, "200 noted")
        assert len(mood.bodies) == 1
        assert api.post(f"{API}/routes/opps/test").status_code == 404
    number = dead_delivery(changed)
    assert api.get(f"{API}/deliveries/{number}").json()["alert_ids"] == [1]
    page = api.get(f"{API}/deliveries", params={"limit": 1}).json()
    assert [each["id"] for each in page["items"]] == [number]
    rest = api.get(f"{API}/deliveries", params={"cursor": page["next"]}).json()
    assert [each["kind"] for each in rest["items"]] == ["test"]
    assert api.post(f"{API}/deliveries/retry", json={}).status_code == 422
    refused = api.post(f"{API}/deliveries/retry", json={"ids": [number + 9]})
    assert refused.status_code == 404
    assert refused.json()["hint"] == f"GET {API}/deliveries?state=dead"
    done = api.post(f"{API}/deliveries/retry", json={"receiver": "hook"})
    assert done.json() == {"ids": [number]}

    reader = api_clients.client(changed, [Scope.READ])
    assert reader.get(API).status_code == 200
    assert reader.post(f"{API}/routes/ops/test").status_code == 403
    assert api_clients.client(changed, site="fra").get(API).status_code == 403
