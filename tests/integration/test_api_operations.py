"""The API for what people do: breakers, dead letters, polls, board, collectors; with audit rows."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import httpx
import pytest
from redis.commands.core import Script

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli import main
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.db.inventory import devices, targets
from poller.domain.access.scopes import Scope
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Cause, Incident, Rules
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import State, Worker
from poller.domain.record.target_status import Status
from poller.service import action_audit, command_actor
from poller.service.operations import board_actions
from poller.settings import Settings
from poller.state import redis_client
from poller.state.board import lua_scripts
from poller.state.board.board_values import Move, Place
from poller.state.cluster import quarantine_records, worker_registry
from poller.state.cluster.quarantine_records import Release
from poller.state.requests import poll_tickets
from poller.state.requests.poll_tickets import PollTicket
from poller.web.api.operations import board_api, poll_wait
from tests.acceptance.proxy import Proxy
from tests.conftest import wait_until
from tests.integration import api_clients
from tests.integration.breaker_worlds import QUEUE, World

API = "/api/v1"
OPERATE = (Scope.OPERATE,)


@pytest.fixture
def world(services: Services) -> World:
    return World(services)


@pytest.fixture
def api(world: World) -> api_clients.TestClient:
    return api_clients.client(world.services)


@pytest.fixture
def served(world: World) -> None:
    """A living worker that takes the targets."""
    worker = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=[QUEUE])
    worker_registry.announce(world.services.redis, world.services.keys, worker)


@pytest.fixture
def two_sites(world: World) -> tuple[int, int]:
    """The ids of a failing target in ams and of one in fra, the latter d2/snmp."""
    first, second = world.add(2, site="ams")
    devices.edit(world.services.engine, "d2", DeviceDraft("d2", site="fra"))
    world.park([first, second])
    return first, second


def audited(services: Services) -> list[AuditRow]:
    """The audit rows, the oldest first."""
    return audit_rows.listing(services.engine, AuditQuery())[::-1]


def facts(row: AuditRow) -> tuple[str, str, str, int]:
    return row.actor, row.action, row.subject, row.count


def test_open_breakers_have_pages_the_longest_open_first(
    world: World, api: api_clients.TestClient
) -> None:
    """The pages together have each open breaker once; the numbers are those of all."""
    ids = world.add(3)
    world.fail(ids)
    first = api.get(f"{API}/breakers", params={"limit": 2}).json()
    last = api.get(f"{API}/breakers", params={"limit": 2, "cursor": first["next"]}).json()
    assert [each["target_id"] for each in first["items"] + last["items"]] == ids
    assert (first["total"], first["by_hand"], last["next"]) == (3, 0, None)
    assert (first["items"][0]["breaker"], first["items"][0]["by"]) == ("open", "failures")
    of_one = api.get(f"{API}/breakers", params={"where": "name:d2"}).json()
    assert [each["device"] for each in of_one["items"]] == ["d2"]


def test_a_breaker_is_reset_and_opened(world: World, api: api_clients.TestClient) -> None:
    """The events and the audit rows name the actor."""
    [key] = world.add(1)
    world.fail([key])
    done = api.post(f"{API}/breakers/{key}/reset").json()
    assert (done["reset"], done["matches"], done["note"]) == (1, 1, "")
    assert api.get(f"{API}/breakers/{key}").json()["breaker"] == "closed"
    opened = api.post(f"{API}/breakers/{key}/open", json={"for_s": 60}).json()
    assert (opened["opened"], opened["by"]) == (1, "ci")
    assert api.get(f"{API}/breakers/{key}").json()["by"] == "hand (ci)"
    events = world.events(Kind.BREAKER_CLOSED, Kind.BREAKER_OPENED)
    assert [event.data["who"] for event in events] == ["ci", "ci"]
    device = devices.show(world.services.engine, "d1")
    assert [event.device_id for event in events] == [device.id, device.id]
    assert events[1].data["address"] == device.address
    rows = audited(world.services)
    assert [facts(row) for row in rows] == [
        ("ci", "breaker.reset", "d1/snmp", 1),
        ("ci", "breaker.open", "d1/snmp", 1),
    ]
    assert rows[1].after["names"] == ["d1/snmp"]
    assert rows[1].after["until"] == opened["until"][:19] + "Z"


def test_a_reset_of_a_closed_breaker_leaves_no_audit_row(
    world: World, api: api_clients.TestClient
) -> None:
    """Nothing was changed."""
    [key] = world.add(1)
    assert api.post(f"{API}/breakers/{key}/reset").json()["closed_already"] == 1
    assert audited(world.services) == []


@pytest.mark.parametrize("verb", ["reset", "open"])
def test_a_bulk_change_is_counted_then_confirmed(
    world: World, api: api_clients.TestClient, verb: str
) -> None:
    """A dry run changes nothing; a wrong or missing number is refused with the right one."""
    world.fail(world.add(3))
    path, where = f"{API}/breakers/{verb}", {"where": "state:open name:'d*'"}
    plan = api.post(path, json={**where, "dry_run": True}).json()
    assert (plan["dry_run"], plan["matches"]) == (True, 3)
    assert plan["samples"] == ["d1/snmp", "d2/snmp", "d3/snmp"]
    for more in ({}, {"confirm": 2}, {"confirm": 0}):
        refused = api.post(path, json={**where, **more})
        assert (refused.status_code, refused.json()["code"]) == (409, "P501")
        assert refused.json()["hint"] == "send confirm: 3"
    assert audited(world.services) == []
    assert world.seen().breakers_open == 3
    done = api.post(path, json={**where, "confirm": 3}).json()
    assert done["reset" if verb == "reset" else "opened"] == 3
    [row] = audited(world.services)
    assert facts(row) == ("ci", f"breaker.{verb}", "state:open name:'d*'", 3)
    assert row.after["names"] == ["d1/snmp", "d2/snmp", "d3/snmp"]


def test_one_match_needs_no_number(world: World, api: api_clients.TestClient) -> None:
    """A script that selects one target by its name does not count first."""
    world.fail(world.add(2)[:1])
    assert api.post(f"{API}/breakers/reset", json={"where": "name:d1"}).json()["reset"] == 1


def test_dead_letters_have_pages_groups_and_advice(
    world: World, api: api_clients.TestClient
) -> None:
    """The oldest comes first; groups have one cause."""
    ids = world.add(3)
    world.park(ids[:2])
    world.park(ids[2:], Reason.UNSUPPORTED)
    found: list[int] = []
    cursor = ""
    for _ in range(3):
        page = api.get(f"{API}/dead-letters", params={"limit": 1, "cursor": cursor}).json()
        found += [each["target_id"] for each in page["items"]]
        cursor = page["next"] or ""
    assert (found, cursor) == (ids, "")
    groups = api.get(f"{API}/dead-letters/groups").json()
    assert groups["total"] == 3
    assert [(each["reason"], each["letters"]) for each in groups["items"]] == [
        ("auth_failed", 2),
        ("unsupported", 1),
    ]
    unsupported = api.get(f"{API}/dead-letters", params={"reason": "unsupported"}).json()
    assert [each["device"] for each in unsupported["items"]] == ["d3"]
    shown = api.get(f"{API}/dead-letters/{ids[0]}").json()
    assert (shown["error_code"], bool(shown["hint"])) == ("timeout", True)


def test_a_dead_letter_is_requeued_with_a_ticket(world: World, api: api_clients.TestClient) -> None:
    """The ticket has the result of its poll."""
    [key] = world.add(1)
    world.park([key])
    done = api.post(f"{API}/dead-letters/{key}/requeue").json()
    assert (done["requeued"], done["matches"]) == (1, 1)
    waiting = api.get(f"{API}/polls/{done['ticket']}").json()
    assert (waiting["complete"], waiting["items"][0]["state"]) == (False, "waiting")
    finish(world, [key])
    result = api.get(f"{API}/polls/{done['ticket']}", params={"wait_s": 5}).json()
    assert (result["complete"], result["items"][0]["state"]) == (True, "ok")
    [row] = audited(world.services)
    assert facts(row) == ("ci", "dead_letter.requeue", "d1/snmp", 1)


def test_dead_letters_are_dropped_by_their_number(
    world: World, api: api_clients.TestClient
) -> None:
    """Their targets are disabled; the row is stored in the same transaction."""
    world.park(world.add(3)[:2])
    path, body = f"{API}/dead-letters/drop", {"reason": "auth_failed"}
    assert api.post(path, json={**body, "dry_run": True}).json()["matches"] == 2
    assert api.post(path, json=body).status_code == 409
    assert api.post(path, json={**body, "confirm": 2}).json()["dropped"] == 2
    enabled = {each.device: each.enabled for each in targets.listing(world.services.engine)}
    assert enabled == {"d1": False, "d2": False, "d3": True}
    [row] = audited(world.services)
    assert facts(row) == ("ci", "dead_letter.drop", "reason:auth_failed", 2)
    assert api.post(path, json={**body, "confirm": 2}).status_code == 404


def finish(world: World, ids: list[int], state: State = State.OK) -> None:
    """Poll the requested targets as a worker does."""
    claim = world.claim()
    world.board.start(claim.token, 0, "c", 15_000, ids)
    now_ms = world.board.now_ms()
    code = "timeout" if state is State.FAILING else ""
    status = Status(state, now_ms, now_ms, now_ms, code=code)
    moves = [Move(key, now_ms + 60_000, status.pack(), Place.DUE) for key in ids]
    world.board.finish(claim.token, moves)


@pytest.mark.usefixtures("served")
def test_a_poll_on_demand_is_waited_for(world: World, api: api_clients.TestClient) -> None:
    """The response has the outcome of each target."""
    ids = world.add(2)

    def work() -> None:
        urgent = world.services.keys.urgent(QUEUE)
        wait_until(lambda: world.services.redis.zcard(urgent) == 2, "the request")
        finish(world, ids, State.FAILING)

    worker = threading.Thread(target=work)
    worker.start()
    response = api.post(f"{API}/polls", json={"targets": ids, "wait_s": 20})
    worker.join()
    body = response.json()
    assert (response.status_code, body["complete"], body["ticket"]) == (200, True, None)
    assert [each["error_code"] for each in body["items"]] == ["timeout", "timeout"]
    [row] = audited(world.services)
    assert facts(row) == ("ci", "target.poll", "d1/snmp d2/snmp", 2)


@pytest.mark.usefixtures("served")
def test_waiting_requests_hold_no_thread(world: World, api: api_clients.TestClient) -> None:
    """With one thread for all requests another request is answered while two wait."""
    ids = world.add(2)

    async def ask() -> list[int]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        transport = httpx.ASGITransport(api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            wait = partial(client.post, f"{API}/polls", timeout=60)
            polls = [
                asyncio.create_task(wait(json={"targets": [key], "wait_s": 60})) for key in ids
            ]
            requested = partial(wait_until, lambda: len(audited(world.services)) == 2, "the polls")
            await asyncio.get_running_loop().run_in_executor(None, requested)
            shown = await client.get(f"{API}/breakers/{ids[0]}", timeout=60)
            assert shown.status_code == 200
            assert not any(poll.done() for poll in polls)
            finish(world, ids)
            return [(await poll).status_code for poll in polls]

    assert asyncio.run(ask()) == [200, 200]


@pytest.mark.usefixtures("served")
def test_a_wait_too_many_is_answered_at_once(
    world: World, api: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of waiting requests is bounded: the next one gets its ticket."""
    [key] = world.add(1)
    monkeypatch.setattr(poll_wait, "_places", asyncio.Semaphore(0))
    response = api.post(f"{API}/polls", json={"targets": [key], "wait_s": 60})
    assert response.status_code == 202


