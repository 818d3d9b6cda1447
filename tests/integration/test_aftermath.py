"""What is done about a worker that died: its black box is read by whoever lives on the same home."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.db.record import run_ledger
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.failures.quarantine import Trust
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.state.board.board_values import ClaimLimits
from poller.state.cluster import event_stream as stream
from poller.state.cluster import quarantine_records
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.crash_report import Aftermath
from poller.workers.guard.marks import FLIGHT, TARGET

QUEUE = "poll.snmp"
ROOM = ClaimLimits(targets=10, batch_size=64, lease_ms=30_000)


@pytest.fixture
def services(services: Services) -> Services:
    """One target on the board, which a worker that died had claimed and started."""
    target = TargetDraft("t", "snmp", {}, interval_ms=60_000, timeout_ms=1_000)
    devices.add(services.engine, DeviceDraft("router", "127.0.0.1"), [target])
    services.board.place("", [(TargetSpec(1, 1, QUEUE, 60_000, 1_000), 1)], 1)
    services.board.claim("", "a", "", {QUEUE: 100}, ROOM)
    services.board.start("a", 0, "x", 15_000, [1])
    return services


def die(
    services: Services, target_id: int, releases: Mapping[str, str] | None = None, fault: str = ""
) -> None:
    """A box as a dead worker leaves it: nobody holds its lock."""
    box = BlackBox(services.settings.home, "dead@host", releases)
    with box.noted("a", 0, 64, QUEUE) as number:
        box.cells[FLIGHT], box.cells[TARGET] = number, target_id
        box.note_fault(fault)
        [path] = (services.settings.home / "flights").iterdir()
        shutil.copy(path, path.with_name("1-dead"))
    box.close()


def look(services: Services) -> list[Event]:
    """A living worker looks twice; the events it told."""
    poller = Poller(services, "living@host")
    aftermath = Aftermath(services, poller)
    aftermath.look()
    aftermath.look()
    poller.close()
    found = stream.newest(services.redis, services.keys, 10)
    return [entry.event for entry in found if entry.event and entry.event.kind is Kind.WORKER_LOST]


def test_the_target_whose_code_ran_has_failed_and_is_left_alone(services: Services) -> None:
    """The ledger, its breaker and one event say so; the run is over."""
    die(services, 1)
    [event] = look(services)
    assert event.message.startswith("dead@host died while collector snmp (poller ")
    assert "polled router/t; under way were 64 with collector snmp" in event.message
    assert (event.device, event.target_id, event.data["collector"]) == ("router", 1, "snmp")
    [row] = run_ledger.recent(services.engine)
    assert (row.run.outcome, row.run.error_code) == (Result.FAILED, error_codes.WORKER_DIED)
    assert services.board.statuses([1])[1].breaker.trips == 1
    assert services.board.sizes() == (1, 1, 0)


def test_the_release_that_crashed_is_blamed_not_the_one_of_who_finds_out(
    services: Services,
) -> None:
    """The finder may have been started before the plugin was installed or updated."""
    die(services, 1, {"other": "other 1.0", "snmp": "poller 99.0"}, fault="it stood still\n")
    [event] = look(services)
    assert "while collector snmp (poller 99.0) polled router/t" in event.message
    [(release, record)] = quarantine_records.read(services.redis, services.keys).items()
    assert (str(release), record.trust) == ("collector snmp (poller 99.0)", Trust.ISOLATED)


def test_a_run_that_is_somebody_elses_by_now_is_not_touched(services: Services) -> None:
    """Its lease ran out before anybody looked, and another worker polls it."""
    services.board.reap("", 10, services.board.now_ms() + 60_000)
    services.board.demand([1])
    services.board.claim("", "b", "a", {QUEUE: 100}, ROOM)
    services.board.start("b", 0, "y", 15_000, [1])
    die(services, 1)
    assert len(look(services)) == 1
    assert run_ledger.recent(services.engine) == []
    assert services.board.hold("b", 1_000, [1]) == {1: Result.OK}


def test_without_a_culprit_it_is_said_what_was_under_way(services: Services) -> None:
    """Killed while it waited for the network."""
    die(services, 0)
    [event] = look(services)
    assert event.message.startswith(
        "dead@host died while it polled targets: 64 with collector snmp"
    )
    assert run_ledger.recent(services.engine) == []


def test_a_target_that_was_removed_since_harms_nobody(services: Services) -> None:
    """There is no name for it any more."""
    die(services, 99)
    assert len(look(services)) == 1
    assert list((services.settings.home / "flights").iterdir()) == []
