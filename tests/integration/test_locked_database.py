"""PostgreSQL with a locked inventory, as by a migration: known targets are polled all the same."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
import redis
import sqlalchemy as sa

from poller import errors
from poller.bootstrap import Services
from poller.collectors import api
from poller.collectors.credentials import Community
from poller.collectors.registry import Registry
from poller.db import migrate
from poller.db.inventory import credential_rows, devices
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.settings import Settings
from tests.conftest import wait_until
from tests.integration.worlds import QUEUE, Fake, World

#: No step of these tests takes this long, unless it waits for the lock.
WITHIN_S = 20.0
LIFETIME_S = 0.05


class Secretive(Fake):
    """A collector that records the secrets it polls with."""

    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Community,)

    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[str] = []

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        assert isinstance(poll.credential, Community)
        self.secrets.append(poll.credential.community.get_secret_value())
        async for item in super().collect(poll):
            yield item


@pytest.fixture
def world(
    home: Path,
    valkey_url: str,
    redis_client: redis.Redis,
    fresh_postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """A worker on PostgreSQL whose credentials are read again after a moment."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_DATABASE_URL", fresh_postgres_url)
    monkeypatch.setenv("POLLER_SECRET_CACHE_S", str(LIFETIME_S))
    monkeypatch.setenv("POLLER_RETRY_TRIES", "0")
    services = Services(Settings())
    migrate.upgrade(services.engine)
    collector = Secretive()
    services.registry = Registry({"fake": collector}, (), {"fake": "tests"})  # type: ignore[misc]
    yield World(services, collector)
    services.engine.dispose()


def with_credential(world: World, deeds: int = 3) -> list[int]:
    """Add targets that share one credential, and poll each once."""
    services = world.services
    sealed = services.keyring.seal(
        Community(community="first-secret").to_json(), "one", Community.kind
    )
    credential_rows.add(services.engine, "one", Community.kind, sealed)
    ids = world.add(*["answer"] * deeds, credential="one")
    world.poll_now(ids, "before")
    assert len(world.collector.addresses) == deeds
    world.collector.addresses.clear()
    time.sleep(2 * LIFETIME_S)  # the credential is due to be read again
    return ids


def while_locked(world: World, step: Callable[[], None]) -> None:
    """Run a step that has to end although the tables of the inventory are locked."""
    other = sa.create_engine(world.services.engine.url)
    try:
        with ThreadPoolExecutor(1) as pool, other.connect() as conn:
            conn.execute(sa.text("LOCK TABLE credentials, targets IN ACCESS EXCLUSIVE MODE"))
            pool.submit(step).result(WITHIN_S)
    finally:
        other.dispose()
    reads = world.poller._parts.reads
    wait_until(lambda: not reads.overdue, "the end of the queries that waited for the lock")


def edit(world: World, ids: list[int], version: int) -> None:
    """Announce new versions on the board, as the leader does after an edit."""
    specs = [(TargetSpec(i, version, QUEUE, 60_000, 2_000), 1) for i in ids]
    world.board.place("", specs, version)


def test_known_targets_are_polled_while_the_inventory_is_locked(world: World) -> None:
    """Their credential is used beyond `secret_cache_s`, and read again beside the poll."""
    ids = with_credential(world)

    def poll_often() -> None:
        for number in range(3):
            world.poll_now(ids, f"t{number}")
            time.sleep(2 * LIFETIME_S)

    while_locked(world, poll_often)
    assert len(world.collector.addresses) == 3 * len(ids)
    assert world.sound(ids)


def test_an_unknown_target_does_not_hold_up_its_batch(world: World) -> None:
    """The unknown target is due again in some seconds; the others are polled now."""
    ids = with_credential(world)
    del world.poller._parts.targets._cached[ids[0]]
    while_locked(world, lambda: world.poll_now(ids, "t"))
    assert sorted(world.collector.addresses) == ["127.0.0.2", "127.0.0.3"]
    assert world.in_flight() == 0
    assert world.sound(ids)
    targets = world.poller._parts.targets
    wait_until(lambda: targets.count_uncached(ids) == 0, "the use of the late answer")


def test_a_batch_of_unknown_targets_is_handed_back_while_the_inventory_is_locked(
    world: World,
) -> None:
    """No thread of the worker waits for the lock, and the next batch does not wait at all."""
    ids = with_credential(world)
    world.poller._parts.targets._cached.clear()

    def poll_twice() -> None:
        for token in ("t", "u"):
            with pytest.raises(errors.StoreUnavailable):
                world.poll_now(ids, token)

    while_locked(world, poll_twice)
    assert world.in_flight() == 0
    world.poll_now(ids, "after")
    assert len(world.collector.addresses) == len(ids)


def test_an_edit_is_seen_at_the_first_poll_after_the_lock(world: World) -> None:
    """Meanwhile the target is polled as it was."""
    ids = with_credential(world)
    devices.edit(world.services.engine, "d0", DeviceDraft("d0", "127.0.0.99"))
    edit(world, ids, 9)
    while_locked(world, lambda: world.poll_now(ids, "t"))
    assert sorted(world.collector.addresses) == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    world.poll_now(ids, "u")
    assert "127.0.0.99" in world.collector.addresses


def test_a_rotated_credential_is_used_at_the_first_poll_after_the_lock(world: World) -> None:
    ids = with_credential(world)
    services = world.services
    sealed = services.keyring.seal(
        Community(community="second-secret").to_json(), "one", Community.kind
    )
    credential_rows.rotate(services.engine, "one", Community.kind, sealed)
    edit(world, ids, 9)
    while_locked(world, lambda: world.poll_now(ids, "t"))
    world.poll_now(ids, "u")
    assert isinstance(world.collector, Secretive)
    assert world.collector.secrets[-3:] == ["second-secret"] * 3
