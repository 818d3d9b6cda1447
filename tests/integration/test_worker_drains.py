"""Drains of workers by API, command and page: who takes over, who may, and what is written down."""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.cli import main
from poller.db.inventory import imports
from poller.domain.access.scopes import Role, Scope
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.domain.scheduling.worker_drain import Drain
from poller.state.cluster import event_stream
from poller.state.requests import worker_drains
from tests.integration import api_clients, test_target_pages
from tests.integration.access_sites import BROWSER, Site, form_token, log_in
from tests.integration.audited_actions import audited, facts

API = "/api/v1/workers"
DMZ = "poll.snmp;zone=dmz"


def announce(services: Services, name: str, *queues: str, **more: Any) -> None:
    """A running worker with these queues."""
    now_ms = services.board.now_ms()
    worker = Worker(name, now_ms, 1, 0, 0, 2**20, queues=queues, pid=4711, **more)
    services.redis.hset(services.keys.workers, worker.key, json.dumps(asdict(worker)))


@pytest.fixture
def cluster(services: Services) -> Services:
    """Two workers that share a domain and jobs; the first serves the DMZ alone."""
    announce(services, "w1@a", "poll.snmp", DMZ, "job.poller", unfinished=3)
    announce(services, "w2@b", "poll.snmp", "job.poller")
    return services


@pytest.fixture
def browser(cluster: Services) -> Any:
    return Site(cluster).client(**BROWSER)


def drains(services: Services) -> dict[str, Drain]:
    return worker_drains.listing(services.redis, services.keys, services.board.now_ms())


