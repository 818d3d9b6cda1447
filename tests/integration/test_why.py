"""Explanations from a real inventory and a real board."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import redis

from poller import errors
from poller.bootstrap import Services
from poller.cli import main
from poller.db.inventory import devices
from poller.domain.access.scopes import Scope
from poller.domain.failures import quarantine
from poller.domain.failures.quarantine import Cause as IncidentCause
from poller.domain.failures.quarantine import Incident
from poller.domain.failures.site_outage import Outage
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record import run
from poller.domain.record.overview import State, Worker
from poller.domain.record.target_status import Status
from poller.domain.why.causes import Cause
from poller.domain.why.explanation import Explanation
from poller.presentation.targets import why_json
from poller.service import command_actor, target_explanation
from poller.state.board.breakers import Breakers
from poller.state.board.record_formats import Opening
from poller.state.cluster import quarantine_records, site_windows, worker_registry
from poller.state.cluster.leader_lock import Leadership
from poller.state.cluster.quarantine_records import Release
from tests.integration import api_clients
from tests.integration.worlds import QUEUE, World

RUNNER = "worker@test"
ACTOR = command_actor.of_command()


def announce(services: Services, **fields: object) -> None:
    """Write the heartbeat of a worker that serves the queue."""
    worker = Worker(
        RUNNER,
        seen_ms=0,
        started_ms=1,
        polls=0,
        in_flight=0,
        rss_bytes=0,
        collectors={"fake": "tests"},
        queues=(QUEUE,),
    )
    worker_registry.announce(services.redis, services.keys, replace(worker, **fields))  # type: ignore[arg-type]


@pytest.fixture
def services(world: World) -> Services:
    """A cluster with a leader and a worker."""
    services = world.services
    services.leadership = Leadership(services.redis, services.keys, 60_000)  # type: ignore[misc]
    services.leadership.take()
    announce(services)
    return services


@pytest.fixture
def explained(services: Services) -> Callable[[], Explanation]:
    """The explanation of the target of device d0."""

    def explain() -> Explanation:
        [found] = target_explanation.explain_device(services, "d0")
        return found

    return explain


def test_a_polled_target_is_explained_by_its_last_run(
    world: World, explained: Callable[[], Explanation]
) -> None:
    """State, place, run and worker come from the stores."""
    ids = world.add("answer")
    assert explained().cause is Cause.NEVER_POLLED
    world.poll_now(ids, "t1")
    found = explained()
    assert found.cause is Cause.HEALTHY
    assert found.sentence.startswith("Polled every 60 s; the last poll was good 0 s ago, next poll")
    [last] = found.facts.runs
    assert (last.runner, last.outcome) == (RUNNER, "ok")
    body = why_json.document(found).model_dump(mode="json", by_alias=True)
    assert body["schema"] == "poller.why/1"
    assert body["board"]["place"] == "due"
    assert body["workers"] == [{"worker": RUNNER, "fits": True, "reason": ""}]
    assert [step["name"] for step in body["schedule"]["steps"]][:2] == ["base", "phase"]
    assert body["runs"][0]["slowest"] in body["runs"][0]["parts"]


def test_an_open_breaker_is_compared_with_the_neighbours(
    world: World, services: Services, explained: Callable[[], Explanation]
) -> None:
    """Devices of the same site that answer are counted; unpolled ones are not."""
    ids = world.add("dead", "answer", "answer", "dead", "answer")
    for name in ("d0", "d1", "d2", "d3"):
        devices.edit(services.engine, name, DeviceDraft(name, None, site="ams"))
    for number in range(3):
        world.poll_now(ids[:4], f"t{number}")
    found = explained()
    assert found.cause is Cause.BREAKER_OPEN
    expected = "Polled every 60 s; the last 3 polls timed out, the breaker is open, next probe "
    assert found.sentence.startswith(expected)
    assert found.sentence.endswith("; the site is up: 2 of 3 neighbours answer.")


def test_the_worker_that_holds_a_target_is_known(
    world: World, services: Services, explained: Callable[[], Explanation]
) -> None:
    """A target in flight names its worker; when that worker is gone, it says so."""
    ids = world.add("answer")
    world.claim("1.1.a")
    assert explained().facts.board.flight.attempts == 0  # type: ignore[union-attr]
    services.board.start("1.1.a", 0, run.call_name(RUNNER, "n"), 60_000, ids)
    found = explained()
    assert found.cause is Cause.LONG_IN_FLIGHT  # claimed in 1970, by its token
    assert f" on {RUNNER}, longer than its time limit of 2 s" in found.sentence
    worker_registry.leave(services.redis, services.keys, RUNNER)
    announce(services, name="other@test")
    lost = explained()
    assert lost.cause is Cause.WORKER_LOST
    assert f"on {RUNNER}, which is gone" in lost.sentence


def test_a_real_worker_is_named_while_it_polls(
    world: World, explained: Callable[[], Explanation]
) -> None:
    """The name is that of the run's ledger row."""
    [target] = world.add("answer")
    held: list[str] = []
    finish = world.board.finish

    def look_and_finish(*args: object, **options: object) -> object:
        flight = explained().facts.board.flight  # type: ignore[union-attr]
        held.append(flight.holder if flight else "")
        return finish(*args, **options)  # type: ignore[arg-type]

    world.board.finish = look_and_finish  # type: ignore[method-assign, assignment]
    world.poll_now([target], "t1")
    assert held == [RUNNER]


