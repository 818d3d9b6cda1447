"""Where targets are and the worst poll of each half hour, on every database."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller.db.fleet import fleet_places, run_slots
from poller.db.fleet.fleet_places import Place
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS, SlotCount
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.run import Run

FIRST = 1_000_000  # a slot
PING = TargetDraft(collector="ping")
SNMP = TargetDraft(collector="snmp")


def run(target_id: int, plan_ms: int, outcome: Result) -> Run:
    return Run(
        target_id=target_id,
        plan_ms=plan_ms,
        attempt=1,
        outcome=outcome,
        error_code="",
        message="",
        started_ms=plan_ms,
        finished_ms=plan_ms,
        samples=0,
        runner="w",
        token="t",
    )


def test_a_slot_has_the_worst_poll_of_all_targets(engine: Engine) -> None:
    """Runs before the instant are left out, and so are those that were no poll."""
    device = devices.add(engine, DeviceDraft("sw-1", "10.0.0.1"), [PING, SNMP])
    ping, snmp = (target.id for target in targets.of_device(engine, "sw-1"))
    runs = [
        run(ping, FIRST * SLOT_MS - 1, Result.FAILED),
        run(ping, FIRST * SLOT_MS, Result.OK),
        run(snmp, FIRST * SLOT_MS + 5, Result.PARTIAL),
        run(snmp, (FIRST + 1) * SLOT_MS - 1, Result.STALE),
        run(ping, (FIRST + 2) * SLOT_MS, Result.REFUSED),
    ]
    run_ledger.write(engine, runs)
    found = run_slots.of_devices(engine, [device.id, 999], FIRST * SLOT_MS)
    assert {key: sorted(slots) for key, slots in found.items()} == {
        device.id: [SlotCount(FIRST, 1), SlotCount(FIRST + 2, 2)]
    }


def test_places_and_sizes_of_sites(engine: Engine) -> None:
    """A device without a site is at the site "", and a removed target is nowhere."""
    west = devices.add(engine, DeviceDraft("sw-1", "10.0.0.1", site="west"), [PING, SNMP])
    alone = devices.add(engine, DeviceDraft("sw-2", "10.0.0.2"), [PING])
    ids = fleet_places.targets_of_devices(engine, [west.id, alone.id])
    assert len(ids) == 3
    places = fleet_places.of_targets(engine, [*ids, 999])
    assert sorted(places.values()) == sorted(
        [Place(west.id, "west"), Place(west.id, "west"), Place(alone.id, "")]
    )
    assert fleet_places.site_sizes(engine) == {"west": 1, "": 1}
