"""The API for what people do: breakers, dead letters, polls, board, collectors; with audit rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from redis.commands.core import Script

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli import main
from poller.db.access import audit_rows
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.quarantine import Cause, Incident, Rules
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.service import action_audit, command_actor
from poller.service.operations import board_actions
from poller.settings import Settings
from poller.state import redis_client
from poller.state.board import lua_scripts
from poller.state.cluster import quarantine_records, worker_registry
from poller.state.cluster.quarantine_records import Release
from poller.web.api.operations import board_api
from tests.acceptance.proxy import Proxy
from tests.integration import api_clients
from tests.integration.audited_actions import audited, facts
from tests.integration.breaker_worlds import QUEUE, World

API = "/api/v1"
OPERATE = (Scope.OPERATE,)


@pytest.fixture
def served(world: World) -> None:
    """A living worker that takes the targets."""
    worker = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=[QUEUE])
    worker_registry.announce(world.services.redis, world.services.keys, worker)


@pytest.fixture
def world(services: Services) -> World:
    return World(services)


@pytest.fixture
def api(world: World) -> api_clients.TestClient:
    return api_clients.client(world.services)


@pytest.fixture
def two_sites(world: World) -> tuple[int, int]:
    """The ids of a failing target in ams and of one in fra, the latter d2/snmp."""
    first, second = world.add(2, site="ams")
    devices.edit(world.services.engine, "d2", DeviceDraft("d2", site="fra"))
    world.park([first, second])
    return first, second


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
