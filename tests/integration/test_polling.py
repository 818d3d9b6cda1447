"""One batch through a worker: real Redis, real SQL, and collectors that behave in every way they can."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
import sqlalchemy as sa

from poller import errors
from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.registry import Registry
from poller.db import devices, migrate, readings, runs
from poller.db.tables import targets as targets_table
from poller.domain.draft import DeviceDraft, TargetDraft
from poller.domain.outcome import Result
from poller.domain.overview import State
from poller.domain.target import TargetSpec
from poller.settings import Settings
from poller.state.board import Room
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

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        self.addresses.append(poll.address)
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

    def add(self, *deeds: str, interval_ms: int = 60_000, timeout_ms: int = 2_000) -> list[int]:
        for number, deed in enumerate(deeds):
            target = TargetDraft("fake", "fake", {"do": deed}, interval_ms=interval_ms, timeout_ms=timeout_ms)
            devices.add(self.services.engine, DeviceDraft(f"d{number}", f"127.0.0.{number + 1}"), [target])
        with self.services.engine.connect() as conn:
            ids = list(conn.execute(sa.select(targets_table.c.id).order_by(targets_table.c.id)).scalars())
        specs = [(TargetSpec(i, 1, QUEUE, interval_ms, timeout_ms), 1) for i in ids]
        self.board.place("", specs, 1)
        return ids

    def claim(self, token: str = "t") -> None:
        self.board.claim("", token, self.published, {QUEUE: 100}, ROOM)
        self.published = token

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
    assert world.in_flight() == 1
    assert thread.is_alive()
    world.poller.drain()
    thread.join(5)
    assert not thread.is_alive()


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
    """The rows are lost and said to be; the target goes on."""
    ids = world.add("answer")

    def refuse(*_: Any) -> None:
        raise errors.StoreUnavailable("down")

    monkeypatch.setattr(runs, "write", refuse)
    world.claim()
    world.poller.poll("t", ids)
    assert world.outcomes() == {}
    assert world.in_flight() == 0
    assert world.sound(ids)


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


def _until(condition: Any, within_s: float = 5.0) -> None:
    done = threading.Event()
    for _ in range(int(within_s / 0.02)):
        if condition():
            return
        done.wait(0.02)
    pytest.fail("it did not come true")
