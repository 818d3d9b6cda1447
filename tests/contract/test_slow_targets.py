"""The slowest targets of a collector, and who uses each collector, on every database."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from poller.db.fleet import collector_usage
from poller.db.fleet.collector_usage import Usage
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger, slow_targets, target_statistics
from poller.db.record.slow_targets import SlowTarget
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.run import Run
from poller.domain.record.target_day import DAY_MS, TargetDay

DAY = 20_000 * DAY_MS
PING, SNMP = TargetDraft(collector="ping"), TargetDraft(collector="snmp")


@pytest.fixture
def ids(engine: Engine) -> dict[str, int]:
    """Three devices with SNMP, of which one has a ping, too; the ids of their targets by name."""
    found = {}
    for name, drafts in (("sw-1", [PING, SNMP]), ("sw-2", [SNMP]), ("sw-3", [SNMP])):
        devices.add(engine, DeviceDraft(name, "10.0.0.1"), drafts)
        for target in targets.of_device(engine, name):
            found[f"{name}/{target.name}"] = target.id
    return found


def test_devices_and_targets_are_counted_by_collector(engine: Engine, ids: dict[str, int]) -> None:
    """A device with two targets of a collector is one device."""
    assert collector_usage.count(engine) == {"ping": Usage(1, 1), "snmp": Usage(3, 3)}
    more = TargetDraft(collector="snmp", name="second")
    devices.add(engine, DeviceDraft("sw-4", "10.0.0.4"), [SNMP, more])
    assert collector_usage.count(engine)["snmp"] == Usage(4, 5)


def test_the_slowest_of_a_day_come_first(engine: Engine, ids: dict[str, int]) -> None:
    """By the 95th percentile of this day and collector; a day without polls has none."""
    slow, quick, idle = (ids[f"sw-{n}/snmp"] for n in (1, 2, 3))
    target_statistics.write(
        engine,
        [
            TargetDay(DAY, quick, polls=9, p50_ms=5, p95_ms=7, max_ms=9_000),
            TargetDay(DAY, slow, polls=8, p50_ms=50, p95_ms=70, max_ms=90),
            TargetDay(DAY, idle, unpolled=3),
            TargetDay(DAY, ids["sw-1/ping"], polls=9, p95_ms=8_000),
            TargetDay(DAY - DAY_MS, quick, polls=9, p95_ms=8_000),
        ],
    )
    found = slow_targets.of_day(engine, "snmp", DAY, 5)
    assert found == [
        SlowTarget("sw-1", "snmp", 8, 50, 70, 90),
        SlowTarget("sw-2", "snmp", 9, 5, 7, 9_000),
    ]
    assert slow_targets.of_day(engine, "snmp", DAY, 1) == found[:1]
    assert slow_targets.of_day(engine, "snmp", DAY + DAY_MS, 5) == []


def test_the_slowest_of_now_are_among_the_newest_polls(
    engine: Engine, ids: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each outcome apart: a few time-outs are not lost among many good polls."""
    quick, slow = ids["sw-2/snmp"], ids["sw-3/snmp"]
    runs = [Run(quick, DAY + n, Result.OK, collect_ms=n) for n in range(5)]
    runs += [Run(slow, DAY, Result.FAILED, collect_ms=5_000)]
    runs += [Run(slow, DAY + 9, Result.STALE, collect_ms=9_999)]
    runs += [Run(ids["sw-1/ping"], DAY, Result.PARTIAL, collect_ms=7_000)]
    run_ledger.write(engine, runs)
    assert slow_targets.of_newest(engine, "snmp", 5) == [
        SlowTarget("sw-3", "snmp", 1, None, None, 5_000),
        SlowTarget("sw-2", "snmp", 5, None, None, 4),
    ]
