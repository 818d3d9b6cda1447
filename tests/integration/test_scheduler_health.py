"""`/api/v1/scheduler/health`: every field, filters, pages, and stores that are away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import redis
from pydantic import BaseModel

from poller import errors
from poller.bootstrap import Services
from poller.db import migrate
from poller.db.inventory import devices, imports, inventory_feed
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.access.scopes import Scope
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory import target_filter
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import State
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.presentation.targets import scheduler_health_json
from poller.presentation.targets.health_types import HealthDocument
from poller.service import scheduler_health
from poller.settings import Settings
from poller.state.board.breakers import Breakers
from poller.state.board.record_formats import Opening
from poller.state.cluster import queue_loads
from poller.state.cluster.queue_loads import QueueSizes
from poller.state.redis_client import connect
from tests.integration import api_clients

PATH = "/api/v1/scheduler/health"


@pytest.fixture
def services(
    home: Path,
    database_url: str,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Services]:
    """The services of a process, on each database in turn."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_DATABASE_URL", database_url)
    made = Services(Settings())
    migrate.upgrade(made.engine)
    yield made
    made.engine.dispose()


@pytest.fixture
def fleet(services: Services, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Five switches with one target each: ok, failing, a dead letter, opened by hand, disabled."""
    monkeypatch.setattr(scheduler_health, "MAX_AGE_S", 0.0)
    rows = [
        imports.Row(
            DeviceDraft(f"sw{number}", f"10.0.0.{number}", site="fra", tags=("core",)),
            [TargetDraft(collector="snmp", enabled=number != 5)],
        )
        for number in range(1, 6)
    ]
    imports.apply_import(services.engine, rows)
    with inventory_feed.all_specs(services.engine) as stored:
        specs = list(stored.specs)
    now_ms = services.board.now_ms()
    services.board.place("", [(spec, now_ms + 1_000) for spec in specs], stored.version)
    ids = [spec.id for spec in specs]
    for target_id, status in zip(ids, _statuses(now_ms), strict=False):
        services.redis.hset(services.keys.status, str(target_id), status.pack())
    services.board.scripts.run("recount", [])

    queue = specs[0].queue
    services.redis.zrem(services.keys.due(queue), str(ids[2]))
    services.redis.zadd(services.keys.parked, {str(ids[2]): now_ms + 1_800_000})
    services.redis.zadd(services.keys.due(queue), {str(ids[1]): now_ms + 600_000})
    Breakers(services.board).open([ids[3]], Opening(now_ms + 3_600_000, now_ms, "ada"))
    letter = Letter(
        *(ids[2], now_ms, Reason.AUTH_FAILED, "auth_failed", "refused"),
        *(now_ms - 900_000, now_ms - 1000, now_ms + 1_800_000, 4),
    )
    dead_letter_rows.write(services.engine, [letter])
    run = Run(ids[0], now_ms - 60_000, Result.OK, 1, "", "", now_ms - 60_000, now_ms - 59_750)
    run_ledger.write(services.engine, [run])
    return services


def _statuses(now_ms: int) -> Iterator[Status]:
    yield Status(State.OK, now_ms - 600_000, now_ms - 60_000, now_ms - 59_750, now_ms - 59_750)
    yield Status(
        State.FAILING,
        *(now_ms - 500_000, now_ms - 60_000, now_ms - 50_000, now_ms - 600_000, 7, 2),
        *("timeout", "no \x1b answer"),
        breaker=Breaker(3, now_ms - 400_000, now_ms + 60_000),
        confirmed=True,
    )
    yield Status(
        State.FAILING,
        *(now_ms - 900_000, now_ms - 60_000, now_ms - 50_000, 0, 4, 0, "auth_failed", "refused"),
        breaker=Breaker(2, now_ms - 800_000, now_ms - 1000),
        parked_ms=now_ms - 1000,
        reason=Reason.AUTH_FAILED,
    )
    yield Status()


def read(services: Services, **parameters: str | int) -> dict[str, Any]:
    response = api_clients.client(services).get(PATH, params=parameters)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_every_field_is_there_and_no_collection_is_null(services: Services) -> None:
    """An empty cluster has the whole document, with empty lists and mappings."""
    found = read(services)
    assert found["schema"] == "poller.scheduler.health/1"
    assert not found["enabled"]
    assert found["instances"] == []
    _assert_whole(found, HealthDocument)


def test_every_field_of_an_instance_is_there(fleet: Services) -> None:
    """Instances and lists of the picture have all their fields."""
    found = read(fleet)
    _assert_whole(found, HealthDocument)
    assert [each["key"] for each in found["instances"]] == [f"sw{n}/snmp" for n in range(1, 6)]


def _assert_whole(found: Any, model: type[BaseModel]) -> None:
    """Every field of the type is there, and is null only where the type allows it."""
    for name, field in model.model_fields.items():
        value = found[field.serialization_alias or name]
        kind = field.annotation
        is_nullable = type(None) in get_args(kind)
        assert value is not None or is_nullable, (model, name)
        items = [value]
        if get_origin(kind) is list:
            items = value
        elif get_origin(kind) is dict:
            items = list(value.values())
        for part in (*get_args(kind), kind):
            if isinstance(part, type) and issubclass(part, BaseModel):
                for item in items:
                    if item is not None:
                        _assert_whole(item, part)


def test_the_picture_counts_what_is_due_within_twelve_seconds(fleet: Services) -> None:
    """A target that is due in a second counts, one that is due in ten minutes does not."""
    found = read(fleet)
    assert found["queue"]["depth"] == 3
    assert found["queue"]["per_collector"] == {"snmp": 3}
    # The one opened by hand is due when the opening ends.
    assert found["queue"]["due_within_12_seconds"] == 1
    assert found["capacity"][0]["due_within_12_seconds"] == 1
    assert found["board"]["states"] == {"ok": 1, "degraded": 0, "failing": 2, "unknown": 1}
    assert (found["board"]["targets"], found["board"]["parked"]) == (4, 1)
    assert [each["queue"] for each in found["unroutable"]] == ["poll.snmp"]


def test_due_within_twelve_seconds_ends_with_the_twelfth(fleet: Services) -> None:
    """The twelfth second counts, the next millisecond does not; urgent and overdue ones count."""
    keys, now_ms = fleet.keys, fleet.board.now_ms()
    due = {"1": now_ms - 5, "2": now_ms + 12_000, "3": now_ms + 12_001}
    fleet.redis.zadd(keys.due("poll.x"), due)
    fleet.redis.zadd(keys.urgent("poll.x"), {"4": 1})
    pipe = fleet.redis.pipeline(transaction=False)
    queue_loads.add_to(pipe, keys, "poll.x", now_ms)
    sizes = QueueSizes(*pipe.execute())
    assert (sizes.due, sizes.due_soon, sizes.urgent_soon) == (3, 2, 1)


def test_the_picture_names_breakers_letters_and_stale_targets(fleet: Services) -> None:
    """Each list is bounded and names its targets by key."""
    found = read(fleet)
    assert (found["breakers"]["open"], found["breakers"]["opened_by_hand"]) == (2, 1)
    states = {each["key"]: each["state"] for each in found["breakers"]["not_closed"]}
    assert states == {"sw2/snmp": "open", "sw3/snmp": "open", "sw4/snmp": "open"}
    assert found["dead_letters"]["count"] == 1
    assert [each["key"] for each in found["dead_letters"]["newest"]] == ["sw3/snmp"]
    assert found["staleness"]["older_than_5_min"] == 1
    assert found["staleness"]["never_good"] == 2
    assert found["staleness"]["stalest"][0]["key"] == "sw2/snmp"


def test_an_instance_has_its_poll_breaker_letter_and_schedule(fleet: Services) -> None:
    """The values are those of the board, the ledger and the dead letters."""
    well, failing, parked, opened, disabled = read(fleet)["instances"]
    assert (well["type"], well["address"], well["site"]) == ("snmp", "10.0.0.1", "fra")
    assert (well["tags"], well["state"], well["display_name"]) == (["core"], "ok", "sw1")
    assert well["poll_status"]["last_outcome"] == "ok"
    assert well["poll_status"]["duration_seconds"] == 0.25
    assert well["poll_status"]["last_error"] is None
    assert well["breaker"]["state"] == "closed"
    assert well["dead_letter"]["present"] is False
    assert well["staleness_score"] == pytest.approx(0.2, abs=0.1)

    error = failing["poll_status"]["last_error"]
    assert (error["code"], error["category"]) == ("timeout", "transient")
    assert error["message"] == "no \\u001b answer"
    assert failing["poll_status"]["consecutive_failures"] == 7
    assert failing["breaker"]["state"] == "open"
    assert failing["breaker"]["last_transition"] == failing["poll_status"]["last_poll"]
    assert failing["schedule"]["missed_slots"] == 2
    assert failing["staleness_score"] == 1.0

    letter = parked["dead_letter"]
    assert (letter["present"], letter["reason"], letter["attempts"]) == (True, "auth_failed", 4)
    assert letter["next_retry"] == parked["schedule"]["next_due"] is not None
    assert parked["poll_status"]["last_error"]["category"] == "permanent"
    assert parked["poll_status"]["last_success"] is None
    assert parked["warnings"][-1] == "The target is a dead letter: auth_failed."

    assert (opened["breaker"]["state"], opened["breaker"]["opened_by"]) == ("open", "ada")
    assert opened["state"] == "unknown"
    assert (disabled["state"], disabled["enabled"]) == ("disabled", False)
    assert disabled["warnings"] == ["The target is disabled."]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("state:failing", ["sw2", "sw3"]),
        ("state:open", ["sw2", "sw3", "sw4"]),
        ("state:disabled", ["sw5"]),
        ("code:auth_failed", ["sw3"]),
        ("name:sw[12]", []),
        ("site:fra tag:core name:sw1,sw5", ["sw1", "sw5"]),
    ],
)
def test_instances_are_filtered(fleet: Services, where: str, expected: list[str]) -> None:
    """The filter is that of the command line."""
    found = read(fleet, where=where)
    assert [each["device"] for each in found["instances"]] == expected
    assert found["board"]["targets"] == 4  # the picture is of all


def test_instances_have_pages(fleet: Services) -> None:
    """The cursor leads through all targets, each once, also if one is removed meanwhile."""
    first = read(fleet, limit=2)
    assert [each["device"] for each in first["instances"]] == ["sw1", "sw2"]
    devices.remove(fleet.engine, ["sw2"])
    second = read(fleet, limit=2, cursor=first["next"])
    third = read(fleet, limit=2, cursor=second["next"])
    names = [each["device"] for each in (*second["instances"], *third["instances"])]
    assert names == ["sw3", "sw4", "sw5"]
    assert third["next"] is None


@pytest.mark.parametrize(
    ("parameters", "status", "part"),
    [
        ({"where": "stat:ok"}, 422, "did you mean state?"),
        ({"where": "site:frq"}, 422, "did you mean fra?"),
        ({"where": "sw1"}, 422, "write name:sw1"),
        ({"cursor": "zzz"}, 422, "cursor"),
        ({"limit": "501"}, 422, "limit"),
    ],
)
def test_a_wrong_request_is_refused(
    fleet: Services, parameters: dict[str, str], status: int, part: str
) -> None:
    """The problem names the field and says what to do."""
    response = api_clients.client(fleet).get(PATH, params=parameters)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert part in response.text


def test_only_readers_of_every_site_may_ask_and_only_by_get(services: Services) -> None:
    """401 without a login, 403 with a token of one site, 405 for other methods."""
    assert api_clients.client(services, None).get(PATH).status_code == 401
    of_site = api_clients.client(services, (Scope.READ,), site="fra")
    assert of_site.get(PATH).status_code == 403
    reader = api_clients.client(services, (Scope.READ,))
    assert reader.get(PATH).status_code == 200
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        refused = reader.request(method, PATH)
        assert refused.status_code == 405
        assert refused.headers["content-type"] == "application/problem+json"


def test_without_the_board_the_answer_is_503(fleet: Services, free_port: int) -> None:
    """A problem with a hint and Retry-After; nothing is made up."""
    fleet.redis = connect(f"redis://127.0.0.1:{free_port}/0")  # type: ignore[misc]
    fleet.__dict__.pop("board", None)
    response = api_clients.client(fleet).get(PATH)
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"]


def test_without_sql_the_picture_of_the_board_remains(
    fleet: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts stay, the error of SQL is named, and there are no instances."""
    with monkeypatch.context() as patched:
        patched.setattr("poller.db.engine.check_file", _refuse)
        overall = scheduler_health.overall(fleet)
        page = scheduler_health.instances(fleet, target_filter.ANY, None, 50)
    document = scheduler_health_json.document(overall, page)
    found = document.model_dump(by_alias=True)
    assert found["board"]["targets"] == 4
    assert "no such file" in found["stores"]["sql"]
    assert "no such file" in found["instances_error"]
    assert found["instances"] == []
    _assert_whole(found, HealthDocument)


def _refuse(_engine: object) -> None:
    raise errors.StoreUnavailable("no such file")