def quarantine_collector(services: Services) -> None:
    for at_ms in (1, 2, 3):
        incident = Incident(services.board.now_ms() + at_ms, IncidentCause.CRASH, "it crashed", 1)
        release = Release("fake", "tests")
        quarantine_records.record(
            services.redis, services.keys, release, incident, quarantine.Rules()
        )


def open_by_hand(services: Services) -> None:
    now_ms = services.board.now_ms()
    Breakers(services.board).open([1], Opening(now_ms + 60_000, now_ms, "alice"))


def darken_site(services: Services) -> None:
    devices.edit(services.engine, "d0", DeviceDraft("d0", None, site="ams"))
    services.board.withhold(services.leadership.token, 1, [1])
    outage = Outage("ams", 1, services.board.now_ms(), 0, (8, 9))
    site_windows.store(services.redis, services.keys, outage)


def overdue(services: Services) -> None:
    polled = Status(State.OK, 1, 1, 1, 1)
    services.redis.hset(services.keys.status, "1", polled.pack())
    services.redis.zadd(services.keys.due(QUEUE), {"1": services.board.now_ms() - 200_000})


def from_the_future(services: Services) -> None:
    future_ms = services.board.now_ms() + 3_600_000
    polled = Status(State.OK, future_ms, future_ms, future_ms, future_ms)
    services.redis.hset(services.keys.status, "1", polled.pack())


def remove_place(services: Services) -> None:
    services.redis.zrem(services.keys.due(QUEUE), "1")


def demand(services: Services) -> None:
    services.board.demand([1])


def disable(services: Services) -> None:
    devices.edit(services.engine, "d0", DeviceDraft("d0", None, enabled=False))


def move_away(services: Services) -> None:
    announce(services, queues=(), tags={"zone": "lan"})


def cut_off(services: Services) -> None:
    announce(services, store_error="the database is away")


def lose_worker(services: Services) -> None:
    worker_registry.leave(services.redis, services.keys, RUNNER)


def resign(services: Services) -> None:
    services.leadership.resign()


def forget(services: Services) -> None:
    services.redis.hdel(services.keys.spec, "1")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (disable, Cause.DISABLED),
        (open_by_hand, Cause.PAUSED),
        (forget, Cause.NOT_ON_BOARD),
        (remove_place, Cause.NO_PLACE),
        (lose_worker, Cause.NO_WORKER),
        (move_away, Cause.UNROUTABLE),
        (cut_off, Cause.WORKERS_BLOCKED),
        (quarantine_collector, Cause.QUARANTINED),
        (darken_site, Cause.SITE_DARK),
        (from_the_future, Cause.CLOCK_SET_BACK),
        (overdue, Cause.OVERDUE),
        (demand, Cause.DEMANDED),
        (resign, Cause.LEADER_MISSING),
    ],
)
def test_a_state_of_the_stores_leads_to_its_cause(
    world: World,
    services: Services,
    explained: Callable[[], Explanation],
    change: Callable[[Services], None],
    cause: Cause,
) -> None:
    """Each record is read where the program writes it."""
    world.add("answer")
    change(services)
    assert explained().cause is cause


