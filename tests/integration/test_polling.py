"""One batch through a worker, with real Redis, real SQL and collectors that fail in every way."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from kombu.common import QoS

from poller import errors
from poller.collectors.credentials import Community
from poller.db.inventory import credential_rows, devices, inventory_feed
from poller.db.record import run_ledger, stored_readings
from poller.db.tables import targets as targets_table
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.metrics.poll_totals import Time
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import State
from poller.state.cluster import event_stream, overview_reader, queue_loads
from poller.state.keys import SLICE_MS
from poller.workers.batch import batch_run, cold_start, collection
from poller.workers.batch.worker_poller import Poller
from tests.integration.worlds import QUEUE, Fake, World


def test_a_batch_ends_in_rows_and_every_target_is_due_again(world: World) -> None:
    """Each target has readings, one run and its next slot."""
    ids = world.add("answer", "answer", "answer")
    world.claim()
    world.poller.poll("t", ids)
    assert world.outcomes() == dict.fromkeys(ids, (Result.OK, ""))
    stored = stored_readings.latest(world.services.engine, ids)
    assert [list(stored[i].readings.values) for i in ids] == [[1.0]] * 3
    assert world.sound(ids)
    assert world.in_flight() == 0
    now_ms = int(world.services.redis.time()[0]) * 1000
    scores = [world.services.redis.zscore(world.services.keys.due(QUEUE), str(i)) for i in ids]
    assert all(now_ms < score <= now_ms + 61_000 for score in scores)


def test_one_target_changes_nothing_for_the_others(world: World) -> None:
    """Failing, crashing and hanging targets have outcomes of their own; readings before a crash are
    stored.
    """
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
    assert [states[i].state for i in ids] == [
        State.OK,
        State.DEGRADED,
        State.DEGRADED,
        State.DEGRADED,
    ]
    assert world.sound(ids)


def test_a_queue_counts_its_slot_time_and_its_waits(world: World) -> None:
    """A batch that waits for a slow device counts until its slot is lent, or to its end."""
    ids = world.add("answer", "hang", timeout_ms=300)
    world.claim()
    world.poller.poll("t", ids)
    later_ms = world.board.now_ms() + SLICE_MS
    times = queue_loads.times(world.services.redis, world.services.keys, later_ms)[QUEUE]
    assert 300 <= times.slot_ms < 5_000  # this world has no consumer, so nothing is lent
    assert times.waits.total() == 2
    assert times.wait_ms(0.95) is not None
    much_later_ms = later_ms + 7 * SLICE_MS
    old = queue_loads.times(world.services.redis, world.services.keys, much_later_ms)[QUEUE]
    assert (old.slot_ms, old.waits.total()) == (0, 2)


def test_a_collector_is_told_that_the_workers_are_behind(world: World) -> None:
    """Of two targets, one waited for longer than half its interval."""
    [late, punctual] = world.add("answer", "answer")
    redis, keys = world.services.redis, world.services.keys
    now_ms = world.board.now_ms()
    redis.hset(keys.board, mapping={"clock": now_ms, "resumed": 0})
    redis.zadd(keys.due(QUEUE), {str(late): now_ms - 40_000, str(punctual): now_ms - 20_000})
    world.claim()
    world.poller.poll("t", [late, punctual])
    assert world.collector.behind == {late: True, punctual: False}


def test_a_finding_is_stored_published_and_polled_at_every_slot(world: World) -> None:
    """A finding fails with readings; the second in a row is an event, and recovery is seen at the
    next slot.
    """
    [one] = world.add("down")
    for number in range(4):
        world.poll_now([one], f"t{number}")
        assert world.outcomes()[one] == (Result.FAILED, "down")
        now_ms = int(world.services.redis.time()[0]) * 1000
        assert world.due_ms(one) <= now_ms + 61_000
    stored = stored_readings.latest(world.services.engine, [one])[one]
    assert list(stored.readings.values) == [1.0]
    assert world.board.statuses([one])[one].state is State.FAILING
    world.collector.recovered = True
    world.poll_now([one], "t4")
    after = world.board.statuses([one])[one]
    assert (after.state, after.confirmed) == (State.OK, False)
    happened = event_stream.after(
        world.services.redis, world.services.keys, event_stream.BEGINNING, 10
    )
    assert [each.event.kind for each in happened if each.event] == [
        Kind.DEVICE_WENT_DOWN,
        Kind.DEVICE_RECOVERED,
    ]


def test_a_finding_waits_in_routine_order_and_is_not_left_alone(world: World) -> None:
    """A target that is down stays among the due ones, and no breaker is counted."""
    [one] = world.add("down")
    for number in range(6):
        world.poll_now([one], f"t{number}")
    services = world.services
    assert services.redis.zscore(services.keys.due(QUEUE), str(one)) is not None
    assert services.redis.zcard(services.keys.urgent(QUEUE)) == 0
    assert overview_reader.read(services.redis, services.keys).breakers_open == 0


def test_an_opened_breaker_tells_its_probe_and_address(world: World) -> None:
    """The event has the instant of the next probe, as the board has it, and the address."""
    [one] = world.add("dead", interval_ms=10_000)
    for number in range(3):
        world.poll_now([one], f"t{number}")
    services = world.services
    entries = event_stream.newest(services.redis, services.keys, 20)
    opened = [each.event for each in entries if each.event]
    [event] = [event for event in opened if event.kind is Kind.BREAKER_OPENED]
    assert event.data["probe_ms"] == world.due_ms(one)
    assert event.data["address"]


def test_healthy_targets_do_not_wait_for_a_hanging_one(world: World) -> None:
    """Healthy targets are written and due again while the hanging poll still runs."""
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


def test_a_batch_of_silent_devices_lends_its_capacity_and_leaves_the_cold_start_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dark site delays no batch of another site, cached or cold."""
    monkeypatch.setattr(collection, "FIRST_ROUND_S", 0.1)
    monkeypatch.setattr(cold_start, "MAXIMUM", 2)
    ids = world.add("hang", "hang", timeout_ms=8_000)
    qos, ready = QoS(lambda **_: None, 4), deque[Callable[[], None]]()
    hub = SimpleNamespace(call_soon=ready.append)
    world.poller.lending.attach(SimpleNamespace(qos=qos, hub=hub, pool=SimpleNamespace(spare=8)))

    def places() -> int:
        while ready:
            ready.popleft()()
        return int(qos.value)

    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    _until(lambda: places() == 5)
    with world.poller._parts.cold_start.admit(2):  # at once: no time-out of a silent device passes
        assert thread.is_alive()
    world.poller.drain()
    thread.join(5)
    assert places() == 4
    assert world.in_flight() == 0
    assert world.sound(ids)


