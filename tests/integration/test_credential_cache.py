"""A worker caches decrypted credentials, and uses them while SQL is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.collectors.credentials import Community
from poller.db import migrate
from poller.db.inventory import credential_rows, inventory_feed
from poller.settings import Settings
from poller.workers.batch.credential_cache import CredentialCache
from tests.conftest import wait_until


@pytest.fixture
def services(home: Path) -> Iterator[Services]:
    made = Services(Settings())
    migrate.upgrade(made.engine)
    yield made
    made.engine.dispose()


def stored(services: Services, name: str) -> int:
    secret = Community(community="s3cret-community")
    credential_rows.add(
        services.engine,
        name,
        secret.kind,
        services.keyring.seal(secret.to_json(), name, secret.kind),
    )
    with services.engine.connect() as conn:
        return int(conn.exec_driver_sql("SELECT max(id) FROM credentials").scalar_one())


def cache_of(services: Services, **more: float) -> CredentialCache:
    services.settings = Settings(**{"secret_cache_s": 60.0, **more})  # type: ignore[arg-type]
    return CredentialCache(services)


def away(*_: Any) -> None:
    raise errors.StoreUnavailable("away")


def age(cache: CredentialCache, credential_id: int, seconds: float) -> None:
    """Make a cached credential older."""
    entry = cache._entries[credential_id]
    entry.read_mono -= seconds
    entry.refresh_mono -= seconds


def test_cached_credentials_serve_while_the_database_is_away(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expired entry serves too; a credential that was never read is an error."""
    known, unknown = stored(services, "one"), stored(services, "two")
    cache = cache_of(services, secret_cache_s=0.0)
    opened = cache.get([known])

    monkeypatch.setattr(inventory_feed, "credentials", away)
    assert cache.get([known]) == opened
    assert cache.get([known], changed=[known]) == opened
    both = cache.get([known, unknown])
    assert both[known] == opened[known]
    assert isinstance(both[unknown], errors.StoreUnavailable)


def test_not_every_batch_asks_a_database_that_is_away(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh that failed is repeated after one lifetime."""
    one, asked = stored(services, "one"), []

    def count(*_: Any) -> None:
        asked.append(1)
        away()

    cache = cache_of(services)
    opened = cache.get([one])
    monkeypatch.setattr(inventory_feed, "credentials", count)
    age(cache, one, 61)
    assert cache.get([one]) == opened
    wait_until(lambda: not cache._is_refreshing, "the refresh")
    assert [cache.get([one]) for _ in range(3)] == [opened] * 3
    assert len(asked) == 1


def test_a_credential_that_is_due_to_be_read_again_is_read_beside_the_poll(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll gets what is known at once, however long the database takes; one read serves all."""
    one, asked = stored(services, "one"), []
    answer = threading.Event()
    read = inventory_feed.credentials

    def slow(*arguments: Any) -> Any:
        asked.append(1)
        assert answer.wait(30)
        return read(*arguments)

    cache = cache_of(services)
    before = cache.get([one])[one]
    fresh = Community(community="another-secret")
    sealed = services.keyring.seal(fresh.to_json(), "one", fresh.kind)
    credential_rows.rotate(services.engine, "one", fresh.kind, sealed)
    monkeypatch.setattr(inventory_feed, "credentials", slow)
    age(cache, one, 61)
    assert [cache.get([one])[one] for _ in range(3)] == [before] * 3
    answer.set()
    wait_until(lambda: cache.get([one])[one] == fresh, "the refresh")
    assert len(asked) == 1


def test_a_refresh_that_is_older_than_a_rotation_changes_nothing(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database answered the refresh before the rotation, and the answer comes after it."""
    one = stored(services, "one")
    has_read, arrives = threading.Event(), threading.Event()
    read = inventory_feed.credentials

    def slow(*arguments: Any) -> Any:
        found = read(*arguments)
        if not has_read.is_set():
            has_read.set()
            assert arrives.wait(30)
        return found

    cache = cache_of(services)
    cache.get([one])
    monkeypatch.setattr(inventory_feed, "credentials", slow)
    age(cache, one, 61)
    cache.get([one])
    assert has_read.wait(30)
    fresh = Community(community="another-secret")
    sealed = services.keyring.seal(fresh.to_json(), "one", fresh.kind)
    credential_rows.rotate(services.engine, "one", fresh.kind, sealed)
    assert cache.get([one], changed=[one])[one] == fresh
    arrives.set()
    wait_until(lambda: not cache._is_refreshing, "the refresh")
    assert cache.get([one])[one] == fresh


def test_a_credential_is_not_used_for_ever(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database is away a credential serves for `stale_limit_s` after it was read."""
    one = stored(services, "one")
    cache = cache_of(services, stale_limit_s=3600.0)
    opened = cache.get([one])
    monkeypatch.setattr(inventory_feed, "credentials", away)
    age(cache, one, 3590)
    assert cache.get([one]) == opened
    age(cache, one, 20)
    assert isinstance(cache.get([one])[one], errors.StoreUnavailable)


def test_a_removed_credential_is_refused_after_its_refresh(services: Services) -> None:
    one = stored(services, "one")
    cache = cache_of(services)
    cache.get([one])
    credential_rows.remove(services.engine, "one")
    age(cache, one, 61)
    cache.get([one])
    wait_until(lambda: isinstance(cache.get([one])[one], errors.NotFound), "the refresh")


def test_the_least_recently_used_credential_gives_way(services: Services) -> None:
    """The cache is bounded, and counts what it had and what had to be read."""
    ids = [stored(services, f"c{number}") for number in range(3)]
    cache = cache_of(services)
    cache._limit = 2
    cache.get(ids[:2])
    cache.get(ids[:1])
    cache.get(ids[2:])
    assert list(cache._entries) == [ids[0], ids[2]]
    assert (cache.hits, cache.misses) == (1, 3)
    assert len(cache.get(ids)) == 3
    assert (cache.hits, cache.misses) == (3, 4)
    assert len(cache._entries) == 2


def test_a_rotated_credential_is_read_at_once(services: Services) -> None:
    """A rotation changes the version of its targets."""
    one = stored(services, "one")
    cache = cache_of(services)
    before = cache.get([one])[one]
    fresh = Community(community="another-secret")
    credential_rows.rotate(
        services.engine,
        "one",
        fresh.kind,
        services.keyring.seal(fresh.to_json(), "one", fresh.kind),
    )
    assert cache.get([one])[one] == before
    assert cache.get([one], changed=[one])[one] == cache.get([one])[one] == fresh
