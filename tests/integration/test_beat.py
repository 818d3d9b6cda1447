"""What the leader does between two ticks: reconcile, dispatch, reap, resume - on real Redis and SQL."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from poller.beat import catch_up, reap, reconcile
from poller.beat.board_audit import Audit
from poller.bootstrap import Services
from poller.db.inventory import devices, imports, inventory_feed, targets
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.state.board.board_values import ClaimLimits

QUEUE = "poll.snmp"
NOW = 1_800_000_000_000
ROOM = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)


def target(interval_ms: int = 60_000) -> TargetDraft:
    return TargetDraft("snmp", "snmp", {}, interval_ms=interval_ms, timeout_ms=5_000)


def add_fleet(services: Services, count: int, interval_ms: int = 60_000) -> None:
    rows = [
        imports.Row(DeviceDraft(f"d{i}", "127.0.0.1"), [target(interval_ms)]) for i in range(count)
    ]
    imports.apply_import(services.engine, rows)


def run(services: Services) -> bool:
    return reconcile.reconcile(services.board, services.engine, "", NOW)


def scores(services: Services) -> dict[int, float]:
    rows = services.redis.zrange(services.keys.due(QUEUE), 0, -1, withscores=True)
    return {int(i): score for i, score in rows}


def enabled(services: Services) -> list[int]:
    with inventory_feed.all_specs(services.engine) as fleet:
        return [spec.id for spec in fleet.specs if spec.enabled]


def assert_sound(services: Services) -> None:
    ids = enabled(services)
    check = services.board.check(ids)
    assert (check.lost, check.doubled, services.board.ids()) == ([], [], set(ids))


def test_an_empty_board_is_filled_and_spread_over_one_interval(services: Services) -> None:
    """A flushed Redis too; a second pass has nothing to do."""
    add_fleet(services, 300)
    assert run(services)
    assert not run(services)
    found = list(scores(services).values())
    assert len(found) == 300
    assert all(NOW < score <= NOW + 60_000 for score in found)
    assert max(found) - min(found) > 50_000
    before = scores(services)
    services.redis.flushall()
    assert run(services)
    assert scores(services) == before
    assert_sound(services)


def test_a_few_new_targets_are_polled_at_once_and_many_take_their_slots(services: Services) -> None:
    """Somebody who adds a device is watching."""
    run(services)
    devices.add(services.engine, DeviceDraft("one", "127.0.0.1"), [target()])
    run(services)
    assert list(scores(services).values()) == [NOW]
    add_fleet(services, 200)
    run(services)
    assert sum(score == NOW for score in scores(services).values()) == 1
    assert_sound(services)


def test_edits_disabling_and_removal_reach_the_board(services: Services) -> None:
    """And what was not edited keeps its slot."""
    add_fleet(services, 100)
    run(services)
    before = scores(services)
    targets.edit(services.engine, "d1", "snmp", TargetDraft(interval_ms=10_000, timeout_ms=2_000))
    devices.edit(services.engine, "d2", DeviceDraft("d2", enabled=False))
    devices.remove(services.engine, ["d3"])
    assert run(services)
    after = scores(services)
    assert len(after) == 98
    assert sum(after[i] != before[i] for i in after) == 1
    devices.edit(services.engine, "d2", DeviceDraft("d2", enabled=True))
    run(services)
    assert len(scores(services)) == 99
    assert_sound(services)


def test_a_database_that_went_back_in_time_is_followed(services: Services) -> None:
    """A restored backup has a smaller version: everything is compared."""
    add_fleet(services, 10)
    run(services)
    services.redis.hset(services.keys.board, "version", "999")
    services.redis.hset(services.keys.spec, "4711", "1|60000|5000|poll.snmp")
    services.redis.zadd(services.keys.due(QUEUE), {"4711": 1})
    assert run(services)
    assert_sound(services)
    assert 4711 not in scores(services)


def test_a_lost_lease_is_due_at_once_and_in_the_ledger(services: Services) -> None:
    """Unless the worker wrote its row before it died: then that row stands."""
    add_fleet(services, 2)
    run(services)
    ids = sorted(scores(services))
    services.board.claim("", "t", "", {QUEUE: 100}, ROOM, NOW + 60_000)
    services.board.start("t", 0, "c", 1_000, ids, NOW + 60_000)
    services.redis.zadd(services.keys.inflight, dict.fromkeys(map(str, ids), 1))  # long ago
    written = run_ledger.Run(
        ids[0], _plan(services, ids[0]), Result.OK, token="t", started_ms=NOW, finished_ms=NOW
    )
    run_ledger.write(services.engine, [written])
    lost = reap.reap(services.board, "", NOW + 90_000)
    run_ledger.close_lost(services.engine, lost)
    outcomes = {
        row.run.target_id: (row.run.outcome, row.run.error_code)
        for row in run_ledger.recent(services.engine)
    }
    assert outcomes == {ids[0]: (Result.OK, ""), ids[1]: (Result.FAILED, "lease_lost")}
    assert_sound(services)
    assert reap.reap(services.board, "", NOW + 90_000) == []


def test_after_downtime_the_overdue_are_spread(services: Services) -> None:
    """Once each, within a minute; what is only a little late is polled at once."""
    add_fleet(services, 200)
    run(services)
    long_after = NOW + 3_600_000
    recent = next(iter(scores(services)))
    services.redis.zadd(services.keys.due(QUEUE), {str(recent): long_after - 2_000})
    assert catch_up.resume(services.board, "", long_after, services.settings, lambda: None) == 199
    after = scores(services)
    assert after.pop(recent) == long_after - 2_000
    assert all(long_after <= score < long_after + 60_000 for score in after.values())
    assert max(after.values()) - min(after.values()) > 50_000
    assert_sound(services)


def test_a_few_that_waited_for_a_worker_are_polled_at_once(services: Services) -> None:
    """A batch of them is no crowd; one more than that is spread."""
    add_fleet(services, 65)
    run(services)
    long_after = NOW + 3_600_000
    before = scores(services)
    assert catch_up.spread(services.board, "", long_after, [QUEUE], at_once=65) == 0
    assert scores(services) == before
    assert catch_up.spread(services.board, "", long_after, [QUEUE], at_once=64) == 65
    assert_sound(services)


def _plan(services: Services, target_id: int) -> int:
    text: Any = services.redis.hget(services.keys.run, str(target_id))
    return int(text.split("|")[1])


def test_a_pass_over_an_unchanged_fleet_is_one_small_query(services: Services) -> None:
    """However large the fleet is: no target is read, nothing is written."""
    add_fleet(services, 500)
    run(services)
    asked: list[str] = []
    sa.event.listen(services.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))
    before = services.redis.info("commandstats")
    assert not run(services)
    after = services.redis.info("commandstats")
    assert [text for text in asked if text != "BEGIN"] == [
        "SELECT inventory.version \nFROM inventory"
    ]
    used = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    assert {name: calls for name, calls in used.items() if calls} == {
        "cmdstat_hget": 1,
        "cmdstat_info": 1,
    }


def test_the_board_of_another_clock_is_brought_into_this_one(services: Services) -> None:
    """A new leader compares the clock with what its predecessor saw: set back by an hour, nobody waits for it."""
    add_fleet(services, 100)
    run(services)
    services.board.claim("", "t", "", {QUEUE: 9}, ROOM, NOW)
    earlier = NOW - 3_600_000
    assert catch_up.resume(services.board, "", earlier, services.settings, lambda: None) == 100
    found = scores(services)
    assert all(earlier < score <= earlier + 60_000 for score in found.values())
    assert len(set(found.values())) > 90
    assert_sound(services)


def test_a_failover_moves_nothing(services: Services) -> None:
    """What fell due in the few seconds without a leader is polled at once, in order."""
    add_fleet(services, 100)
    run(services)
    services.board.claim("", "t", "", {QUEUE: 9}, ROOM, NOW)
    before = scores(services)
    assert catch_up.resume(services.board, "", NOW + 5_000, services.settings, lambda: None) == 0
    assert scores(services) == before


@pytest.mark.parametrize("lost", ["due:poll.snmp", "spec", "queues"])
def test_a_board_that_somebody_broke_is_mended(services: Services, lost: str) -> None:
    """At the second look that does not add up; nothing is touched while it does."""
    add_fleet(services, 30)
    run(services)
    audit = Audit(services.board, services.engine)
    assert not audit.look(NOW)
    services.redis.delete(services.keys.prefix + lost)
    assert not audit.look(NOW)
    assert audit.look(NOW)
    assert_sound(services)
    assert not audit.look(NOW)
    assert not audit.look(NOW)
