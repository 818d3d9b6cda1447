"""One batch through a worker: real Redis, real SQL, and collectors that behave in every way they can."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import redis
import sqlalchemy as sa
from kombu.common import QoS

from poller import errors
from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.registry import Broken, Registry
from poller.collectors.staleness import Sources
from poller.db import devices, migrate, readings, runs
from poller.db.tables import targets as targets_table
from poller.domain import plan
from poller.domain.draft import DeviceDraft, TargetDraft
from poller.domain.interval import Decision, Policy
from poller.domain.outcome import Result
from poller.domain.overview import State
from poller.domain.staleness import Evidence
from poller.domain.target import TargetSpec
from poller.settings import Settings
from poller.state.moves import Room
from poller.workers import collect, warming
from poller.workers.polling import Poller

QUEUE = "poll.fake"
ROOM = Room(targets=1000, batch_size=64, lease_ms=30_000)


class Fake:
    """Does what the target's `do` option says."""

    name: ClassVar[str] = "fake"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()

    class Options(api.Options):
        do: str = "answer"

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.hanging = threading.Event()
        self.recovered = False

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        self.addresses.append(poll.address)
        if poll.options.do == "dead" and not self.recovered:
            raise api.DeviceTimeout("no answer")
        if poll.options.do in ("busy", "quiet"):
            yield api.Reading("load", float(len(self.addresses)) if poll.options.do == "busy" else 7.0)
        yield api.Reading("polls", 1.0, {"device": poll.device}, api.Kind.COUNTER)
        if poll.options.do == "fail":
            raise api.DeviceTimeout("no answer")
        if poll.options.do == "crash":
            raise RuntimeError("a bug")
        if poll.options.do == "hang":
            self.hanging.set()
            await asyncio.sleep(3600)


class World:
    """A worker's surroundings, with as many targets as a test wants."""

    def __init__(self, services: Services, collector: Fake) -> None:
        self.services = services
        self.collector = collector
        self.board = services.board
        self.poller = Poller(services, "worker@test")
        self.published = ""

    def add(self, *deeds: str, interval_ms: int = 60_000, timeout_ms: int = 2_000, **more: Any) -> list[int]:
        for number, deed in enumerate(deeds):
            target = TargetDraft("fake", "fake", {"do": deed}, interval_ms=interval_ms, timeout_ms=timeout_ms, **more)
            devices.add(self.services.engine, DeviceDraft(f"d{number}", f"127.0.0.{number + 1}"), [target])
        with self.services.engine.connect() as conn:
            ids = list(conn.execute(sa.select(targets_table.c.id).order_by(targets_table.c.id)).scalars())
        specs = [(TargetSpec(i, 1, QUEUE, interval_ms, timeout_ms), 1) for i in ids]
        self.board.place("", specs, 1)
        return ids

    def retrying(self, tries: int) -> None:
        """A worker that tries failed polls again."""
        self.services.settings = Settings(retry_tries=tries)
        self.poller = Poller(self.services, "worker@test")

    def claim(self, token: str = "t") -> None:
        self.board.claim("", token, self.published, {QUEUE: 100}, ROOM)
        self.published = token

    def again(self, ids: list[int], token: str) -> None:
        """Poll them now, whatever their slot."""
        self.board.demand(ids)
        self.claim(token)
        self.poller.poll(token, ids)

    def decision(self, target_id: int) -> Decision:
        found = self.board.statuses([target_id])[target_id].decision
        assert found is not None
        return found

    def due_ms(self, target_id: int) -> int:
        redis, keys = self.services.redis, self.services.keys
        score = redis.zscore(keys.due(QUEUE), str(target_id)) or redis.zscore(keys.urgent(QUEUE), str(target_id))
        assert score is not None
        return int(score)

    def outcomes(self) -> dict[int, tuple[Result, str]]:
        return {row.run.target_id: (row.run.outcome, row.run.error_code) for row in runs.recent(self.services.engine)}

    def sound(self, ids: list[int]) -> bool:
        check = self.board.check(ids)
        return not check.lost and not check.doubled

    def in_flight(self) -> int:
        return int(self.services.redis.zcard(self.services.keys.inflight))