def test_all_targets_of_a_device_cost_three_round_trips(
    world: World, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for the evidence, and one that tries whether Redis takes writes."""
    world.add("answer")
    drafts = [TargetDraft(f"more{n}", "fake", {}, interval_ms=60_000) for n in range(20)]
    devices.add(services.engine, DeviceDraft("many", "127.0.0.9"), drafts)
    round_trips: list[str] = []
    here = threading.current_thread()

    def count_calls(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(self: object, *args: object, **options: object) -> object:
            if threading.current_thread() is here:  # workers of other tests go on in theirs
                round_trips.append(name)
            return real(self, *args, **options)

        monkeypatch.setattr(owner, name, counted)

    count_calls(redis.Redis, "execute_command")
    count_calls(redis.client.Pipeline, "execute")
    assert len(target_explanation.explain_device(services, "many")) == 20
    assert len(target_explanation.explain_device(services, "d0")) == 1
    assert len(round_trips) == 2 + 3  # without the second look at a board that lacks all 20


def test_redis_away_is_told_with_what_sql_knows(
    services: Services, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inventory row is there, the board is not."""
    world.add("answer")

    def refuse(*_: object, **__: object) -> None:
        raise redis.ConnectionError("refused")

    monkeypatch.setattr(redis.client.Pipeline, "execute", refuse)
    [found] = target_explanation.explain_device(services, "d0")
    assert found.cause is Cause.REDIS_AWAY
    assert found.facts.name == "d0/fake"
    assert why_json.document(found).as_of is None


def test_a_database_that_is_away_leaves_the_board(
    services: Services, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its id the target is still found on the board; by its name it is not."""
    ids = world.add("answer")
    world.poll_now(ids, "t1")

    def away(*_: object, **__: object) -> None:
        raise errors.StoreUnavailable("cannot use the database", "no route")

    monkeypatch.setattr("poller.db.engine.reading", away)
    by_id = target_explanation.explain_target(services, ACTOR, ids[0])
    assert by_id.cause is Cause.DATABASE_AWAY
    assert "the last good poll was 0 s ago" in by_id.sentence
    [by_name] = target_explanation.explain_device(services, "d0", "fake")
    assert (by_name.cause, by_name.facts.name) == (Cause.DATABASE_AWAY, "d0/fake")


def test_an_unknown_id_is_an_error(services: Services) -> None:
    """The error is NotFound."""
    with pytest.raises(errors.NotFound):
        target_explanation.explain_target(services, ACTOR, 99)


def test_the_api_returns_the_same_document(
    services: Services, world: World, explained: Callable[[], Explanation]
) -> None:
    """The numeric id names the target; an unknown id is 404, a token of another site sees none."""
    [target] = world.add("answer")
    world.poll_now([target], "t1")
    body = api_clients.client(services).get(f"/api/v1/targets/{target}/why").json()
    same = why_json.document(explained()).model_dump(mode="json", by_alias=True)
    varying = ("as_of", "sentence", "next_poll_in_seconds")
    for name in varying:
        del body[name], same[name]
    assert body == same
    assert body["schema"] == "poller.why/1"
    limited = api_clients.client(services, (Scope.READ,), site="ams")
    assert limited.get(f"/api/v1/targets/{target}/why").status_code == 404
    assert api_clients.client(services).get("/api/v1/targets/99/why").status_code == 404
    assert api_clients.client(services, None).get("/api/v1/targets/1/why").status_code == 401


def test_the_command_prints_the_sentence_first(
    services: Services, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the details; a failing target ends with code 1, a healthy one with 0."""
    ids = world.add("answer", "dead")
    world.poll_now(ids, "t1")
    assert main.run(["why", "d0/fake"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("d0/fake: Polled every 60 s; the last poll was good")
    for title in ("on the board", "next due time: fixed interval", "last runs", "workers"):
        assert title in lines
    assert main.run(["why", "d1", "--json"]) == 1
    [item] = json.loads(capsys.readouterr().out)["items"]
    assert (item["cause"], item["is_bad"]) == ("failing", True)
    assert main.run(["why", "d7"]) == errors.NotFound.exit_code


def test_a_shown_device_has_the_sentences_of_its_targets(
    services: Services, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """State, sentence and next poll are there without a look at the runs."""
    world.poll_now(world.add("answer"), "t1")
    assert main.run(["device", "show", "d0"]) == 0
    assert "\nfake: Polled every 60 s; the last poll was good" in capsys.readouterr().out
    assert main.run(["device", "show", "d0", "--json"]) == 0
    [target] = json.loads(capsys.readouterr().out)["targets"]
    assert (target["state"], target["cause"], target["place"]) == ("ok", "healthy", "due")
    assert target["next_poll"]