@pytest.mark.usefixtures("served")
def test_a_poll_without_a_wait_has_a_ticket(world: World, api: api_clients.TestClient) -> None:
    """202, and the address of the results; an unknown ticket is 404."""
    ids = world.add(2)
    response = api.post(f"{API}/polls", json={"device": "d1"})
    assert response.status_code == 202
    ticket = response.json()["ticket"]
    assert response.headers["location"] == f"{API}/polls/{ticket}"
    finish(world, ids[:1])
    body = api.get(response.headers["location"]).json()
    assert (body["complete"], body["waiting"], body["items"][0]["device"]) == (True, 0, "d1")
    assert api.get(f"{API}/polls/{'0' * 32}").status_code == 404
    assert api.get(f"{API}/polls/nonsense").status_code == 422
    assert 0 < world.services.redis.ttl(world.services.keys.ticket(ticket)) <= 3_600


@pytest.mark.usefixtures("served")
def test_many_polls_are_confirmed_and_bounded(
    world: World, api: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 64 the number is needed; above the limit of a request nothing is polled."""
    world.add(65)
    body = {"where": "name:'d*'"}
    assert api.post(f"{API}/polls", json={**body, "dry_run": True}).json()["matches"] == 65
    assert api.post(f"{API}/polls", json=body).status_code == 409
    monkeypatch.setattr("poller.web.api.operations.poll_wait.MOST_TARGETS", 64)
    refused = api.post(f"{API}/polls", json={**body, "confirm": 65})
    assert (refused.status_code, "at most" in refused.json()["detail"]) == (422, True)
    assert audited(world.services) == []
    monkeypatch.undo()
    assert api.post(f"{API}/polls", json={**body, "confirm": 65}).status_code == 202


def test_a_target_that_no_worker_takes_is_not_waited_for(
    world: World, api: api_clients.TestClient
) -> None:
    """404 with what is missing, at once."""
    [key] = world.add(1)
    response = api.post(f"{API}/polls", json={"targets": [key], "wait_s": 60})
    assert response.status_code == 404
    assert "no running worker takes" in response.json()["detail"]


def test_tickets_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest ticket makes room for a new one."""
    monkeypatch.setattr(poll_tickets, "MOST_TICKETS", 2)
    store = (world.services.redis, world.services.keys)
    for number in range(4):
        poll_tickets.keep(*store, f"t{number}", PollTicket(number + 1, [number], None))
    kept = [poll_tickets.read(*store, f"t{number}") is not None for number in range(4)]
    assert kept == [False, False, True, True]
    assert world.services.redis.zcard(world.services.keys.tickets) == 2


def test_the_board_is_checked_and_repaired(world: World, api: api_clients.TestClient) -> None:
    """A stray is found, mended, and in the audit log."""
    world.services.redis.sadd(world.services.keys.queues, QUEUE)
    world.services.redis.zadd(world.services.keys.due(QUEUE), {"4711": 1})
    checked = api.get(f"{API}/board/check").json()
    assert (checked["is_sound"], checked["stray_targets"]) == (False, [4711])
    mended = api.post(f"{API}/board/repair").json()
    assert (mended["stray_mended"], mended["stray_targets"]) == (1, [4711])
    assert api.get(f"{API}/board/check").json()["is_sound"]
    [row] = audited(world.services)
    assert facts(row) == ("ci", "board.repair", "board", 1)


@pytest.mark.parametrize("hangs_at", ["the first call", "the count of all targets"])
def test_a_repair_ends_when_redis_hangs(
    world: World, network: Proxy, monkeypatch: pytest.MonkeyPatch, hangs_at: str
) -> None:
    """The caller is told to come back, and the next repair has its turn."""
    url = f"redis://127.0.0.1:{network.port}/0"
    monkeypatch.setattr(board_actions, "COUNTING_S", 0.3)
    monkeypatch.setenv("POLLER_REDIS_URL", url)
    services = Services(Settings())
    services.redis = redis_client.connect(url, 0.3)  # type: ignore[misc]
    api = api_clients.client(services)
    if hangs_at == "the first call":
        network.silence()
    else:
        network.hold(Script(services.redis, lua_scripts.source("recount")).sha.encode())
    began = time.monotonic()
    assert api.post(f"{API}/board/repair").status_code == 503
    assert time.monotonic() - began < 3
    network.release()
    network.heal()
    assert api.post(f"{API}/board/repair").status_code == 200
    services.engine.dispose()


def test_a_second_check_of_the_board_is_refused(api: api_clients.TestClient) -> None:
    """It reads every target; a caller who repeats it costs no more."""
    with board_api._turn:
        assert api.get(f"{API}/board/check").status_code == 409
    assert api.get(f"{API}/board/check").status_code == 200


def test_a_collector_is_released(world: World, api: api_clients.TestClient) -> None:
    """Its records are removed and its dead letters are requeued."""
    services = world.services
    ids = world.add(1)
    release = Release("snmp", "poller 1")
    incident = Incident(1, Cause.CRASH, "crash")
    quarantine_records.record(services.redis, services.keys, release, incident, Rules(1, 1_000))
    world.park(ids, Reason.COLLECTOR_QUARANTINED)
    path = f"{API}/collectors/snmp/release"
    plan = api.post(path, json={"dry_run": True}).json()
    assert (plan["dry_run"], plan["letters"], plan["requeued"]) == (True, 1, 0)
    done = api.post(path).json()
    assert (done["requeued"], [each["distribution"] for each in done["released"]]) == (
        1,
        ["poller 1"],
    )
    assert done["ticket"]
    [released] = world.events(Kind.COLLECTOR_RELEASED)
    assert released.data["who"] == "ci"
    assert [row.action for row in audited(services)] == ["collector.release", "dead_letter.requeue"]
    assert api.post(f"{API}/collectors/nonsense/release").status_code == 404


@pytest.mark.usefixtures("served")
def test_a_token_of_one_site_acts_there_only(world: World, two_sites: tuple[int, int]) -> None:
    """Targets of other sites do not exist for it; what concerns all sites is refused."""
    here, there = two_sites
    api = api_clients.client(world.services, (Scope.OPERATE, Scope.INVENTORY), "ams")
    for path in ("breakers", "dead-letters"):
        items = api.get(f"{API}/{path}").json()["items"]
        assert [each["target_id"] for each in items] == [here]
        assert api.get(f"{API}/{path}/{there}").status_code == 404
        every = api.get(f"{API}/{path}", params={"where": "site:fra"})
        assert every.status_code == 403
    assert api.get(f"{API}/dead-letters/groups").json()["total"] == 1
    for path in ("breakers/{}/reset", "breakers/{}/open", "dead-letters/{}/requeue"):
        assert api.post(f"{API}/{path.format(there)}").status_code == 404
        assert api.post(f"{API}/{path.format(here)}").status_code == 200
    for body in ({"targets": [there]}, {"device": "d2"}):
        assert api.post(f"{API}/polls", json=body).status_code == 404
    all_ = {"where": "name:'d*'", "dry_run": True}
    for path in ("breakers/reset", "breakers/open", "polls"):
        assert api.post(f"{API}/{path}", json=all_).json()["samples"] == ["d1/snmp"]
    for method, path in (
        ("GET", "board/check"),
        ("POST", "board/repair"),
        ("POST", "collectors/snmp/release"),
        ("GET", "jobs"),
        ("GET", "scheduler"),
        ("POST", "jobs/prune/run"),
    ):
        assert api.request(method, f"{API}/{path}").status_code == 403


@pytest.mark.usefixtures("served")
def test_a_ticket_is_for_its_site(world: World, two_sites: tuple[int, int]) -> None:
    """A token of a site reads no ticket of another site, nor one of all sites."""
    clients = {site: api_clients.client(world.services, OPERATE, site) for site in ("ams", "fra")}
    everywhere = api_clients.client(world.services, OPERATE)
    of_ams = clients["ams"].post(f"{API}/polls", json={"device": "d1"}).json()["ticket"]
    of_all = everywhere.post(f"{API}/polls", json={"device": "d1"}).json()["ticket"]
    assert clients["ams"].get(f"{API}/polls/{of_ams}").status_code == 200
    assert clients["fra"].get(f"{API}/polls/{of_ams}").status_code == 404
    assert clients["ams"].get(f"{API}/polls/{of_all}").status_code == 404
    assert everywhere.get(f"{API}/polls/{of_ams}").status_code == 200


@pytest.mark.parametrize(
    ("scope", "method", "path", "status"),
    [
        (Scope.READ, "GET", "breakers", 200),
        (Scope.READ, "POST", "breakers/1/reset", 403),
        (Scope.INVENTORY, "POST", "breakers/1/reset", 403),
        (Scope.READ, "POST", "dead-letters/1/requeue", 403),
        (Scope.OPERATE, "POST", "dead-letters/1/drop", 403),
        (Scope.READ, "POST", "polls", 403),
        (Scope.READ, "GET", "board/check", 200),
        (Scope.OPERATE, "POST", "board/repair", 403),
        (Scope.READ, "POST", "collectors/snmp/release", 403),
        (Scope.READ, "POST", "jobs/prune/run", 403),
        (Scope.READ, "DELETE", "jobs/prune", 403),
        (Scope.SCRAPE, "GET", "breakers", 403),
    ],
)
def test_rights_of_operations(
    services: Services, scope: Scope, method: str, path: str, status: int
) -> None:
    """Reading needs read, acting operate, disabling targets inventory, repairing admin."""
    api = api_clients.client(services, (scope,))
    assert api.request(method, f"{API}/{path}").status_code == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("breakers/reset", {"where": ""}),
        ("breakers/reset", {"where": "   "}),
        ("breakers/reset", {"where": "nonsense"}),
        ("breakers/reset", {"where": "state:bad"}),
        ("breakers/reset", {"where": "name:'"}),
        ("breakers/reset", {"where": "name:\x00"}),
        ("breakers/reset", {"where": "name:" + "x" * 2_001}),
        ("breakers/reset", {"where": "name:d1", "confirm": -1}),
        ("breakers/reset", {"where": "name:d1", "confirm": 10**30}),
        ("breakers/reset", {"where": "name:d1", "more": 1}),
        ("breakers/reset", {"where": 7}),
        ("breakers/reset", None),
        ("breakers/1/open", {"for_s": 0}),
        ("breakers/1/open", {"for_s": 1e300}),
        ("breakers/open", {"where": "name:d1", "for_s": "x"}),
        ("breakers/0/reset", None),
        (f"breakers/{10**40}/reset", None),
        ("dead-letters/requeue", {}),
        ("dead-letters/requeue", {"reason": "bad"}),
        ("dead-letters/requeue", {"where": " ", "reason": "auth_failed"}),
        ("polls", {}),
        ("polls", {"device": "d1", "targets": [1]}),
        ("polls", {"targets": []}),
        ("polls", {"targets": [0]}),
        ("polls", {"targets": list(range(1, 1_002))}),
        ("polls", {"device": "d1", "wait_s": 61}),
        ("polls", {"device": "d\x00"}),
        ("jobs/pause", {}),
        ("jobs/pause", {"names": ["a"], "all": True}),
        ("jobs/a/run", {"plan": "0001-01-01T00:00:00+23:59"}),
        ("jobs/a/run", {"plan": "2026-01-01T00:00:00"}),
        ("jobs/a/run", {"scope_kind": "site"}),
        ("jobs/a/run", {"scope_kind": "x" * 51, "scope_id": "y"}),
    ],
)
def test_a_wrong_request_changes_nothing(
    world: World, api: api_clients.TestClient, path: str, body: Any
) -> None:
    """422 with the field; no audit row."""
    world.fail(world.add(1))
    response = api.post(f"{API}/{path}", json=body)
    assert response.status_code == 422, response.text
    assert response.json()["code"] == "P201"
    assert audited(world.services) == []
    assert world.seen().breakers_open == 1