@pytest.fixture
def world(home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    services = Services(Settings())
    migrate.upgrade(services.engine)
    collector = Fake()
    services.registry = Registry({"fake": collector}, (), {"fake": "tests"})  # type: ignore[misc]
    yield World(services, collector)
    services.engine.dispose()


def test_a_batch_ends_in_rows_and_every_target_is_due_again(world: World) -> None:
    """Readings, one run each, and the next slot ahead."""
    ids = world.add("answer", "answer", "answer")
    world.claim()
    world.poller.poll("t", ids)
    assert world.outcomes() == dict.fromkeys(ids, (Result.OK, ""))
    stored = readings.latest(world.services.engine, ids)
    assert [list(stored[i].readings.values) for i in ids] == [[1.0]] * 3
    assert world.sound(ids)
    assert world.in_flight() == 0
    now_ms = int(world.services.redis.time()[0]) * 1000
    scores = [world.services.redis.zscore(world.services.keys.due(QUEUE), str(i)) for i in ids]
    assert all(now_ms < score <= now_ms + 61_000 for score in scores)


def test_one_target_changes_nothing_for_the_others(world: World) -> None:
    """Failing, crashing and hanging ones are outcomes of their own; what was read before is kept."""
    ids = world.add("answer", "fail", "crash", "hang", timeout_ms=300)
    world.claim()
    world.poller.poll("t", ids)
    expected = [
        (Result.OK, ""),
        (Result.PARTIAL, "timeout"),
        (Result.PARTIAL, "collector_crashed"),
        (Result.PARTIAL, "timeout"),
    ]
    assert world.outcomes() == dict(zip(ids, expected, strict=True))
    states = world.board.statuses(ids)
    assert [states[i].state for i in ids] == [State.OK, State.DEGRADED, State.DEGRADED, State.DEGRADED]
    assert world.sound(ids)


def test_healthy_targets_do_not_wait_for_a_hanging_one(world: World) -> None:
    """They are written and due again while the other still runs."""
    ids = world.add("hang", "answer", timeout_ms=8_000)
    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    _until(lambda: ids[1] in world.outcomes())
    _until(lambda: world.in_flight() == 1)  # a moment after its row
    assert thread.is_alive()
    world.poller.drain()
    thread.join(5)
    assert not thread.is_alive()


def test_a_batch_of_silent_devices_lends_its_place_and_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole site that went dark keeps no other site's batches waiting, known to the worker or not."""
    monkeypatch.setattr(collect, "FIRST_ROUND_S", 0.1)
    monkeypatch.setattr(warming, "MOST", 2)
    ids = world.add("hang", "hang", timeout_ms=8_000)
    qos = QoS(lambda **_: None, 4)
    hub = SimpleNamespace(call_soon=lambda _: None)
    world.poller.slots.attach(SimpleNamespace(qos=qos, hub=hub, pool=SimpleNamespace(spare=8)))
    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    _until(lambda: qos.value == 5)
    with world.poller._warming.turn(2):  # returns at once, or the time limit of the silent ones makes it late
        assert thread.is_alive()
    world.poller.drain()
    thread.join(5)
    assert qos.value == 4
    assert world.in_flight() == 0
    assert world.sound(ids)


def test_a_worker_that_was_paused_beyond_its_lease_writes_nothing(world: World) -> None:
    """Its successor's run stands; the late one leaves no trace in ledger or readings."""
    ids = world.add("hang", timeout_ms=500)
    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    assert world.collector.hanging.wait(5)
    world.services.redis.zadd(world.services.keys.inflight, {str(ids[0]): 1})  # as if it had slept for an hour
    assert [item.id for item in world.board.reap("")] == ids
    world.claim("u")
    thread.join(5)
    assert world.outcomes() == {}
    assert readings.latest(world.services.engine, ids) == {}
    assert world.in_flight() == 1
    assert world.sound(ids)


def test_a_second_delivery_polls_nothing(world: World) -> None:
    """The broker may deliver a batch twice; the device is asked once."""
    ids = world.add("answer")
    world.claim()
    world.poller.poll("t", ids)
    world.poller.poll("t", ids)
    assert len(world.collector.addresses) == 1
    assert world.services.redis.hget(world.services.keys.totals, "stale") == "1"


def test_a_stopping_worker_hands_its_targets_back_at_once(world: World) -> None:
    """They are due now, not after a lease, and the ledger says nothing of an attempt that was cut off."""
    ids = world.add("hang", timeout_ms=30_000)
    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    assert world.collector.hanging.wait(5)
    world.poller.drain()
    thread.join(5)
    assert not thread.is_alive()
    assert world.outcomes() == {}
    assert world.in_flight() == 0
    assert world.sound(ids)


def test_an_edited_device_is_polled_at_its_new_address_at_once(world: World) -> None:
    """The worker's cache never outlives the board's version."""
    ids = world.add("answer")
    world.claim()
    world.poller.poll("t", ids)
    devices.edit(world.services.engine, "d0", DeviceDraft("d0", "127.9.9.9"))
    world.board.place("", [(TargetSpec(ids[0], 99, QUEUE, 60_000, 2_000), 1)], 99)
    world.board.demand(ids)
    world.claim("u")
    world.poller.poll("u", ids)
    assert world.collector.addresses == ["127.0.0.1", "127.9.9.9"]


def test_options_that_are_no_longer_valid_are_named(world: World) -> None:
    """An upgraded collector may have dropped an option: refused, not crashed."""
    ids = world.add("answer")
    with world.services.engine.begin() as conn:
        conn.execute(sa.update(targets_table).values(options={"gone": 1}))
    world.claim()
    world.poller.poll("t", ids)
    assert world.outcomes() == {ids[0]: (Result.REFUSED, "options_invalid")}
    assert 'unknown option "gone"' in world.board.statuses(ids)[ids[0]].message


def test_a_ledger_that_is_down_does_not_stop_the_polling(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target goes on; its rows wait on disk, are counted, and are written when the ledger is back."""
    ids = world.add("answer")

    def refuse(*_: Any) -> None:
        raise errors.StoreUnavailable("down")

    with monkeypatch.context() as outage:
        outage.setattr(runs, "write", refuse)
        world.claim()
        world.poller.poll("t", ids)
        assert world.outcomes() == {}
        assert world.in_flight() == 0
        assert world.sound(ids)
        assert world.poller.writing.waiting == 1
        assert readings.latest(world.services.engine, ids).keys() == set(ids)
    _until(lambda: world.outcomes() == {ids[0]: (Result.OK, "")})
    _until(lambda: world.poller.writing.waiting == 0)


def test_an_inventory_that_is_down_hands_unknown_targets_back_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours, not the device's fault: no failure is counted, and there is no tight circle."""
    from poller.db import inventory

    ids = world.add("answer")

    def refuse(*_: Any) -> None:
        raise errors.StoreUnavailable("down")

    monkeypatch.setattr(inventory, "poll_targets", refuse)
    world.claim()
    with pytest.raises(errors.StoreUnavailable):
        world.poller.poll("t", ids)
    assert world.sound(ids)
    assert world.in_flight() == 0
    now_ms = int(world.services.redis.time()[0]) * 1000
    assert world.services.redis.zscore(world.services.keys.due(QUEUE), str(ids[0])) > now_ms + 1_000
    assert world.board.statuses(ids)[ids[0]].failures == 0


ADAPTIVE: dict[str, Any] = {"policy": Policy.ADAPTIVE, "interval_ms": 10_000, "min_ms": 5_000, "max_ms": 300_000}


def test_a_fixed_interval_stays_as_it_is(world: World) -> None:
    """Its grid, whatever happens, and nothing about decisions in its status."""
    ids = world.add("answer", "dead", interval_ms=37_000)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(6):
        world.again(ids, f"t{number}")
    for target_id in ids:
        assert (world.due_ms(target_id) - plan.phase_ms(target_id, 37_000)) % 37_000 == 0
        assert world.board.statuses(ids)[target_id].decision is None


def test_a_healthy_adaptive_target_is_polled_at_its_base(world: World) -> None:
    """The plan plus what was chosen, within the jitter; what it was chosen from is kept."""
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(5):
        world.again(ids, f"t{number}")
        found, status = world.decision(ids[0]), world.board.statuses(ids)[ids[0]]
        assert (found.target_ms, found.smoothed_ms, found.errors, found.source) == (10_000, 10_000, 0, "steady")
        assert 9_500 <= found.chosen_ms <= 10_500
        assert world.due_ms(ids[0]) == status.run_ms + found.chosen_ms
    assert status.missed == 0


def test_a_failing_adaptive_target_is_confirmed_and_then_left_alone(world: World) -> None:
    """Four times faster and faster; the fifth failure opens its breaker, which waits longer and longer."""
    ids = world.add("dead", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    found = [world.decision(ids[0])]
    for number in range(3):
        world.again(ids, f"t{number}")
        found.append(world.decision(ids[0]))
    assert [decision.errors for decision in found] == [1, 2, 3, 4]
    assert all(5_000 <= decision.chosen_ms < 10_000 for decision in found)
    world.again(ids, "u")
    status = world.board.statuses(ids)[ids[0]]
    assert (status.decision, status.breaker.trips) == (None, 1)
    assert 27_000 <= world.due_ms(ids[0]) - status.finished_ms <= 40_000


def test_a_pending_slot_is_not_pushed_further_by_looking_at_it(world: World) -> None:
    """Five passes of reconcile, each with an edit that is not about time."""
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    before = world.due_ms(ids[0])
    for version in range(2, 7):
        world.board.place("", [(TargetSpec(ids[0], version, QUEUE, 10_000, 2_000), before + version)], version)
    assert world.due_ms(ids[0]) == before


def test_an_edit_brings_back_a_target_that_was_left_alone(world: World) -> None:
    """Somebody may have mended it: it does not wait for the rest of its long interval."""
    ids = world.add("dead", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(5):
        world.again(ids, f"t{number}")
    now_ms = world.board.now_ms()
    assert world.due_ms(ids[0]) > now_ms + 30_000
    world.board.place("", [(TargetSpec(ids[0], 2, QUEUE, 10_000, 2_000), now_ms)], 2)
    assert world.due_ms(ids[0]) <= now_ms


def test_a_quiet_device_is_polled_slowly_and_a_busy_one_quickly(world: World) -> None:
    """By the share of gauges that changed since this worker's last poll; the first poll tells nothing."""
    ids = world.add("quiet", "busy", **ADAPTIVE, staleness="change")
    world.claim()
    world.poller.poll("t", ids)
    assert [world.decision(i).target_ms for i in ids] == [10_000, 10_000]
    world.again(ids, "u")
    assert [(world.decision(i).score, world.decision(i).target_ms) for i in ids] == [(0.0, 300_000), (1.0, 5_000)]


def test_waiting_batches_of_the_queue_stretch_it(world: World) -> None:
    """More than two batches of 64 are overdue when this one begins."""
    ids = world.add(*["answer"] * 150, **ADAPTIVE)
    world.board.claim("", "t", "", {QUEUE: 100}, Room(targets=1, batch_size=64, lease_ms=30_000))
    [mine] = [i for i in ids if world.services.redis.zscore(world.services.keys.inflight, str(i))]
    world.poller.poll("t", [mine])
    assert (world.decision(mine).depth, world.decision(mine).target_ms) == (3, 12_000)


def test_missed_slots_are_counted_by_what_was_chosen(world: World) -> None:
    """Not by the base: four of its intervals went by, so three slots did."""
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    now_ms, before = world.board.now_ms(), world.board.statuses(ids)[ids[0]]
    decided = replace(world.decision(ids[0]), chosen_ms=50_000)
    late = before._replace(run_ms=now_ms - 200_000, decision=decided)
    world.services.redis.hset(world.services.keys.status, str(ids[0]), late.pack())
    world.again(ids, "u")
    assert world.board.statuses(ids)[ids[0]].missed == 3


def test_a_staleness_source_that_fails_leaves_its_targets_steady(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named once, not once for each poll; so is one that could not be loaded."""

    def bad(evidence: Evidence) -> float:
        raise KeyError("no such metric")

    world.services.staleness = Sources({"bad": bad}, (Broken("odd", "acme 1", "no luck"),))  # type: ignore[misc]
    world.services.configure_logs()
    world.poller = Poller(world.services, "worker@test")
    ids = world.add("answer", **ADAPTIVE, staleness="bad")
    world.claim()
    world.poller.poll("t", ids)
    world.again(ids, "u")
    assert (world.decision(ids[0]).source, world.decision(ids[0]).target_ms) == ("steady", 10_000)
    said = "".join(capsys.readouterr())
    assert (said.count("no such metric"), said.count("no luck")) == (1, 1)


def _until(condition: Any, within_s: float = 5.0) -> None:
    done = threading.Event()
    for _ in range(int(within_s / 0.02)):
        if condition():
            return
        done.wait(0.02)
    pytest.fail("it did not come true")


def test_only_failed_targets_that_may_recover_travel_in_the_retry(world: World) -> None:
    """They stay in flight under the same run, and the next attempt ends it; the others are due again at once."""
    world.retrying(2)
    ids = world.add("answer", "dead", "crash")
    world.claim()
    assert world.poller.poll("t", ids) == [ids[1]]
    assert world.in_flight() == 1
    assert world.board.statuses(ids)[ids[1]].run_ms == 0
    assert world.poller.poll("t", [ids[1]], attempt=0) == []  # the first message once more: a duplicate
    assert world.poller.poll("t", [ids[1]], attempt=1) == [ids[1]]
    assert world.poller.poll("t", [ids[1]], attempt=2) == []
    assert world.in_flight() == 0
    found = world.board.statuses(ids)[ids[1]]
    assert (found.failures, found.code) == (1, "timeout")
    assert [row.run.attempt for row in runs.recent(world.services.engine, target_id=ids[1])] == [3]
    assert world.sound(ids)


def test_a_retry_that_succeeds_is_a_good_run(world: World) -> None:
    """No failure is counted, and the breaker knows nothing of it."""
    world.retrying(2)
    ids = world.add("dead")
    world.claim()
    assert world.poller.poll("t", ids) == ids
    world.collector.recovered = True
    assert world.poller.poll("t", ids, attempt=1) == []
    assert world.board.statuses(ids)[ids[0]].failures == 0
    assert world.outcomes() == {ids[0]: (Result.OK, "")}


def test_a_lost_retry_comes_back_by_its_lease(world: World) -> None:
    """A worker that dies holding it loses nothing: the leader reaps it."""
    world.retrying(2)
    ids = world.add("dead")
    world.claim()
    world.poller.poll("t", ids)
    now_ms = world.board.now_ms()
    assert world.board.reap("", now_ms=now_ms + 30_000) == []
    assert [item.id for item in world.board.reap("", now_ms=now_ms + 60_000)] == ids
    assert world.poller.poll("t", ids, attempt=1) == []
    assert world.sound(ids)


def test_a_site_that_goes_dark_costs_a_bounded_number_of_retries(world: World) -> None:
    """A tenth of the polls, and a hundred that were saved."""
    world.retrying(2)
    ids = world.add(*["dead"] * 400)
    world.claim()
    again = sum(len(world.poller.poll("t", ids[n : n + 50])) for n in range(0, 400, 50))
    assert 100 <= again <= 140
    assert world.sound(ids)


def test_a_target_that_keeps_failing_is_left_alone_and_recovers(world: World) -> None:
    """Its breaker opens with the fifth failure: no message until the probe, which is not retried; then all is well."""
    ids = world.add("dead", interval_ms=10_000)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(4):
        assert world.services.redis.zcard(world.services.keys.urgent(QUEUE)) == 0
        world.again(ids, f"t{number}")
    opened = world.board.statuses(ids)[ids[0]]
    assert (opened.failures, opened.breaker.trips) == (5, 1)
    assert 27_000 <= world.due_ms(ids[0]) - opened.finished_ms <= 40_000
    world.retrying(2)
    world.again(ids, "probe")
    waited = world.board.statuses(ids)[ids[0]]
    assert (waited.failures, waited.breaker.trips, world.in_flight()) == (6, 2, 0)
    world.collector.recovered = True
    world.again(ids, "good")
    healed = world.board.statuses(ids)[ids[0]]
    assert (healed.failures, healed.breaker.trips, healed.code) == (0, 0, "")
    assert world.services.redis.zscore(world.services.keys.due(QUEUE), str(ids[0])) is not None
    totals = world.services.redis.hgetall(world.services.keys.totals)
    assert (totals["breaker_opened"], totals["breaker_closed"]) == ("1", "1")


def test_what_cannot_be_polled_is_parked_and_tried_slowly(world: World) -> None:
    """It is in no queue until then; once it can be polled, it is an ordinary target again."""
    ids = world.add("answer")
    with world.services.engine.begin() as conn:
        conn.execute(targets_table.update().values(options={"do": 7}))
    world.claim()
    world.poller.poll("t", ids)
    found = world.board.statuses(ids)[ids[0]]
    assert found.parked_ms > 0
    score = world.services.redis.zscore(world.services.keys.parked, str(ids[0]))
    assert 1_600_000 <= score - found.finished_ms <= 1_800_000
    assert world.board.unpark("", int(score) - 1) == 0
    assert world.board.unpark("", int(score)) == 1
    assert world.sound(ids)
    with world.services.engine.begin() as conn:
        conn.execute(targets_table.update().values(options={"do": "answer"}, version=9))
    world.board.place("", [(TargetSpec(ids[0], 9, QUEUE, 60_000, 2_000), 1)], 9)
    world.again(ids, "u")
    assert world.board.statuses(ids)[ids[0]].parked_ms == 0
