"""Readings and runs carry the instants of their poll, while SQL and Redis are slow at random.

The witness is the device: the rate of its own sysUpTime is 1 if the readings are stamped with the
instants at which the answers arrived.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import redis
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.collectors.credentials import Community
from poller.db.history import polls_of_span
from poller.db.inventory import credential_rows, devices, inventory_feed
from poller.db.record import run_pages, stored_readings
from poller.db.tables import targets as targets_table
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.sim import fleet
from poller.sim.fleet import Protocol, SimDevice
from poller.sim.sim_process import simulated
from poller.workers.batch.worker_poller import Poller
from tests.conftest import wait_until
from tests.integration.worlds import ROOM, World

QUEUE = "poll.snmp"
BATCH = 4
ROUNDS = 3
#: One percent of the interval is the room for a busy machine.
INTERVAL_S = 5.0
SLOW_SQL_S = 1.0
SLOW_REDIS_S = 0.15


class Stamp(NamedTuple):
    """One stored reading of sysUpTime."""

    at_ms: int
    uptime_ms: float


@pytest.fixture(scope="module")
def agents() -> Iterator[list[tuple[SimDevice, int]]]:
    """Eight simulated SNMP devices and their ports."""
    pool = fleet.devices(100, faulty_share=0)
    chosen = [device for device in pool if device.protocol is Protocol.SNMP][: 2 * BATCH]
    with simulated(chosen) as ports:
        yield [(device, ports.snmp) for device in chosen]


@contextmanager
def slowed(
    services: Services, monkeypatch: pytest.MonkeyPatch, dice: random.Random
) -> Iterator[None]:
    """Delay SQL statements, and requests to Redis and their replies, at random."""

    def delay_sql(*_: Any) -> None:
        time.sleep(dice.choice((0.0, dice.random() * SLOW_SQL_S)))

    def delayed(call: Any) -> Any:
        def late(*args: Any, **kwargs: Any) -> Any:
            time.sleep(dice.choice((0.0, dice.random() * SLOW_REDIS_S)))
            return call(*args, **kwargs)

        return late

    connection = redis.Connection
    with monkeypatch.context() as patch:
        sa.event.listen(services.engine, "before_cursor_execute", delay_sql)
        patch.setattr(connection, "send_packed_command", delayed(connection.send_packed_command))
        patch.setattr(connection, "read_response", delayed(connection.read_response))
        try:
            yield
        finally:
            sa.event.remove(services.engine, "before_cursor_execute", delay_sql)


class Worker:
    """A worker that polls the simulated devices in batches, side by side."""

    def __init__(self, services: Services, agents: Sequence[tuple[SimDevice, int]]) -> None:
        self.services = services
        self.poller = Poller(services, "worker@test")
        secret = Community(community=agents[0][0].community)
        sealed = services.keyring.seal(secret.to_json(), "demo", secret.kind)
        credential_rows.add(services.engine, "demo", secret.kind, sealed)
        for device, port in agents:
            target = TargetDraft(
                "system",
                "snmp",
                {"port": port, "modules": ["system"]},
                credential="demo",
                interval_ms=round(INTERVAL_S * 1000),
                timeout_ms=2_000,
            )
            devices.add(services.engine, DeviceDraft(device.name, device.address), [target])
        with services.engine.connect() as conn:
            found = conn.execute(sa.select(targets_table.c.id).order_by(targets_table.c.id))
            self.ids = list(found.scalars())
        self._rounds = 0

    def poll_all(self) -> None:
        """Poll each target once. Each was edited before, so the worker has to read it."""
        self._rounds += 1
        board = self.services.board
        interval_ms = round(INTERVAL_S * 1000)
        specs = [TargetSpec(i, self._rounds, QUEUE, interval_ms, 2_000) for i in self.ids]
        board.place("", [(spec, 1) for spec in specs], self._rounds)
        board.demand(self.ids)
        token = f"1.{board.now_ms():x}.{self._rounds:x}"
        published = self._published if self._rounds > 1 else ""
        board.claim("", token, published, {QUEUE: 100}, ROOM)
        self._published = token
        batches = [self.ids[at : at + BATCH] for at in range(0, len(self.ids), BATCH)]
        with ThreadPoolExecutor(len(batches)) as pool:
            list(pool.map(lambda ids: self.poller.poll(token, ids), batches))

    def stamps(self) -> dict[int, list[Stamp]]:
        stored = polls_of_span.newest(self.services.engine, self.ids, ROUNDS)
        found = {}
        for target_id, polls in stored.items():
            found[target_id] = [Stamp(poll.at_ms, _uptime_ms(poll.readings)) for poll in polls]
        return found


def _uptime_ms(readings: Any) -> float:
    return next(10 * reading.value for reading in readings if reading.name == "sysUpTime")


def test_readings_have_the_instant_at_which_the_device_answered(
    services: Services, agents: list[tuple[SimDevice, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rate of sysUpTime is within 1 % of 1, however slow the stores are."""
    worker = Worker(services, agents)
    worker.poll_all()  # the first poll of a worker also loads modules
    began = time.monotonic()
    with slowed(services, monkeypatch, random.Random(7)):
        for number in range(ROUNDS):
            time.sleep(max(0.0, began + number * INTERVAL_S - time.monotonic()))
            worker.poll_all()
    wait_until(lambda: worker.poller.writers.waiting == 0, "the spool to be written")

    rates = []
    for stamps in worker.stamps().values():
        for before, after in pairwise(stamps):
            elapsed_ms = after.at_ms - before.at_ms
            rates.append((after.uptime_ms - before.uptime_ms) / elapsed_ms)
    assert len(rates) == (ROUNDS - 1) * len(worker.ids)
    assert [rate for rate in rates if not 0.99 <= rate <= 1.01] == []


def test_readings_before_a_timeout_have_the_instant_of_their_answer(world: World) -> None:
    """The device answered, and then stopped answering: the run ends later than its readings."""
    ids = world.add("hang", timeout_ms=700)
    world.claim()
    world.poller.poll("t", ids)
    [run] = [row.run for row in run_pages.recent(world.services.engine)]
    stored = stored_readings.latest(world.services.engine, ids)[ids[0]]
    assert run.outcome is Result.PARTIAL
    assert 0 <= stored.at_ms - run.started_ms < 350
    assert run.finished_ms - run.started_ms >= 690


def test_a_run_starts_when_its_targets_are_loaded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow database makes the poll late; it makes neither the queue nor the device slow."""
    ids = world.add("answer")
    read = inventory_feed.poll_targets

    def late(*arguments: Any) -> Any:
        time.sleep(0.8)
        return read(*arguments)

    monkeypatch.setattr(inventory_feed, "poll_targets", late)
    world.board.demand(ids)
    token = f"1.{world.board.now_ms():x}.ab"
    world.claim(token)
    before_ms = world.board.now_ms()
    world.poller.poll(token, ids)
    after_ms = world.board.now_ms()
    [run] = [row.run for row in run_pages.recent(world.services.engine)]
    assert before_ms + 790 <= run.started_ms <= run.finished_ms <= after_ms
    assert run.queue_ms < 500
    assert run.collect_ms < 500
