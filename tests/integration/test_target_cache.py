"""A worker remembers its targets, and with them what their polls have learned, within a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from poller.collectors.registry import Registry
from poller.db.inventory import credential_rows
from poller.workers.batch import target_cache
from poller.workers.batch.target_cache import IDLE_LIMIT_S, CachedTarget, TargetCache
from tests.integration.worlds import World

INTERVAL_S = 60.0


def asked(targets: TargetCache, ids: list[int], now: float) -> dict[int, CachedTarget]:
    """Polled one by one, as their slots come."""
    return {i: targets.load({i: 1}, now + n).by_id[i] for n, i in enumerate(ids)}


def remembered(before: dict[int, CachedTarget], after: dict[int, CachedTarget]) -> list[bool]:
    return [after[i] is known for i, known in before.items()]


def test_a_fleet_that_does_not_fit_is_remembered_in_part(world: World) -> None:
    """Not forgotten in turns, each just before its next poll; and somebody is told, once."""
    ids = world.add(*["ok"] * 5)
    targets = TargetCache(world.services.engine, world.services.registry, 3)
    with structlog.testing.capture_logs() as lines:
        first = asked(targets, ids, 0)
        for interval in (1, 2, 3):
            assert targets.count_uncached(ids) == 2
            assert remembered(first, asked(targets, ids, interval * INTERVAL_S)) == [
                True,
                True,
                True,
                False,
                False,
            ]
    assert [line["event"] for line in lines] == ["target_cache_full"]


def test_who_is_polled_elsewhere_makes_room(world: World) -> None:
    ids = world.add(*["ok"] * 4)
    targets = TargetCache(world.services.engine, world.services.registry, 2)
    asked(targets, ids[:2], 0)
    others = asked(targets, ids[2:], IDLE_LIMIT_S / 2)
    assert remembered(others, asked(targets, ids[2:], IDLE_LIMIT_S / 2 + INTERVAL_S)) == [
        False,
        False,
    ]
    taken_in = asked(targets, ids[2:], IDLE_LIMIT_S + INTERVAL_S)
    assert remembered(taken_in, asked(targets, ids[2:], IDLE_LIMIT_S + 2 * INTERVAL_S)) == [
        True,
        True,
    ]
    assert targets.count_uncached(ids[:2]) == 2


def test_an_edited_target_is_read_again_and_stays_remembered(world: World) -> None:
    """Also when nobody else would be taken in."""
    [one, other] = world.add("ok", "ok")
    targets = TargetCache(world.services.engine, world.services.registry, 1)
    before = targets.load({one: 1}, 0).by_id[one]
    edited = targets.load({one: 2}, 1).by_id[one]
    assert edited is not before
    assert targets.load({one: 2}, 2).by_id[one] is edited
    assert targets.count_uncached([one, other]) == 1


@contextmanager
def waiting_at_the_third(
    world: World, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[TargetCache]:
    """A batch whose third target has options that take their time, until the block ends."""
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


def test_who_is_prepared_is_remembered_while_another_takes_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt goes on from there."""
    ids = world.add("ok", "ok", "wait", "ok")
    with waiting_at_the_third(world, ids, monkeypatch) as targets:
        assert targets.count_uncached(ids) == 2
    assert targets.count_uncached(ids) == 0


def test_whoever_gets_a_target_first_asks_for_its_credential_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another batch has prepared it, and does not come to poll it: the credential may be a new one."""
    credential_rows.add(
        world.services.engine, "one", "community", world.services.keyring.seal("{}", "one")
    )
    ids = world.add("ok", "ok", "wait", credential="one")
    with waiting_at_the_third(world, ids, monkeypatch) as targets:
        [credential] = targets.load({ids[0]: 1}, 1).changed_credentials
        assert targets.load({ids[0]: 1}, 2).changed_credentials == set()
        assert targets.load({ids[1]: 1}, 3).changed_credentials == {credential}


def test_options_that_take_long_are_told_of_by_the_name_of_their_collector(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it lasts; and nobody is told of those that do not."""
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
