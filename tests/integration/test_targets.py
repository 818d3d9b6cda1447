"""A worker remembers its targets, and with them what their polls have learned, within a limit."""

from __future__ import annotations

import structlog

from poller.workers.targets import FORGET_S, Known, Targets
from tests.integration.worlds import World

INTERVAL_S = 60.0


def asked(targets: Targets, ids: list[int], now: float) -> dict[int, Known]:
    """Polled one by one, as their slots come."""
    return {i: targets.get(dict.fromkeys([i], 1), now + n)[0][i] for n, i in enumerate(ids)}


def remembered(before: dict[int, Known], after: dict[int, Known]) -> list[bool]:
    return [after[i] is known for i, known in before.items()]


def test_a_fleet_that_does_not_fit_is_remembered_in_part(world: World) -> None:
    """Not forgotten in turns, each just before its next poll; and somebody is told, once."""
    ids = world.add(*["ok"] * 5)
    targets = Targets(world.services.engine, world.services.registry, 3)
    with structlog.testing.capture_logs() as lines:
        first = asked(targets, ids, 0)
        for interval in (1, 2, 3):
            assert targets.unknown(ids) == 2
            assert remembered(first, asked(targets, ids, interval * INTERVAL_S)) == [True, True, True, False, False]
    assert [line["event"] for line in lines] == ["target_cache_full"]


def test_who_is_polled_elsewhere_makes_room(world: World) -> None:
    ids = world.add(*["ok"] * 4)
    targets = Targets(world.services.engine, world.services.registry, 2)
    asked(targets, ids[:2], 0)
    others = asked(targets, ids[2:], FORGET_S / 2)
    assert remembered(others, asked(targets, ids[2:], FORGET_S / 2 + INTERVAL_S)) == [False, False]
    taken_in = asked(targets, ids[2:], FORGET_S + INTERVAL_S)
    assert remembered(taken_in, asked(targets, ids[2:], FORGET_S + 2 * INTERVAL_S)) == [True, True]
    assert targets.unknown(ids[:2]) == 2


def test_an_edited_target_is_read_again_and_stays_remembered(world: World) -> None:
    """Also when nobody else would be taken in."""
    [one, other] = world.add("ok", "ok")
    targets = Targets(world.services.engine, world.services.registry, 1)
    before = targets.get({one: 1}, 0)[0][one]
    edited = targets.get({one: 2}, 1)[0][one]
    assert edited is not before
    assert targets.get({one: 2}, 2)[0][one] is edited
    assert targets.unknown([one, other]) == 1
