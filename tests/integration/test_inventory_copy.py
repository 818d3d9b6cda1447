"""While SQL is away a worker polls targets that it does not know from its copy of the inventory."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from poller import errors
from poller.bootstrap import Services
from poller.collectors.credentials import Community
from poller.db.inventory import credential_rows, devices, inventory_feed, targets
from poller.db.tables import inventory
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.workers.batch.credential_cache import CredentialCache
from poller.workers.batch.target_cache import TargetCache
from poller.workers.inventory.inventory_copy import InventoryCopy
from tests.integration.worlds import World


def copied(services: Services) -> InventoryCopy:
    """A copy of the inventory as it is now."""
    copy = InventoryCopy(services, threading.Event())
    copy.refresh()
    return copy


def sealed(services: Services, community: str) -> str:
    secret = Community(community=community)
    return services.keyring.seal(secret.to_json(), "one", secret.kind)


def add_credential(services: Services) -> None:
    credential_rows.add(services.engine, "one", Community.kind, sealed(services, "first-secret"))


def stop_sql(patch: pytest.MonkeyPatch) -> None:
    """Let SQL not answer the questions of a poll any more."""

    def away(*_: Any) -> None:
        raise errors.StoreUnavailable("away")

    patch.setattr(inventory_feed, "poll_targets", away)
    patch.setattr(inventory_feed, "credentials", away)


def test_a_poll_of_unknown_targets_needs_no_sql(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that never polled these targets polls them, and hands none back."""
    ids = world.add("ok", "ok")
    world.poller._parts.copy.refresh()
    stop_sql(monkeypatch)
    world.poll_now(ids, "t")
    assert world.outcomes() == dict.fromkeys(ids, (Result.OK, ""))
    assert world.in_flight() == 0


def test_a_target_of_the_copy_is_read_again_once_it_was_edited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy serves for an edited target while SQL is away, and no longer."""
    [one] = world.add("ok")
    services = world.services
    cache = TargetCache(services.engine, services.registry, 10, copy=copied(services))
    with monkeypatch.context() as patch:
        stop_sql(patch)
        old = cache.load({one: 5}, 0).by_id[one]
        assert cache.load({one: 5}, 1).by_id[one] is old
    assert cache.load({one: 5}, 2).by_id[one] is not old


def test_a_copied_credential_is_used_until_it_is_too_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age counts from the last refresh of the copy."""
    services = world.services
    add_credential(services)
    [one] = world.add("ok", credential="one")
    copy = copied(services)
    key = copy.targets([one])[one].credential_id
    assert key is not None
    stop_sql(monkeypatch)
    got = CredentialCache(services, copy=copy).get([key])[key]
    assert isinstance(got, Community)
    assert list(got.secrets()) == ["first-secret"]
    assert copy.current_mono is not None
    copy.current_mono -= services.settings.stale_limit_s + 1
    late = CredentialCache(services, copy=copy).get([key])[key]
    assert isinstance(late, errors.StoreError)


def test_the_copy_follows_the_inventory(world: World) -> None:
    """Targets and secrets that are added, edited and removed, and those that move to a queue of
    other workers.
    """
    services, engine = world.services, world.services.engine
    add_credential(services)
    ids = world.add("ok", "ok", "ok", credential="one")
    copy = copied(services)
    key = copy.targets(ids)[ids[0]].credential_id
    assert key is not None
    old = copy.credentials([key])[key]

    devices.edit(engine, "d0", DeviceDraft("d0", "10.9.9.9"))
    targets.remove(engine, "d1", "fake")
    devices.edit(engine, "d2", DeviceDraft("d2", "127.0.0.3", requires={"zone": "dmz"}))
    draft = TargetDraft("fake", "fake", {}, interval_ms=60_000, timeout_ms=2_000)
    devices.add(engine, DeviceDraft("d3", "127.0.0.4"), [draft])
    credential_rows.rotate(engine, "one", Community.kind, sealed(services, "second-secret"))
    copy.refresh()

    addresses = {key: row.address for key, row in copy.targets(range(1, 100)).items()}
    assert addresses == {ids[0]: "10.9.9.9", max(ids) + 1: "127.0.0.4"}
    assert copy.credentials([key])[key].envelope != old.envelope


def test_a_restored_database_is_copied_anew(world: World) -> None:
    """Its version is lower than that of the copy, and its targets are others."""
    services = world.services
    ids = world.add("ok", "ok")
    copy = copied(services)
    targets.remove(services.engine, "d1", "fake")
    with services.engine.begin() as conn:
        conn.execute(sa.update(inventory).values(version=1))
    copy.refresh()
    assert set(copy.targets(ids)) == {ids[0]}
