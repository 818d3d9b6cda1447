"""Ends of series through real workers, real Redis and real SQL, as a sink that takes ends gets
them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.registry import Registry
from poller.db import migrate
from poller.db.inventory import devices, inventory_feed
from poller.db.tables import series_sets
from poller.domain.inventory.draft import DeviceDraft
from poller.metering import process_metrics
from poller.settings import Settings
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.made_sink import MadeSink
from poller.sinks.sql import SqlSink
from poller.state.board.board_values import Removal
from poller.state.board.breakers import Breakers
from poller.state.board.record_formats import Opening
from poller.workers.batch.worker_poller import Poller
from tests.integration.worlds import Fake, World

#: Later than any target of these tests is overdue.
LATER_S = 600.0


class Scripted(Fake):
    """A device with these series, unless it is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.names = ["rx", "tx"]
        self.is_dead = False
        self.is_cut_short = False

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if self.is_dead:
            raise api.DeviceTimeout("no answer")
        for name in self.names:
            yield api.Reading(name, 1.0, {"if": "1"})
        if self.is_cut_short:
            raise api.DeviceTimeout("no more answers")


class Recorder:
    """A sink that takes ends and keeps everything."""

    name: ClassVar[str] = "recorder"
    api_version: ClassVar[int] = API_VERSION
    takes_ends: ClassVar[bool] = True

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def write(self, samples: Sequence[Sample]) -> None:
        self.samples += samples

    def close(self) -> None: ...


#: A device, what happened ("sent" or "ended"), and the names of the series.
Told = tuple[str, str, str]


class Ends:
    """Two workers with the sql sink and the recorder."""

    def __init__(self, world: World, collector: Scripted) -> None:
        self.world = world
        self.device = collector
        self.engine = world.services.engine
        self.recorder = Recorder()
        self._read = 0
        self._polls = 0
        self._version = 1
        self.use_sinks(sql=True)

    def use_sinks(self, *, sql: bool) -> None:
        services = self.world.services
        stores = Stores(services.engine, services.redis, services.settings)
        made = [MadeSink("recorder", "recorder", self.recorder)]
        if sql:
            made.append(MadeSink("sql", "sql", SqlSink(stores)))
        services.sinks = made  # type: ignore[misc]
        self.one = Poller(services, "one@test")
        self.two = Poller(services, "two@test")

    def poll(self, worker: Poller, *ids: int) -> list[int]:
        """Poll targets now. Returns those to be retried."""
        self._polls += 1
        token = f"p{self._polls}"
        self.world.board.demand(ids)
        self.world.claim(token)
        return worker.poll(token, ids)

    def sweep(self, worker: Poller) -> None:
        """Look at the targets of a worker as if it were much later."""
        assert worker.ender is not None
        worker.ender.sweep.sweep(time.monotonic() + LATER_S)

    def sync(self) -> None:
        """Bring the board up to the inventory, as the leader does."""
        changes = inventory_feed.changes_since(self.engine, self._version)
        self._version = changes.version
        placed: list[Any] = [(spec, 1) for spec in changes.specs]
        removed = [Removal(target_id) for target_id in changes.removed]
        self.world.board.place("", [*placed, *removed], changes.version)

    def told(self) -> list[Told]:
        """Return what the sink was told since the last call."""
        news = self.recorder.samples[self._read :]
        self._read = len(self.recorder.samples)
        return [
            (
                sample.target.device,
                "ended" if sample.is_end else "sent",
                " ".join(series.name for series in sample.readings.series.series),
            )
            for sample in news
        ]

    def shape_on_board(self, target_id: int) -> int:
        return self.world.board.statuses([target_id])[target_id].shape


@pytest.fixture
def ends(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ends]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = Services(Settings(retry_tries=0))
    migrate.upgrade(services.engine)
    collector = Scripted()
    services.registry = Registry({"fake": collector}, (), {"fake": "tests"})  # type: ignore[misc]
    made = Ends(World(services, collector), collector)
    yield made
    for worker in (made.one, made.two):
        worker.stop_retrying()
    services.engine.dispose()


@pytest.fixture
def target(ends: Ends) -> int:
    """One target, polled by the first worker."""
    [target_id] = ends.world.add("answer")
    ends.sync()
    ends.poll(ends.one, target_id)
    assert ends.told() == [("d0", "sent", "rx tx")]
    return target_id


def unknown_ends() -> float:
    return sum(value for _, _, value in process_metrics.unknown_ends.samples())