@pytest.mark.parametrize("text", ["\ud800", "name:\ud800"])
def test_half_a_character_is_refused(services: Services, text: str) -> None:
    """A lone surrogate, which JSON can write and no store can keep, is no error of ours."""
    api = api_clients.client(services)
    for path, field in (("breakers/reset", "where"), ("polls", "device")):
        body = f'{{"{field}": "{text.encode("ascii", "backslashreplace").decode()}"}}'
        headers = {"Content-Type": "application/json"}
        response = api.post(f"{API}/{path}", content=body, headers=headers)
        assert response.status_code in (404, 422), response.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "breakers/9"),
        ("POST", "breakers/9/reset"),
        ("POST", "breakers/9/open"),
        ("GET", "dead-letters/9"),
        ("POST", "dead-letters/1/requeue"),
        ("POST", "dead-letters/1/drop"),
        ("GET", "jobs/nonsense"),
        ("GET", "jobs/nonsense/runs"),
        ("POST", "jobs/nonsense/run"),
        ("POST", "jobs/nonsense/pause"),
        ("DELETE", "jobs/nonsense"),
    ],
)
def test_a_thing_that_does_not_exist_is_404(
    world: World, api: api_clients.TestClient, method: str, path: str
) -> None:
    """A target without a letter has none to requeue."""
    world.add(1)
    response = api.request(method, f"{API}/{path}")
    assert (response.status_code, response.json()["code"]) == (404, "P101")