def test_a_worker_that_was_paused_beyond_its_lease_writes_nothing(world: World) -> None:
    """The run of the next worker stands; the late worker changes neither ledger nor readings."""
    ids = world.add("hang", timeout_ms=500)
    world.claim()
    thread = threading.Thread(target=world.poller.poll, args=("t", ids))
    thread.start()
    assert world.collector.hanging.wait(5)
    world.services.redis.zadd(
        world.services.keys.inflight, {str(ids[0]): 1}
    )  # as if it had slept for an hour
    assert [item.id for item in world.board.reap("")] == ids
    world.claim("u")
    thread.join(5)
    assert world.outcomes() == {}
    assert stored_readings.latest(world.services.engine, ids) == {}
    assert world.in_flight() == 1
    assert world.sound(ids)


def test_a_second_delivery_polls_nothing(world: World) -> None:
    """The broker may deliver a batch twice; the device is polled once."""
    ids = world.add("answer")
    world.claim()
    world.poller.poll("t", ids)
    world.poller.poll("t", ids)
    assert len(world.collector.addresses) == 1
    assert world.services.redis.hget(world.services.keys.totals, "stale") == "1"


def test_a_stopping_worker_hands_its_targets_back_at_once(world: World) -> None:
    """The targets are due now, not after a lease, and the ledger has no row of the cut-off
    attempt.
    """
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


