"""A worker caches decrypted credentials, and uses them while SQL is away."""

from __future__ import annotations

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
from poller.workers.batch.credential_cache import CredentialCache, _Entry


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


def test_cached_credentials_serve_while_the_database_is_away(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expired entry serves too; a credential that was never read is an error."""
    known, unknown = stored(services, "one"), stored(services, "two")
    cache = CredentialCache(services, lifetime_s=0.0)
    opened = cache.get([known])

    def away(*_: Any) -> None:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(inventory_feed, "credentials", away)
    assert cache.get([known]) == opened
    assert cache.get([known], changed=[known]) == opened
    both = cache.get([known, unknown])
    assert both[known] == opened[known]
    assert isinstance(both[unknown], errors.StoreUnavailable)


def test_not_every_batch_asks_a_database_that_is_away(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read of a silent database costs a time-out."""
    one, asked = stored(services, "one"), []

    def away(*_: Any) -> None:
        asked.append(1)
        raise errors.StoreUnavailable("away")

    cache = CredentialCache(services, lifetime_s=60.0)
    opened = cache.get([one])
    monkeypatch.setattr(inventory_feed, "credentials", away)
    cache._entries[one] = _Entry(0.0, opened[one])  # as if a minute had passed
    assert [cache.get([one]) for _ in range(3)] == [opened] * 3
    assert len(asked) == 1


def test_a_rotated_credential_is_read_at_once(services: Services) -> None:
    """A rotation changes the version of its targets."""
    one = stored(services, "one")
    cache = CredentialCache(services, lifetime_s=60.0)
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