@pytest.fixture
def without_redis(
    world: World, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    """The same database, and a Redis that does not answer."""
    world.park(world.add(1))
    monkeypatch.setenv("POLLER_REDIS_URL", f"redis://127.0.0.1:{free_port}/0")
    bootstrap.services.cache_clear()
    made = bootstrap.services()
    yield made
    made.engine.dispose()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "breakers", None),
        ("GET", "breakers/1", None),
        ("POST", "breakers/1/reset", None),
        ("POST", "breakers/1/open", None),
        ("POST", "dead-letters/1/requeue", None),
        ("POST", "polls", {"device": "d1"}),
        ("GET", f"polls/{'0' * 32}", None),
        ("GET", "board/check", None),
        ("POST", "board/repair", None),
        ("POST", "collectors/snmp/release", None),
        ("GET", "scheduler", None),
    ],
)
def test_without_redis_the_answer_is_503(
    without_redis: Services, method: str, path: str, body: Any
) -> None:
    """A problem document with the time to come back; nothing is in the audit log."""
    api = api_clients.client(without_redis)
    response = api.request(method, f"{API}/{path}", json=body)
    assert response.status_code == 503, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"]
    assert audited(without_redis) == []


def test_without_redis_letters_are_listed_and_dropped(without_redis: Services) -> None:
    """Letters are in SQL; the note says that no event was published."""
    api = api_clients.client(without_redis)
    assert len(api.get(f"{API}/dead-letters").json()["items"]) == 1
    dropped = api.post(f"{API}/dead-letters/1/drop").json()
    assert (dropped["dropped"], "no event" in dropped["note"]) == (1, True)
    assert [row.action for row in audited(without_redis)] == ["dead_letter.drop"]