@pytest.mark.parametrize("worker", ["one", "two"])
def test_a_series_that_vanishes_ends_with_the_next_poll(
    ends: Ends, target: int, worker: str
) -> None:
    """Whichever worker polls next; when the series is back, nothing ends."""
    polling = getattr(ends, worker)
    ends.device.names = ["rx", "errors"]
    ends.poll(polling, target)
    assert ends.told() == [("d0", "ended", "tx"), ("d0", "sent", "rx errors")]
    ended, sent = ends.recorder.samples[-2:]
    assert ended.at_ms == sent.at_ms > ends.recorder.samples[0].at_ms

    ends.device.names = ["rx", "errors", "tx"]
    ends.poll(ends.one, target)
    assert ends.told() == [("d0", "sent", "rx errors tx")]


def test_a_poll_without_a_part_of_its_series_ends_that_part(ends: Ends, target: int) -> None:
    """A table that failed is missing from the poll, as from a scrape."""
    ends.device.names = ["rx"]
    ends.device.is_cut_short = True
    ends.poll(ends.two, target)
    assert ends.told() == [("d0", "ended", "tx"), ("d0", "sent", "rx")]


@pytest.mark.parametrize("worker", ["one", "two"])
def test_a_target_that_fails_ends_once_and_begins_again(
    ends: Ends, target: int, worker: str
) -> None:
    """Its series end with the first failure that is not retried; then the board has no shape."""
    polling = getattr(ends, worker)
    ends.device.is_dead = True
    ends.poll(polling, target)
    assert ends.told() == [("d0", "ended", "rx tx")]
    assert ends.shape_on_board(target) == 0
    ends.poll(ends.one, target)
    ends.poll(ends.two, target)
    assert ends.told() == []

    ends.device.is_dead = False
    ends.poll(ends.two, target)
    assert ends.told() == [("d0", "sent", "rx tx")]
    assert ends.shape_on_board(target) != 0
    for each in (ends.one, ends.two):
        ends.sweep(each)
    assert ends.told() == []


def test_a_poll_that_is_retried_ends_nothing(ends: Ends, target: int) -> None:
    """The last attempt decides."""
    ends.world.services.settings = Settings(retry_tries=1)
    ends.use_sinks(sql=True)
    ends.device.is_dead = True
    assert ends.poll(ends.two, target) == [target]
    assert ends.told() == []
    assert ends.two.poll("p2", [target], 1) == []
    assert ends.told() == [("d0", "ended", "rx tx")]


@pytest.mark.parametrize("deed", ["disable", "remove"])
def test_a_target_that_is_polled_no_more_ends(ends: Ends, target: int, deed: str) -> None:
    """The worker that polled it last tells, once and now."""
    if deed == "disable":
        devices.edit(ends.engine, "d0", DeviceDraft("d0", enabled=False))
    else:
        devices.remove(ends.engine, ["d0"])
    ends.sync()
    before_ms = ends.world.board.now_ms()
    for worker in (ends.one, ends.two, ends.one):
        ends.sweep(worker)
    assert ends.told() == [("d0", "ended", "rx tx")]
    assert ends.recorder.samples[-1].at_ms >= before_ms > ends.recorder.samples[0].at_ms


def test_a_target_that_is_only_late_does_not_end(ends: Ends, target: int) -> None:
    """The worker asks again later."""
    ends.sweep(ends.one)
    assert ends.told() == []
    devices.remove(ends.engine, ["d0"])
    ends.sync()
    ends.sweep(ends.one)  # it was looked at a moment ago
    assert ends.told() == []
    assert ends.one.ender is not None
    ends.one.ender.sweep.sweep(time.monotonic() + 2 * LATER_S)
    assert ends.told() == [("d0", "ended", "rx tx")]


def test_a_target_that_is_left_alone_ends(ends: Ends, target: int) -> None:
    """Its site is dark, or an operator opened its breaker; it begins again when it is polled."""
    board = ends.world.board
    until_ms = board.now_ms() + 3_600_000
    breakers = Breakers(board)
    assert breakers.open([target], Opening(until_ms, 1, "me")) == {target: "opened"}
    ends.sweep(ends.one)
    assert ends.told() == [("d0", "ended", "rx tx")]

    ends.poll(ends.one, target)
    assert board.withhold("", 7, [target]) == 1
    ends.sweep(ends.one)
    assert ends.told() == [("d0", "sent", "rx tx"), ("d0", "ended", "rx tx")]


