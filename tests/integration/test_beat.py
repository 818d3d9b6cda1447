"""The leader's work on real Redis and SQL: reconcile, reap, catch up, audit."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from poller.beat import reap, reconcile
from poller.beat.board_audit import BoardAudit
from poller.beat.catch_up import CatchUp
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.inventory import devices, imports, inventory_feed, targets
from poller.db.record import run_ledger, run_pages
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.event_kinds import Kind
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits

QUEUE = "poll.snmp"
NOW = 1_800_000_000_000
HOUR_MS = 3_600_000
LIMITS = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)


def target(interval_ms: int = 60_000) -> TargetDraft:
    return TargetDraft("snmp", "snmp", {}, interval_ms=interval_ms, timeout_ms=5_000)


def add_fleet(services: Services, count: int, interval_ms: int = 60_000) -> None:
    rows = [
        imports.Row(DeviceDraft(f"d{i}", "127.0.0.1"), [target(interval_ms)]) for i in range(count)
    ]
    imports.apply_import(services.engine, rows)


def run(services: Services) -> bool:
    return reconcile.reconcile(services.board, services.engine, "", NOW).changed


def catch_up(services: Services) -> CatchUp:
    leader = Leader(services.leadership, 1.0, election=False)
    return CatchUp(services.board, leader, services.settings)


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
    """A flushed board is filled with the same slots; a second pass changes nothing."""
    add_fleet(services, 300)
    assert run(services)
    assert not run(services)
    instants = list(scores(services).values())
    assert len(instants) == 300
    assert all(NOW < instant <= NOW + 60_000 for instant in instants)
    assert max(instants) - min(instants) > 50_000
    before = scores(services)
    services.redis.flushall()
    assert run(services)
    assert scores(services) == before
    assert_sound(services)


def test_a_few_new_targets_are_polled_at_once_and_many_take_their_slots(services: Services) -> None:
    """An operator who adds a device sees its first poll at once."""
    run(services)
    devices.add(services.engine, DeviceDraft("one", "127.0.0.1"), [target()])
    run(services)
    assert list(scores(services).values()) == [NOW]
    add_fleet(services, 200)
    run(services)
    assert sum(score == NOW for score in scores(services).values()) == 1
    assert_sound(services)


def test_edits_disabling_and_removal_reach_the_board(services: Services) -> None:
    """Targets that were not edited keep their slots."""
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


def test_a_restored_backup_is_followed(services: Services) -> None:
    """An older version of the inventory causes a full comparison."""
    add_fleet(services, 10)
    run(services)
    services.redis.hset(services.keys.board, "version", "999")
    services.redis.hset(services.keys.spec, "4711", "1|60000|5000|poll.snmp")
    services.redis.zadd(services.keys.due(QUEUE), {"4711": 1})
    assert run(services)
    assert_sound(services)
    assert 4711 not in scores(services)


def test_a_lost_lease_is_due_at_once_and_in_the_ledger(services: Services) -> None:
    """A row that the worker wrote before it died stays."""
    add_fleet(services, 2)
    run(services)
    ids = sorted(scores(services))
    services.board.claim("", "t", "", {QUEUE: 100}, LIMITS, NOW + 60_000)
    services.board.start("t", 0, "c", 1_000, ids, NOW + 60_000)
    services.redis.zadd(services.keys.inflight, dict.fromkeys(map(str, ids), 1))  # an old lease
    written = run_ledger.Run(
        ids[0], _plan(services, ids[0]), Result.OK, token="t", started_ms=NOW, finished_ms=NOW
    )
    run_ledger.write(services.engine, [written])
    lost = reap.reap(services.board, "", NOW + 90_000)
    run_ledger.close_lost(services.engine, lost)
    outcomes = {
        row.run.target_id: (row.run.outcome, row.run.error_code)
        for row in run_pages.recent(services.engine)
    }
    assert outcomes == {ids[0]: (Result.OK, ""), ids[1]: (Result.FAILED, "lease_lost")}
    assert_sound(services)
    assert reap.reap(services.board, "", NOW + 90_000) == []


def test_after_downtime_overdue_targets_are_spread(services: Services) -> None:
    """Each is polled once within a minute; a target that is a little late is polled at once."""
    add_fleet(services, 200)
    run(services)
    long_after = NOW + 3_600_000
    recent = next(iter(scores(services)))
    services.redis.zadd(services.keys.due(QUEUE), {str(recent): long_after - 2_000})
    assert catch_up(services).after_takeover(long_after) is None
    after = scores(services)
    assert len(after) == 200
    assert after.pop(recent) == long_after - 2_000
    assert all(long_after <= score < long_after + 60_000 for score in after.values())
    assert max(after.values()) - min(after.values()) > 50_000
    assert_sound(services)


def test_few_targets_that_waited_for_a_worker_are_polled_at_once(services: Services) -> None:
    """One batch of waiting targets keeps its instants; more targets are spread."""
    add_fleet(services, 65)
    run(services)
    long_after = NOW + 3_600_000
    before = scores(services)
    assert catch_up(services).spread([QUEUE], long_after, unless_at_most=65) == 0
    assert scores(services) == before
    assert catch_up(services).spread([QUEUE], long_after, unless_at_most=64) == 65
    assert_sound(services)


def _plan(services: Services, target_id: int) -> int:
    text: Any = services.redis.hget(services.keys.run, str(target_id))
    return int(text.split("|")[1])


def test_a_pass_over_an_unchanged_fleet_is_one_small_query(services: Services) -> None:
    """No target is read and nothing is written, however large the fleet."""
    add_fleet(services, 500)
    run(services)
    statements: list[str] = []
    sa.event.listen(services.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    before = services.redis.info("commandstats")
    assert not run(services)
    after = services.redis.info("commandstats")
    assert [text for text in statements if text != "BEGIN"] == [
        "SELECT inventory.version \nFROM inventory"
    ]
    used = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    assert {name: calls for name, calls in used.items() if calls} == {
        "cmdstat_hget": 1,
        "cmdstat_info": 1,
    }


def test_a_new_leader_corrects_a_board_whose_clock_was_set_back(services: Services) -> None:
    """A new leader compares the clock with that of the last leader; no target waits for an hour."""
    add_fleet(services, 100)
    run(services)
    services.board.claim("", "t", "", {QUEUE: 9}, LIMITS, NOW)
    earlier = NOW - 3_600_000
    event = catch_up(services).after_takeover(earlier)
    assert event is not None
    assert (event.kind, event.data["targets_moved"]) == (Kind.CLOCK_MOVED, 100)
    instants = scores(services).values()
    assert all(earlier < instant <= earlier + 60_000 for instant in instants)
    assert len(set(instants)) > 90
    assert_sound(services)


def test_a_failover_moves_nothing(services: Services) -> None:
    """Targets that became due in the seconds without a leader are polled at once, in order."""
    add_fleet(services, 100)
    run(services)
    services.board.claim("", "t", "", {QUEUE: 9}, LIMITS, NOW)
    before = scores(services)
    assert catch_up(services).after_takeover(NOW + 5_000) is None
    assert scores(services) == before


@pytest.mark.parametrize("lost", ["due:poll.snmp", "spec", "queues"])
def test_a_damaged_board_is_repaired(services: Services, lost: str) -> None:
    """The second check that does not add up repairs; checks that add up change nothing."""
    add_fleet(services, 30)
    run(services)
    audit = BoardAudit(services.board, services.engine)
    assert audit.check(NOW) is None
    services.redis.delete(services.keys.prefix + lost)
    assert audit.check(NOW) is None
    event = audit.check(NOW)
    assert event is not None
    assert event.kind is Kind.BOARD_REPAIRED
    assert_sound(services)
    assert audit.check(NOW) is None
    assert audit.check(NOW) is None


def test_waits_that_the_settings_allow_survive_a_clock_step(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe in 20 hours and a slow retry in five days stay when the clock is set back."""
    settings = Settings(breaker_cap_s=86_400, deadletter_retry_s=604_800)
    monkeypatch.setattr(services, "settings", settings)
    probe_ms = NOW + 20 * HOUR_MS
    retry_ms = NOW + 120 * HOUR_MS
    services.redis.sadd(services.keys.queues, QUEUE)
    services.redis.zadd(services.keys.urgent(QUEUE), {"1": probe_ms, "2": NOW + 30 * HOUR_MS})
    services.redis.zadd(services.keys.parked, {"3": retry_ms, "4": NOW + 200 * HOUR_MS})
    catch_up(services).after_clock_step(NOW, -600_000)
    urgent = dict(services.redis.zrange(services.keys.urgent(QUEUE), 0, -1, withscores=True))
    parked = dict(services.redis.zrange(services.keys.parked, 0, -1, withscores=True))
    assert (urgent["1"], parked["3"]) == (probe_ms, retry_ms)
    assert urgent["2"] <= NOW + 24 * HOUR_MS
    assert parked["4"] <= NOW + 168 * HOUR_MS