def test_an_action_stands_although_its_audit_row_is_lost(
    world: World, api: api_clients.TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL goes away between the action and its row: the caller is told."""
    [key] = world.add(1)
    world.fail([key])

    def unavailable(*_: object) -> None:
        raise errors.StoreUnavailable("SQL does not answer")

    monkeypatch.setattr(audit_rows, "append", unavailable)
    done = api.post(f"{API}/breakers/{key}/reset").json()
    assert (done["reset"], done["note"]) == (
        1,
        "the audit log has no row of this: SQL does not answer",
    )
    assert world.seen().breakers_open == 0


def test_a_lost_audit_row_is_noted_by_the_command(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command succeeds, with a note on stderr."""
    world.fail(world.add(1))

    def unavailable(*_: object) -> None:
        raise errors.StoreUnavailable("SQL does not answer")

    monkeypatch.setattr(audit_rows, "append", unavailable)
    assert main.run(["breaker", "reset", "d1"]) == 0
    assert "note: the audit log has no row of this" in capsys.readouterr().err


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("command", "action", "subject"),
    [
        ("breaker reset d1", "breaker.reset", "d1"),
        ("breaker open d1 --for 5m", "breaker.open", "d1"),
        ("breaker open --site ams --yes", "breaker.open", "site:ams"),
        ("deadletter requeue d1/snmp", "dead_letter.requeue", "d1/snmp"),
        ("deadletter requeue --all", "dead_letter.requeue", "all dead letters"),
        ("deadletter drop --reason auth_failed --yes", "dead_letter.drop", "reason:auth_failed"),
        ("poll d1 --wait 0", "target.poll", "d1"),
        ("board repair", "board.repair", "board"),
    ],
)
def test_a_command_leaves_the_same_audit_row(
    world: World, command: str, action: str, subject: str
) -> None:
    """The actor is the user of this host."""
    world.park(world.add(1, site="ams"))
    main.run(command.split())
    [row] = audited(world.services)
    assert (row.action, row.subject, row.kind) == (action, subject, "cli")
    assert row.actor == command_actor.operator_name()


def test_a_row_of_very_many_keeps_the_names_that_fit(world: World) -> None:
    """The number is exact; the names are bounded."""
    names = [f"a-device-with-a-long-name-{number:06}/snmp" for number in range(5_000)]
    entry = action_audit.bulk_entry("breaker.reset", "name:'*'", names)
    assert action_audit.record(world.services, command_actor.of_command(), entry) == ""
    [row] = audited(world.services)
    assert row.count == 5_000
    assert row.after["names"] == names[: len(row.after["names"])]
    assert len(row.after["names"]) > 200


def test_reads_of_operations_leave_no_audit_row(world: World, api: api_clients.TestClient) -> None:
    """Only changes are in the log."""
    world.park(world.add(1))
    for path in ("breakers", "breakers/1", "dead-letters", "dead-letters/1", "board/check"):
        assert api.get(f"{API}/{path}").is_success
    assert audited(world.services) == []
