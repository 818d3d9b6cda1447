"""The report about a worker that died, by a live worker with the same home directory."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

import pytest

from poller import event_publisher
from poller.beat.worker_watch import WorkerWatch
from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.db.record import run_pages
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.failures.quarantine import Trust
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import Worker
from poller.state.board.board_values import ClaimLimits
from poller.state.cluster import event_stream as stream
from poller.state.cluster import quarantine_records, worker_registry
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.crash_report import CrashReporter
from poller.workers.guard.running_code import BATCH, TARGET

QUEUE = "poll.snmp"
DEAD = Worker("dead@host", 0, 1, 0, 0, 0)
ROOM = ClaimLimits(targets=10, batch_size=64, lease_ms=30_000)


@pytest.fixture
def services(services: Services) -> Services:
    """Services with one target on the board, which the dead worker had started."""
    target = TargetDraft("t", "snmp", {}, interval_ms=60_000, timeout_ms=1_000)
    devices.add(services.engine, DeviceDraft("router", "127.0.0.1"), [target])
    services.board.place("", [(TargetSpec(1, 1, QUEUE, 60_000, 1_000), 1)], 1)
    services.board.claim("", "a", "", {QUEUE: 100}, ROOM)
    services.board.start("a", 0, "x", 15_000, [1])
    return services


def die(
    services: Services,
    target_id: int,
    releases: Mapping[str, str] | None = None,
    fault: str = "",
    job: str = "",
) -> None:
    """Leave the black box of a dead worker: a copy that no process has locked."""
    box = BlackBox(services.settings.home, "dead@host", releases)
    running_job = box.record_job(job) if job else nullcontext()
    with running_job, box.record_batch("a", 0, 64, QUEUE) as number:
        box.cells[BATCH] = number
        box.cells[TARGET] = target_id
        box.record_fault(fault)
        [path] = (services.settings.home / "flights").iterdir()
        shutil.copy(path, path.with_name("1-dead"))
    box.close()


def report(services: Services) -> list[Event]:
    """Check twice in a live worker; return the events it emitted."""
    poller = Poller(services, "living@host")
    reporter = CrashReporter(services, poller)
    reporter.check()
    reporter.check()
    poller.close()
    entries = stream.newest(services.redis, services.keys, 10)
    return [
        entry.event for entry in entries if entry.event and entry.event.kind is Kind.WORKER_LOST
    ]


def check(services: Services, watch: WorkerWatch, now_ms: int) -> list[Event]:
    """Let the leader look at the registered workers."""
    workers = worker_registry.registered(services.redis, services.keys)
    return watch.check(workers, now_ms)


def test_the_target_whose_code_ran_fails_and_its_breaker_opens(services: Services) -> None:
    """The ledger has the run, and one event names the collector and the target."""
    die(services, 1)
    [event] = report(services)
    assert event.message.startswith("dead@host died while collector snmp (poller ")
    assert "polled router/t; under way were 64 with collector snmp" in event.message
    assert (event.device, event.target_id, event.data["collector"]) == ("router", 1, "snmp")
    [row] = run_pages.recent(services.engine)
    assert (row.run.outcome, row.run.error_code) == (Result.FAILED, error_codes.WORKER_DIED)
    assert services.board.statuses([1])[1].breaker.trips == 1
    assert services.board.sizes() == (1, 1, 0)


def test_the_release_of_the_dead_worker_is_blamed_not_the_one_of_the_reporter(
    services: Services,
) -> None:
    """The reporter may have started before the plugin was installed or updated."""
    die(services, 1, {"other": "other 1.0", "snmp": "poller 99.0"}, fault="it stood still\n")
    [event] = report(services)
    assert "while collector snmp (poller 99.0) polled router/t" in event.message
    [(release, record)] = quarantine_records.read(services.redis, services.keys).items()
    assert (str(release), record.trust) == ("collector snmp (poller 99.0)", Trust.ISOLATED)


def test_a_run_that_another_worker_has_taken_over_is_not_touched(services: Services) -> None:
    """The lease ended before the check, and another worker polls the target."""
    services.board.reap("", 10, services.board.now_ms() + 60_000)
    services.board.demand([1])
    services.board.claim("", "b", "a", {QUEUE: 100}, ROOM)
    services.board.start("b", 0, "y", 15_000, [1])
    die(services, 1)
    assert len(report(services)) == 1
    assert run_pages.recent(services.engine) == []
    assert services.board.hold("b", 1_000, [1]) == {1: Result.OK}


@pytest.mark.parametrize("fault", ["", 'Fatal\n  File "x/handler_call.py", line 9 in _call\n'])
def test_while_a_job_ran_no_collector_is_blamed(services: Services, fault: str) -> None:
    """The event names the job; the target gets no failure, and its collector no incident."""
    die(services, 1, fault=fault, job="nightly")
    [event] = report(services)
    assert event.message.startswith("dead@host died while job nightly ran")
    assert "polls under way were 64 with collector snmp" in event.message
    assert event.data["jobs"] == ["nightly"]
    assert run_pages.recent(services.engine) == []
    assert quarantine_records.read(services.redis, services.keys) == {}


def test_a_fault_in_a_collector_is_its_own_while_a_job_runs(services: Services) -> None:
    """The stack shows no handler of a job."""
    die(services, 1, fault='Fatal\n  File "x/wire.py", line 9 in read\n', job="nightly")
    [event] = report(services)
    assert "polled router/t" in event.message
    [row] = run_pages.recent(services.engine)
    assert row.run.error_code == error_codes.WORKER_DIED


def test_without_running_code_the_event_counts_the_running_polls(services: Services) -> None:
    """The worker was killed while it waited for the network."""
    die(services, 0)
    [event] = report(services)
    assert event.message.startswith(
        "dead@host died while it polled targets: 64 with collector snmp"
    )
    assert run_pages.recent(services.engine) == []


def test_a_target_that_was_removed_since_is_reported_without_a_name(services: Services) -> None:
    """The file is deleted all the same."""
    die(services, 99)
    assert len(report(services)) == 1
    assert list((services.settings.home / "flights").iterdir()) == []


def test_a_loss_that_a_worker_has_reported_is_not_reported_by_the_leader(
    services: Services,
) -> None:
    """One killed worker is one event, with its cause."""
    seen_ms = worker_registry.announce(services.redis, services.keys, DEAD)
    check(services, WorkerWatch(services), seen_ms)
    die(services, 1)
    assert len(report(services)) == 1
    watch = WorkerWatch(services)
    assert check(services, watch, seen_ms + worker_registry.DEAD_AFTER_MS) == []
    assert check(services, watch, seen_ms + worker_registry.DEAD_AFTER_MS) == []


def test_a_loss_that_the_leader_has_noticed_is_explained_by_an_event_of_its_own(
    services: Services,
) -> None:
    """The next worker of the host starts later than a silent one counts as lost."""
    seen_ms = worker_registry.announce(services.redis, services.keys, DEAD)
    watch = WorkerWatch(services)
    event_publisher.publish(services, check(services, watch, seen_ms))
    event_publisher.publish(
        services, check(services, watch, seen_ms + worker_registry.DEAD_AFTER_MS)
    )
    die(services, 1)
    [event] = report(services)
    assert event.message == "dead@host sent no heartbeat for 10 s"
    entries = stream.newest(services.redis, services.keys, 10)
    [explained] = [
        entry.event
        for entry in entries
        if entry.event and entry.event.kind is Kind.WORKER_DEATH_EXPLAINED
    ]
    assert "polled router/t" in explained.message
    [row] = run_pages.recent(services.engine)
    assert row.run.error_code == error_codes.WORKER_DIED


def test_a_second_loss_of_a_worker_is_an_event_again(services: Services) -> None:
    """The worker came back in between."""
    kinds = []
    for started_ms in (1, 2):
        again = replace(DEAD, started_ms=started_ms)
        seen_ms = worker_registry.announce(services.redis, services.keys, again)
        watch = WorkerWatch(services)
        for now_ms in (seen_ms, seen_ms + worker_registry.DEAD_AFTER_MS):
            events = check(services, watch, now_ms)
            event_publisher.publish(services, events)
            kinds += [event.kind for event in events]
    assert kinds == [Kind.WORKER_JOINED, Kind.WORKER_LOST] * 2