def test_a_ledger_that_is_down_does_not_stop_the_polling(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polling continues; rows wait on disk, are counted, and are written when the ledger is
    back.
    """
    ids = world.add("answer")

    def refuse(*_: Any) -> None:
        raise errors.StoreUnavailable("down")

    with monkeypatch.context() as outage:
        outage.setattr(run_ledger, "write", refuse)
        world.claim()
        world.poller.poll("t", ids)
        assert world.outcomes() == {}
        assert world.in_flight() == 0
        assert world.sound(ids)
        assert world.poller.writers.waiting == 1
        assert stored_readings.latest(world.services.engine, ids).keys() == set(ids)
    _until(lambda: world.outcomes() == {ids[0]: (Result.OK, "")})
    _until(lambda: world.poller.writers.waiting == 0)


def test_while_sql_is_away_uncached_targets_are_handed_back_with_a_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own failure counts against no device, and the targets do not come back in a tight
    loop.
    """
    ids = world.add("answer")
    monkeypatch.setattr(inventory_feed, "poll_targets", _refuse)
    world.claim()
    with pytest.raises(errors.StoreUnavailable):
        world.poller.poll("t", ids)
    assert world.sound(ids)
    assert _waits_for_sql(world, ids[0])


def test_while_sql_is_away_cached_targets_are_polled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the target of the batch that would have to be read waits."""
    ids = world.add("answer", "answer", "answer")
    world.poll_now(ids, "t")
    del world.poller._parts.targets._cached[ids[0]]
    world.collector.addresses.clear()
    monkeypatch.setattr(inventory_feed, "poll_targets", _refuse)
    world.poll_now(ids, "u")
    assert sorted(world.collector.addresses) == ["127.0.0.2", "127.0.0.3"]
    assert world.sound(ids)
    assert _waits_for_sql(world, ids[0])


def test_a_hand_back_that_fails_is_repeated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that the board did not take back is still handed back when the batch ends."""
    ids = world.add("answer", "answer")
    world.poll_now(ids, "t")
    del world.poller._parts.targets._cached[ids[0]]
    monkeypatch.setattr(inventory_feed, "poll_targets", _refuse)
    finish, calls = world.board.finish, []

    def fail_once(*args: Any, **kwargs: Any) -> list[Result]:
        calls.append(args)
        if len(calls) == 1:
            raise errors.StoreConflict("refused once")
        return finish(*args, **kwargs)

    monkeypatch.setattr(world.board, "finish", fail_once)
    with pytest.raises(errors.StoreConflict):
        world.poll_now(ids, "u")
    assert world.in_flight() == 0
    assert world.sound(ids)


def test_a_credential_that_cannot_be_read_stops_only_its_own_targets(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Targets of an unreadable credential are neither polled nor refused; a batch of such targets
    only is our own error.
    """
    ids = _with_credentials(world, monkeypatch)
    world.poll_now(ids, "t")
    assert world.outcomes() == dict.fromkeys(ids, (Result.OK, ""))
    del world.poller._parts.credentials._entries[1]
    world.collector.addresses.clear()
    monkeypatch.setattr(inventory_feed, "credentials", _refuse)
    world.poll_now(ids, "u")
    assert world.collector.addresses == ["127.0.0.2"]
    assert world.outcomes() == dict.fromkeys(ids, (Result.OK, ""))
    assert world.sound(ids)
    assert _waits_for_sql(world, ids[0])
    world.poller._parts.credentials._entries.clear()
    with pytest.raises(errors.StoreUnavailable):
        world.poll_now(ids, "v")
    assert all(_waits_for_sql(world, target_id) for target_id in ids)


def test_a_target_whose_lease_ran_out_while_loading_is_not_polled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has the target by then."""
    ids = _with_credentials(world, monkeypatch)
    monkeypatch.setattr(batch_run, "SLOW_LOAD_S", 0.0)
    really = inventory_feed.credentials

    def late(*arguments: Any) -> Any:
        world.services.redis.zadd(world.services.keys.inflight, {str(ids[0]): 1})
        world.board.reap("")
        return really(*arguments)

    monkeypatch.setattr(inventory_feed, "credentials", late)
    world.claim()
    world.poller.poll("t", ids)
    assert world.collector.addresses == ["127.0.0.2"]
    assert world.sound(ids)


def _refuse(*_: Any) -> None:
    raise errors.StoreUnavailable("down")


def _with_credentials(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Add two targets with a credential each: 1 and 2."""
    monkeypatch.setattr(Fake, "credentials", (Community,))
    world.poller = Poller(world.services, "worker@test")
    ids = world.add("answer", "answer")
    for number, name in enumerate(("one", "two")):
        secret = Community(community=f"{name}-secret")
        sealed = world.services.keyring.seal(secret.to_json(), name, secret.kind)
        credential_rows.add(world.services.engine, name, Community.kind, sealed)
        with world.services.engine.begin() as conn:
            one = sa.update(targets_table).where(targets_table.c.id == ids[number])
            conn.execute(one.values(credential_id=number + 1))
    return ids


def _waits_for_sql(world: World, target_id: int) -> bool:
    """The target is due in some seconds, without a failure."""
    later = world.due_ms(target_id) > world.board.now_ms() + 1_000
    return (
        later
        and world.in_flight() == 0
        and world.board.statuses([target_id])[target_id].failures == 0
    )


def _until(condition: Any, within_s: float = 5.0) -> None:
    done = threading.Event()
    for _ in range(int(within_s / 0.02)):
        if condition():
            return
        done.wait(0.02)
    pytest.fail("it did not come true")


def test_polls_are_counted_by_collector_with_their_codes_and_times(world: World) -> None:
    """The counters are written with the moves of a round, and a refused batch is counted, too."""
    ids = world.add("answer", "dead")
    world.claim()
    world.poller.poll("t", ids)
    world.poller.poll("t", ids)  # delivered twice
    totals = overview_reader.read(world.services.redis, world.services.keys).by_collector
    counted = totals["fake"]
    assert counted.outcomes == {"ok": 1, "failed": 1}
    assert totals["unknown"].outcomes == {"stale": 2}
    assert counted.codes == {"timeout": 1}
    assert {time: values.buckets.total() for time, values in counted.times.items()} == {
        Time.DURATION: 2,
        Time.QUEUE_WAIT: 2,
        Time.LATENESS: 2,
    }
