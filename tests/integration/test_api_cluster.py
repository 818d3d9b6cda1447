"""Overview, workers, domains, collectors, sinks and settings over HTTP, on real stores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.history import polls_of_span
from poller.domain.access.scopes import Scope
from poller.domain.record.overview import Worker
from poller.domain.record.sink_report import SinkReport, SinkState
from tests.integration import api_clients

READ = (Scope.READ,)


def a_worker(
    services: Services, name: str, silent_ms: int = 0, sinks: Sequence[SinkReport] = ()
) -> None:
    """A worker that serves SNMP without tags, and sent its last heartbeat some time ago."""
    seen_ms = services.board.now_ms() - silent_ms
    worker = Worker(
        name=name,
        seen_ms=seen_ms,
        started_ms=seen_ms - 60_000,
        polls=7,
        in_flight=1,
        rss_bytes=1_000,
        collectors={"snmp": "poller 1.0"},
        queues=("poll.snmp",),
        instance=name,
        sinks=sinks,
    )
    services.redis.hset(services.keys.workers, worker.key, json.dumps(asdict(worker)))


def cut_redis(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new connections go to a port where nothing listens."""
    monkeypatch.setitem(services.redis.connection_pool.connection_kwargs, "port", 1)
    services.redis.connection_pool.disconnect()


def test_workers_are_listed(services: Services) -> None:
    """A running worker and a lost one, as the command lists them."""
    a_worker(services, "new")
    a_worker(services, "old", silent_ms=30_000)
    items = api_clients.client(services, READ).get("/api/v1/workers").json()["items"]
    assert [(item["name"], item["state"]) for item in items] == [
        ("new", "running"),
        ("old", "lost"),
    ]
    assert items[0]["collectors"] == {"snmp": "poller 1.0"}
    assert items[0]["seen"].endswith("Z")


def test_domains_say_who_serves_them(services: Services) -> None:
    """A queue with a worker names it; a queue without one has the reason."""
    a_worker(services, "w1")
    services.redis.sadd(services.keys.queues, "poll.snmp", "poll.snmp;zone=dmz", "poll.odd;;x")
    items = api_clients.client(services, READ).get("/api/v1/domains").json()["items"]
    odd, served, unserved = sorted(items, key=lambda item: item["name"])
    assert (served["workers"], served["is_served"], served["reason"]) == (["w1"], True, "")
    assert (unserved["collector"], unserved["requires"]) == ("snmp", {"zone": "dmz"})
    assert "zone=dmz" in unserved["reason"]
    assert not odd["is_served"]


def test_collectors_have_the_schema_of_their_options(services: Services) -> None:
    """Defaults and descriptions are in the schema; an unknown name is not found."""
    api = api_clients.client(services, READ, "ams")
    names = [item["name"] for item in api.get("/api/v1/collectors").json()["items"]]
    assert {"snmp", "ping", "http"} <= set(names)
    snmp = api.get("/api/v1/collectors/snmp").json()
    assert snmp["schema"]["properties"]["port"]["default"] == 161
    assert (snmp["state"], snmp["workers"], snmp["distribution"]) == ("ok", 0, "poller")
    assert snmp["credentials"]
    missing = api.get("/api/v1/collectors/snpm")
    assert (missing.status_code, "snmp" in missing.json()["hint"]) == (404, True)