def page(browser: Any, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200
    return html.unescape(str(answer.text))


def send(browser: Any, path: str, **fields: Any) -> Any:
    form = {"csrf_token": form_token(browser.get("/workers").text), **fields}
    return browser.post(path, data=form)


def test_a_dry_run_says_who_takes_over(cluster: Services) -> None:
    """Nothing is drained, and no row is written."""
    api = api_clients.client(cluster)
    body = api.post(f"{API}/drain", json={"names": ["w1@a"], "dry_run": True}).json()
    covered = {each["name"]: each["other_workers"] for each in body["queues"]}
    assert covered == {"job.poller": 1, "poll.snmp": 1, DMZ: 0}
    assert (body["left"], body["unfinished"], body["until"]) == ([DMZ], 3, None)
    assert (drains(cluster), audited(cluster)) == ({}, [])


def test_the_last_worker_of_a_domain_is_drained_by_force_only(cluster: Services) -> None:
    """Also if the others of the domain are to be drained with it, or are drained."""
    api = api_clients.client(cluster)
    refused = api.post(f"{API}/drain", json={"names": ["w1@a"]})
    assert refused.status_code == 409
    assert DMZ in refused.json()["detail"]
    both = api.post(f"{API}/drain", json={"names": ["w1@a", "w2@b"]})
    assert "job.poller, poll.snmp" in both.json()["detail"]
    assert drains(cluster) == {}
    done = api.post(f"{API}/drain", json={"names": ["w1@a"], "force": True}).json()
    assert (done["left"], done["by"], done["note"]) == ([DMZ], "ci", "")
    assert list(drains(cluster)) == ["w1@a"]


def test_a_drain_has_an_end_a_reason_an_event_and_an_audit_row(cluster: Services) -> None:
    """A resume ends it before; a second one finds nothing."""
    api = api_clients.client(cluster)
    wanted = {"names": ["w2@b"], "for_s": 3600, "reason": "new kernel"}
    done = api.post(f"{API}/drain", json=wanted).json()
    [drain] = drains(cluster).values()
    assert (drain.by, drain.reason, drain.until_ms - drain.since_ms) == ("ci", "new kernel", 3.6e6)
    resumed = api.post(f"{API}/resume", json={"names": ["w1@a", "w2@b"]}).json()
    assert (resumed["names"], resumed["unchanged"]) == (["w2@b"], 1)
    assert api.post(f"{API}/resume", json={"names": ["w2@b"]}).status_code == 404
    assert [facts(row) for row in audited(cluster)] == [
        ("ci", "worker.drain", "w2@b", 1),
        ("ci", "worker.resume", "w2@b", 1),
    ]
    after = audited(cluster)[0].after
    assert (after["until"][:19], after["reason"]) == (done["until"][:19], "new kernel")
    events = [each.event for each in event_stream.newest(cluster.redis, cluster.keys, 10)]
    told = {each.kind: each.message for each in events if each}
    assert told[Kind.WORKER_DRAINED].endswith("drained by ci: new kernel")
    assert told[Kind.WORKER_RESUMED] == "w2@b takes work again: its drain was ended by ci"


@pytest.mark.parametrize(
    ("wanted", "status", "text"),
    [
        ({"names": ["w3@a"]}, 404, "did you mean w1@a?"),
        ({"names": []}, 422, "names"),
        ({"names": ["w2@b"], "for_s": 59}, 422, "for_s"),
        ({"names": ["w2@b"], "for_s": 1e9}, 422, "for_s"),
        ({"names": ["w2@b"], "reason": "two\nlines"}, 422, "reason: it is one line"),
    ],
)
def test_a_wrong_request_changes_nothing(
    cluster: Services, wanted: dict[str, Any], status: int, text: str
) -> None:
    """The error names the field."""
    answer = api_clients.client(cluster).post(f"{API}/drain", json=wanted)
    assert answer.status_code == status
    assert text in answer.text
    assert (drains(cluster), audited(cluster)) == ({}, [])


def test_a_drain_that_is_over_holds_no_longer(cluster: Services) -> None:
    """And the next drain removes it from Redis."""
    now_ms = cluster.board.now_ms()
    worker_drains.store(cluster.redis, cluster.keys, ["w1@a"], Drain(now_ms - 9, now_ms - 1, "kim"))
    cluster.redis.hset(cluster.keys.drains, "odd", "{}")
    assert drains(cluster) == {}
    assert worker_drains.of_worker(cluster.redis, cluster.keys, "w1@a") is None
    fresh = Drain(now_ms, now_ms + 60_000, "kim")
    worker_drains.store(cluster.redis, cluster.keys, ["w2@b"], fresh)
    assert worker_drains.of_worker(cluster.redis, cluster.keys, "w2@b") == fresh
    assert sorted(cluster.redis.hkeys(cluster.keys.drains)) == ["odd", "w2@b"]


def test_the_command_does_the_same(cluster: Services, capsys: pytest.CaptureFixture[str]) -> None:
    """It waits until the workers have finished; 124 when it has waited in vain."""
    assert main.run(["workers", "drain", "w2@b", "--dry-run"]) == 0
    assert capsys.readouterr().out == "would drain w2@b\n"
    assert main.run(["workers", "drain", "w2@b", "--for", "2h", "--wait", "0.1"]) == 124
    assert "not finished after 0.1 s: w2@b" in capsys.readouterr().err
    drain = drains(cluster)["w2@b"]
    announce(cluster, "w2@b", drain=drain)
    assert main.run(["workers", "drain", "w2@b", "--wait", "5"]) == 0
    assert "nothing is left" in capsys.readouterr().out
    assert main.run(["workers", "--json"]) == 0
    items = {each["name"]: each for each in json.loads(capsys.readouterr().out)["items"]}
    assert (items["w2@b"]["drain"]["is_done"], items["w1@a"]["drain"]) == (True, None)
    assert main.run(["workers", "drain", "w1@a"]) == 2
    assert main.run(["workers", "resume", "w2@b"]) == 0
    assert capsys.readouterr().out == "w2@b takes work again\n"
    assert drains(cluster) == {}


def test_the_page_asks_before_it_drains(cluster: Services, browser: Any) -> None:
    """The question says what is under way and who takes over; nothing is done yet."""
    listed = page(browser, "/workers")
    assert 'href="workers/-/drain?worker=w1%40a"' in listed
    asked = page(browser, "/workers/-/drain?worker=w1%40a")
    assert "3 batches and jobs now" in asked
    assert "1 other worker takes over" in asked
    assert f"No other worker serves {DMZ}" in asked
    assert "poller workers drain w1@a --for 4h --force" in asked
    both = page(browser, "/workers/-/drain?worker=w1%40a&worker=w2%40b")
    assert "Drain 2 workers?" in both
    assert "no other worker runs" in both
    assert drains(cluster) == {}


def test_a_refused_drain_keeps_what_was_typed(cluster: Services, browser: Any) -> None:
    """Beside its field; one that leaves a domain alone needs its box ticked."""
    wrong = send(browser, "/workers/-/drain", worker="w2@b", **{"for": "soon", "reason": "disk"})
    assert wrong.status_code == 422
    assert 'value="soon"' in wrong.text
    assert 'value="disk"' in wrong.text
    assert "For: " in wrong.text
    alone = send(browser, "/workers/-/drain", worker="w1@a")
    assert alone.status_code == 409
    assert "No other worker serves" in alone.text
    assert browser.get("/workers/-/drain").status_code == 422
    assert browser.get("/workers/-/drain?worker=w9").status_code == 404
    assert drains(cluster) == {}
    forced = send(browser, "/workers/-/drain", worker="w1@a", force="yes")
    assert forced.status_code == 303
    assert list(drains(cluster)) == ["w1@a"]


def test_a_drained_worker_says_so_and_is_resumed(cluster: Services, browser: Any) -> None:
    """By whom, until when, why, and how much is left."""
    answer = send(browser, "/workers/-/drain", worker="w2@b", reason="new kernel")
    address = answer.headers["location"].removeprefix("../../")
    announce(cluster, "w2@b", "poll.snmp", drain=drains(cluster)["w2@b"], unfinished=2)
    told = page(Site(cluster).client(**BROWSER), f"/{address}")  # which has read nothing yet
    assert "w2@b: drain asked for." in told
    assert "poller workers resume w2@b" in told
    assert "1 of them drained" in told
    assert "draining" in told
    assert "new kernel; 2 batches left" in told
    assert send(browser, "/workers/-/resume").status_code == 422
    back = send(browser, "/workers/-/resume", worker="w2@b")
    assert "w2@b: drain ended." in page(browser, f"/{back.headers['location'][6:]}")
    assert drains(cluster) == {}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_what_one_may_do_is_shown(cluster: Services, role: Role) -> None:
    """And the server refuses the rest; a form of another site changes nothing."""
    site = Site(cluster)
    site.user(role=role)
    browser = site.client(**BROWSER)
    log_in(browser)
    may = role is Role.OPERATOR
    assert ("Drain…" in browser.get("/workers").text) is may
    assert browser.get("/workers/-/drain?worker=w2@b").status_code == (200 if may else 403)
    token = form_token(browser.get("/workers").text)
    forged = {"csrf_token": "0" * 64, "worker": "w2@b"}
    assert browser.post("/workers/-/drain", data=forged).status_code == 403
    sent = browser.post("/workers/-/drain", data={"csrf_token": token, "worker": "w2@b"})
    assert sent.status_code == (303 if may else 403)
    assert list(drains(cluster)) == (["w2@b"] if may else [])


def test_a_token_of_one_site_drains_nothing(cluster: Services) -> None:
    """Workers concern every site."""
    imports.apply_import(cluster.engine, [test_target_pages.row(3)])
    site = Site(cluster)
    header = site.token(Scope.READ, Scope.OPERATE, site="fra")
    client = site.client(**header)
    assert client.post(f"{API}/drain", json={"names": ["w2@b"]}).status_code == 403
    assert drains(cluster) == {}