def test_a_renamed_device_ends_under_its_old_name(ends: Ends, target: int) -> None:
    """A moment before the readings under the new name."""
    devices.edit(ends.engine, "d0", DeviceDraft("new"))
    ends.sync()
    ends.poll(ends.one, target)
    assert ends.told() == [("d0", "ended", "rx tx"), ("new", "sent", "rx tx")]
    ended, sent = ends.recorder.samples[-2:]
    assert ended.at_ms < sent.at_ms


def test_a_renamed_device_that_another_worker_polls_ends_under_its_old_name(
    ends: Ends, target: int
) -> None:
    """The worker that polled it under that name tells; an edit without new labels ends nothing."""
    devices.edit(ends.engine, "d0", DeviceDraft("new"))
    ends.sync()
    ends.poll(ends.two, target)
    ends.sweep(ends.one)
    assert ends.told() == [("new", "sent", "rx tx"), ("d0", "ended", "rx tx")]

    devices.edit(ends.engine, "new", DeviceDraft("new", enabled=True))
    ends.sync()
    ends.poll(ends.one, target)
    ends.sweep(ends.two)
    assert ends.told() == [("new", "sent", "rx tx")]


def test_a_target_that_moved_is_left_to_its_new_worker(ends: Ends, target: int) -> None:
    """The old one forgets it."""
    ends.poll(ends.two, target)
    assert ends.one.ender is not None
    assert len(ends.one.ender.sent) == 1
    ends.sweep(ends.one)
    assert ends.told() == [("d0", "sent", "rx tx")]
    assert len(ends.one.ender.sent) == 0


def test_without_stored_shapes_the_sender_ends_what_fails_elsewhere(ends: Ends) -> None:
    """The shape stays on the board until the worker that knows its series has looked."""
    ends.use_sinks(sql=False)
    [target] = ends.world.add("answer")
    ends.poll(ends.one, target)
    ends.device.is_dead = True
    before = unknown_ends()
    ends.poll(ends.two, target)
    ends.poll(ends.two, target)
    assert unknown_ends() == before + 1
    assert ends.told() == [("d0", "sent", "rx tx")]
    failed_ms = ends.world.board.statuses([target])[target].finished_ms

    ends.sweep(ends.one)
    assert ends.told() == [("d0", "ended", "rx tx")]
    assert ends.recorder.samples[-1].at_ms == failed_ms


def test_ends_that_no_worker_knows_are_counted(ends: Ends, target: int) -> None:
    """The store ends such series by itself; polling goes on."""
    with ends.engine.begin() as conn:
        conn.execute(sa.delete(series_sets))
    ends.device.names = ["rx"]
    before = unknown_ends()
    ends.poll(ends.two, target)
    assert ends.told() == [("d0", "sent", "rx")]
    assert unknown_ends() == before + 1


def test_a_flushed_redis_ends_nothing_that_is_polled(ends: Ends, target: int) -> None:
    """No series ends while the board is built anew, and the worker remembers what it sent."""
    ends.world.services.redis.flushdb()
    ends.world.published = ""
    ends.sweep(ends.one)
    assert ends.told() == []
    ends.world.add()
    ends.device.names = ["rx"]
    ends.poll(ends.one, target)
    assert ends.told() == [("d0", "ended", "tx"), ("d0", "sent", "rx")]


def test_a_status_of_an_older_release_has_no_shape(ends: Ends, target: int) -> None:
    """An older worker polled since: what it sent is not known, so nothing ends."""
    keys, client = ends.world.services.keys, ends.world.services.redis
    status = ends.world.board.statuses([target])[target]
    older = status._replace(shape=0, finished_ms=status.finished_ms + 1)
    client.hset(keys.status, str(target), older.pack())
    ends.device.names = ["rx"]
    ends.poll(ends.one, target)
    assert ends.told() == [("d0", "sent", "rx")]
    ends.device.names = []
    ends.poll(ends.one, target)
    assert ends.told() == [("d0", "ended", "rx")]


def test_without_a_sink_that_takes_ends_a_status_has_no_shape(world: World) -> None:
    """It costs nothing: no register, no thread, no bytes on the board."""
    [target] = world.add("answer")
    world.poll_now([target], "t")
    assert world.poller.ender is None
    text = world.services.redis.hget(world.services.keys.status, str(target))
    assert text is not None
    assert text.startswith("o[")
    assert text.count(",") == 5
