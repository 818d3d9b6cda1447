"""A worker caches its targets, with the memory of their collectors, within a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from poller import errors
from poller.collectors.registry import Registry
from poller.db.inventory import credential_rows, inventory_feed
from poller.workers.batch import target_cache
from poller.workers.batch.target_cache import IDLE_LIMIT_S, CachedTarget, TargetCache
from tests.integration.worlds import World

INTERVAL_S = 60.0


def load_each(targets: TargetCache, ids: list[int], now: float) -> dict[int, CachedTarget]:
    """Load the targets one by one, as their slots come."""
    return {i: targets.load({i: 1}, now + n).by_id[i] for n, i in enumerate(ids)}


def is_cached(before: dict[int, CachedTarget], after: dict[int, CachedTarget]) -> list[bool]:
    return [after[i] is known for i, known in before.items()]


def test_a_fleet_larger_than_the_cache_is_cached_in_part(world: World) -> None:
    """The first targets stay cached, and one warning is logged."""
    ids = world.add(*["ok"] * 5)
    targets = TargetCache(world.services.engine, world.services.registry, 3)
    with structlog.testing.capture_logs() as lines:
        first = load_each(targets, ids, 0)
        for interval in (1, 2, 3):
            assert targets.count_uncached(ids) == 2
            assert is_cached(first, load_each(targets, ids, interval * INTERVAL_S)) == [
                True,
                True,
                True,
                False,
                False,
            ]
    assert [line["event"] for line in lines] == ["target_cache_full"]


def test_a_target_that_is_idle_here_gives_way(world: World) -> None:
    ids = world.add(*["ok"] * 4)
    targets = TargetCache(world.services.engine, world.services.registry, 2)
    load_each(targets, ids[:2], 0)
    others = load_each(targets, ids[2:], IDLE_LIMIT_S / 2)
    assert is_cached(others, load_each(targets, ids[2:], IDLE_LIMIT_S / 2 + INTERVAL_S)) == [
        False,
        False,
    ]
    taken_in = load_each(targets, ids[2:], IDLE_LIMIT_S + INTERVAL_S)
    assert is_cached(taken_in, load_each(targets, ids[2:], IDLE_LIMIT_S + 2 * INTERVAL_S)) == [
        True,
        True,
    ]
    assert targets.count_uncached(ids[:2]) == 2


def test_targets_that_are_polled_elsewhere_are_forgotten(world: World) -> None:
    """The memory of a worker goes down after another one took over a part of its targets."""
    ids = world.add(*["ok"] * 4)
    targets = TargetCache(world.services.engine, world.services.registry, 100)
    load_each(targets, ids, 0)
    for now in range(0, int(IDLE_LIMIT_S), int(INTERVAL_S)):
        load_each(targets, ids[2:], now)
        assert targets.count_uncached(ids) == 0
    load_each(targets, ids[2:], IDLE_LIMIT_S + 2 * INTERVAL_S)
    assert targets.count_uncached(ids[:2]) == 2
    assert targets.count_uncached(ids[2:]) == 0


def test_an_edited_target_is_read_again_and_stays_is_cached(world: World) -> None:
    """A full cache replaces the entry of the edited target."""
    [one, other] = world.add("ok", "ok")
    targets = TargetCache(world.services.engine, world.services.registry, 1)
    before = targets.load({one: 1}, 0).by_id[one]
    edited = targets.load({one: 2}, 1).by_id[one]
    assert edited is not before
    assert targets.load({one: 2}, 2).by_id[one] is edited
    assert targets.count_uncached([one, other]) == 1


def test_while_sql_is_away_an_edited_target_serves_as_it_was_but_not_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time counts from the first poll that could not read the edit."""
    [one] = world.add("ok")
    services = world.services
    targets = TargetCache(services.engine, services.registry, 10, stale_limit_s=3600)
    before = targets.load({one: 1}, 0).by_id[one]

    def away(*_: Any) -> None:
        raise errors.StoreUnavailable("away")

    read = inventory_feed.poll_targets
    monkeypatch.setattr(inventory_feed, "poll_targets", away)
    for now in (5_000, 8_600):
        assert targets.load({one: 2}, now).by_id[one] is before
    with pytest.raises(errors.StoreUnavailable):
        targets.load({one: 2}, 8_601)
    monkeypatch.setattr(inventory_feed, "poll_targets", read)
    assert targets.load({one: 2}, 8_602).by_id[one] is not before


@contextmanager
def waiting_at_the_third(
    world: World, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[TargetCache]:
    """Load a batch whose third target takes long to validate, until the context ends."""
    go_on, there = threading.Event(), threading.Event()
    check = Registry.options

    def options(registry: Registry, name: str, raw: Mapping[str, Any]) -> Any:
        if raw["do"] == "wait":
            there.set()
            assert go_on.wait(30)
        return check(registry, name, raw)

    monkeypatch.setattr(Registry, "options", options)
    targets = TargetCache(world.services.engine, world.services.registry, 10)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(targets.load, dict.fromkeys(ids, 1), 0)
        try:
            assert there.wait(30)
            yield targets
        finally:
            go_on.set()
        assert list(batch.result().by_id) == ids


def test_validated_targets_are_cached_while_another_is_still_validated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt continues from there."""
    ids = world.add("ok", "ok", "wait", "ok")
    with waiting_at_the_third(world, ids, monkeypatch) as targets:
        assert targets.count_uncached(ids) == 2
    assert targets.count_uncached(ids) == 0


def test_the_first_batch_that_gets_a_target_reads_its_credential_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credential may be new, even if another batch validated the target and never polled it."""
    sealed = world.services.keyring.seal("{}", "one", "community")
    credential_rows.add(world.services.engine, "one", "community", sealed)
    ids = world.add("ok", "ok", "wait", credential="one")
    with waiting_at_the_third(world, ids, monkeypatch) as targets:
        [credential] = targets.load({ids[0]: 1}, 1).changed_credentials
        assert targets.load({ids[0]: 1}, 2).changed_credentials == set()
        assert targets.load({ids[1]: 1}, 3).changed_credentials == {credential}


def test_slow_validation_is_logged_with_the_name_of_the_collector(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is logged while the validation runs; quick validation logs nothing."""
    ids = world.add("ok", "ok", "wait", "ok")
    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(target_cache, "SLOW_VALIDATION_S", 0.3)
        with waiting_at_the_third(world, ids, monkeypatch) as targets:
            until = time.monotonic() + 30
            while not lines and time.monotonic() < until:
                time.sleep(0.01)
        monkeypatch.setattr(target_cache, "SLOW_VALIDATION_S", 5.0)
        targets.load(dict.fromkeys(ids[:2], 2), 1)
    [line] = lines
    assert (line["event"], line["collector"], line["target"]) == (
        "options_checked_slowly",
        "fake",
        "d2/fake",
    )
    assert (line["done"], line["of"]) == (2, 4)