def test_collectors_are_listed_without_redis(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health and workers are then not known."""
    cut_redis(services, monkeypatch)
    response = api_clients.client(services).get("/api/v1/collectors/ping")
    assert response.status_code == 200
    assert (response.json()["state"], response.json()["workers"]) == (None, None)


def a_sink(state: SinkState = SinkState.OK, **fields: Any) -> SinkReport:
    return SinkReport("prom", "remote_write", state, polls_per_s=2.0, samples_per_s=20.0, **fields)


def test_sinks_are_those_of_the_workers_and_of_the_settings(services: Services) -> None:
    """Numbers are sums, the state is the worst, and each worker has its own."""
    now_ms = services.board.now_ms()
    down = a_sink(
        SinkState.DOWN, spooled_polls=3, oldest_ms=now_ms - 60_000, error="no route",
        hint="start it",
        error_ms=now_ms, dropped={"full": 5},
    )  # fmt: skip
    a_worker(services, "poll-1@h", sinks=(a_sink(),))
    a_worker(services, "poll-2@h", sinks=(down,))
    http = api_clients.client(services, READ)
    document = http.get("/api/v1/sinks").json()
    prom, sql = document["items"]
    assert (prom["state"], prom["workers"]) == ("down", {"poll-1@h": "ok", "poll-2@h": "down"})
    assert (prom["polls_per_second"], prom["samples_per_second"]) == (4.0, 40.0)
    assert 60 <= prom["lag_seconds"] < 90
    assert (prom["last_error"]["text"], prom["last_error"]["hint"]) == ("no route", "start it")
    assert (prom["dropped_polls"], prom["dropped"]) == (5, {"full": 5})
    assert (sql["name"], sql["state"]) == ("sql", "unknown")
    used = {item["name"]: item["used"] for item in document["installed"]}
    assert (used["sql"], used["stream"]) == (True, False)

    assert http.get("/api/v1/sinks/prom").json()["kind"] == "remote_write"
    assert http.get("/api/v1/sinks/pron").status_code == 404
    short = http.get("/api/v1/overview").json()["sinks"]["prom"]
    assert (short["state"], short["workers"], short["error"]) == (
        "down", {"ok": 1, "down": 1}, "no route",
    )  # fmt: skip
    health = http.get("/api/v1/scheduler/health").json()["sinks"]["by_name"]["prom"]
    assert (health["state"], health["spooled_polls"]) == ("down", 3)


def test_a_test_of_a_sink_writes_one_sample_and_an_audit_row(services: Services) -> None:
    """The sample reaches the store and is gone again; a reader may not ask for it."""
    response = api_clients.client(services, (Scope.OPERATE,)).post("/api/v1/sinks/sql/test")
    body = response.json()
    assert (response.status_code, body["ok"], body["error"]) == (200, True, "")
    assert "took the sample" in body["answer"]
    assert polls_of_span.between(services.engine, 0, 0, 2**62) == []
    audit = api_clients.client(services).get("/api/v1/audit?action=sink.test").json()
    assert [row["subject"] for row in audit["items"]] == ["sql"]
    assert api_clients.client(services, READ).post("/api/v1/sinks/sql/test").status_code == 403


def test_settings_are_for_administrators_and_hide_secrets(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each setting has its value and origin; a password is nowhere in the response."""
    secret = "redis://user:hunter22@127.0.0.1:1/0"
    changed = services.settings.model_copy(update={"redis_url": _secret(services, secret)})
    monkeypatch.setattr(services, "settings", changed)
    response = api_clients.client(services).get("/api/v1/settings")
    found = {item["name"]: item for item in response.json()["items"]}
    assert "hunter22" not in response.text
    assert found["redis_url"]["value"].startswith("redis://user:")
    assert found["batch_size"]["origin"]
    assert (
        api_clients.client(services, (Scope.INVENTORY,)).get("/api/v1/settings").status_code == 403
    )


def _secret(services: Services, text: str) -> object:
    return type(services.settings.redis_url)(text)


def test_the_overview_is_the_document_of_the_page(services: Services) -> None:
    """The old address has the same fields."""
    a_worker(services, "w1")
    api = api_clients.client(services, READ)
    new, old = (api.get(path).json() for path in ("/api/v1/overview", "/api/overview"))
    assert set(new) == set(old)
    assert json.dumps(new["workers"]) == json.dumps(old["workers"])
    assert new["schema"] == "poller.overview/1"


@pytest.mark.parametrize("path", ["overview", "workers", "domains", "sinks", "settings"])
def test_a_token_of_one_site_does_not_see_the_cluster(services: Services, path: str) -> None:
    """These concern every site."""
    response = api_clients.client(services, (Scope.ADMIN,), "ams").get(f"/api/v1/{path}")
    assert response.status_code == 403


@pytest.mark.parametrize("path", ["overview", "workers", "domains"])
def test_without_redis_the_cluster_is_unavailable(
    services: Services, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The problem says so, and when to ask again."""
    cut_redis(services, monkeypatch)
    response = api_clients.client(services).get(f"/api/v1/{path}")
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
