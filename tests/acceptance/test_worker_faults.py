"""Workers are killed, frozen or missing: every target is polled again within its lease."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from poller.db.inventory import imports
from poller.db.tables import readings, runs
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.workers.guard.loop_watchdog import BAD_CHECKS, CHECK_S
from tests.acceptance import troublemaker
from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.records import Poll

pytestmark = pytest.mark.timeout(180)

TARGETS = 120
INTERVAL_S = 2.0
POLL_S = 0.6
TIMEOUT_S = 0.9
MARGIN_S = 3.0
QUEUE_WAIT_S = 3.0
#: The time from the start of a poll until the leader reaps the target of a silent worker.
LEASE_S = TIMEOUT_S + MARGIN_S
NUMBERS = {
    "POLLER_LEASE_MARGIN_S": f"{MARGIN_S:g}",
    "POLLER_SPOOL_PATIENCE_S": f"{MARGIN_S / 10:g}",
    "POLLER_QUEUE_WAIT_S": f"{QUEUE_WAIT_S:g}",
}


def polling(cluster: Cluster, workers: int) -> None:
    """Start workers, and wait until each of them polls."""
    cluster.valkey.start()
    cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
    cluster.start_beat()
    for _ in range(workers):
        cluster.start_worker()
    soon(
        lambda: len({poll.pid for poll in cluster.record.polls()}) == workers,
        30,
        "every worker polls",
    )
    cluster.all_polled(0, 30)


def busy(cluster: Cluster, worker: Program) -> list[Poll]:
    """Wait for the middle of a batch; return the running polls."""

    def running() -> list[Poll] | None:
        now = time.time()
        polls = []
        for poll in cluster.record.polls(now - 1):
            if poll.pid == worker.pid and poll.end is None:
                polls.append(poll)
        is_middle = all(now - poll.start < POLL_S / 2 for poll in polls)
        return polls if len(polls) >= 5 and is_middle else None

    return soon(running, 20, "a batch is running")


def left_behind(cluster: Cluster, worker: Program) -> list[Poll]:
    """Return the polls of a stopped worker that have no end."""
    return [poll for poll in cluster.record.polls() if poll.pid == worker.pid and poll.end is None]


def rows(cluster: Cluster, since: float) -> list[Any]:
    query = sa.select(runs).where(runs.c.plan_ms >= since * 1000).order_by(runs.c.plan_ms)
    with cluster.services.engine.connect() as conn:
        return list(conn.execute(query))


def closed_as_lost(cluster: Cluster, targets: set[int]) -> bool:
    """Whether the ledger has a row for the lost run of each of these targets."""
    lost = [row for row in rows(cluster, 0) if row.error_code == error_codes.LEASE_LOST]
    assert {row.outcome for row in lost} <= {Result.FAILED}
    return {row.target_id for row in lost} >= targets


def polled_again(cluster: Cluster, lost: list[Poll], since: float) -> float:
    """Return the seconds until the last of these targets was polled again."""
    waiting = {poll.target for poll in lost}
    cluster_polls = cluster.record.polls
    soon(
        lambda: waiting <= {poll.target for poll in cluster_polls(since)},
        LEASE_S + 10,
        "they are polled again",
    )
    first = {
        target: min(p.start for p in cluster_polls(since) if p.target == target)
        for target in waiting
    }
    return max(first.values()) - since


@pytest.mark.alone
@pytest.mark.parametrize("workers", [2, 1], ids=["by another worker", "by its successor"])
def test_the_targets_of_a_killed_worker_are_polled_again_within_the_lease(
    tmp_path: Path, workers: int
) -> None:
    """After kill -9 in a batch no poll is doubled or lost, and the ledger has the lost runs."""
    with Cluster(tmp_path, **NUMBERS) as cluster:
        polling(cluster, workers)
        began = time.time()
        victim = cluster.workers.pop()
        busy(cluster, victim)
        killed = time.time()
        victim.kill()
        if not cluster.workers:
            cluster.start_worker()
        lost = left_behind(cluster, victim)
        took_s = polled_again(cluster, lost, killed)
        print(
            f"{len(lost)} targets polled again within {took_s:.1f} s; the lease is {LEASE_S:.1f} s"
        )
        assert took_s <= LEASE_S + 2
        soon(
            lambda: closed_as_lost(cluster, {poll.target for poll in lost}),
            5,
            "they are closed in the ledger",
        )
        cluster.all_polled(time.time(), QUEUE_WAIT_S + MARGIN_S + 2)
        for poll in lost:
            poll.end = killed
        # Polls that ended just before the kill were not finished on the board, and are polled
        # again.
        cluster.never_doubled(
            began, lambda poll: poll.end is not None and killed - 0.5 < poll.end < killed
        )
        cluster.checked()


def test_the_results_of_a_worker_that_wakes_after_its_lease_are_refused(tmp_path: Path) -> None:
    """Other workers polled the targets of a stopped worker; its late results are refused, and it
    polls on.
    """
    with Cluster(tmp_path, **NUMBERS) as cluster:
        polling(cluster, workers=2)
        sleeper = cluster.workers[1]
        busy(cluster, sleeper)
        sleeper.freeze()
        frozen = time.time()
        lost = left_behind(cluster, sleeper)
        took_s = polled_again(cluster, lost, frozen)
        assert took_s <= LEASE_S + 2
        ids = {poll.target for poll in lost}
        soon(lambda: closed_as_lost(cluster, ids), 5, "they are closed in the ledger")
        soon(
            lambda: time.time() > frozen + BAD_CHECKS * CHECK_S + 2,
            20,
            "a running watchdog would have ended it",
        )
        sleeper.thaw()
        woke = time.time()
        soon(lambda: "late_results_refused" in sleeper.text(), 10, "its results are refused")
        soon(
            lambda: any(p.pid == sleeper.pid for p in cluster.record.polls(woke + 1)),
            20,
            "it polls on",
        )
        assert sleeper.runs
        assert closed_as_lost(cluster, ids), "a late result replaced the row"
        stop_beats(cluster)
        good = [row for row in rows(cluster, 0) if row.outcome == Result.OK]
        with cluster.services.engine.connect() as conn:
            written = conn.execute(sa.select(sa.func.count()).select_from(readings)).scalar_one()
        assert written == len(good), "readings of a refused run, or too few"
        cluster.sound()


def stop_beats(cluster: Cluster) -> None:
    """Stop the leader, and wait until running polls are written."""
    for beat in cluster.beats:
        beat.terminate()
        beat.wait(10)
    soon(lambda: cluster.services.board.sizes()[2] == 0, 10, "no target is in flight")


def test_the_retries_of_a_killed_worker_are_polled_after_their_lease(tmp_path: Path) -> None:
    """Retries that waited in the memory of a killed worker come back with their leases."""
    wait_s = 6
    devices = 90
    with Cluster(tmp_path, **NUMBERS, POLLER_RETRY_BASE_S=str(wait_s)) as cluster:
        troublemaker.install(tmp_path / "plugins")
        cluster.valkey.start()
        draft = TargetDraft(
            "t", troublemaker.NAME, {"do": "time_out"}, interval_ms=30_000, timeout_ms=900
        )
        fleet = [
            imports.Row(DeviceDraft(f"t{number}", "127.0.0.1"), [draft])
            for number in range(devices)
        ]
        imports.apply_import(cluster.services.engine, fleet)
        cluster.start_beat()
        victim = cluster.start_worker()
        soon(lambda: len(held_retries(cluster)) >= 5, 60, "retries wait in the worker")
        victim.kill()
        cluster.workers.remove(victim)
        killed = time.time()
        held = held_retries(cluster)
        cluster.start_worker()
        lease_s = wait_s + QUEUE_WAIT_S + MARGIN_S

        def back() -> bool:
            return held <= {row.target_id for row in rows(cluster, killed)}

        soon(back, lease_s + 2, f"{len(held)} targets are polled again")
        took_s = time.time() - killed
        print(f"{len(held)} retries polled again in {took_s:.1f} s; the lease was {lease_s:.1f} s")
        cluster.checked()


def held_retries(cluster: Cluster) -> set[int]:
    """Return the targets whose first attempt failed and that are still in flight."""
    in_flight = {
        int(key) for key in cluster.valkey.client.zrange(cluster.services.keys.inflight, 0, -1)
    }
    return in_flight & {row.target_id for row in rows(cluster, 0) if row.attempt == 1}


def test_batches_of_a_full_queue_are_polled_once_when_workers_start(tmp_path: Path) -> None:
    """A frozen worker lets its queue fill up; its successors refuse batches whose lease ended."""
    small = {"POLLER_BATCH_SIZE": "4", "POLLER_MAX_QUEUE": "5"}
    with Cluster(tmp_path, **NUMBERS, **small) as cluster:
        polling(cluster, workers=1)
        [frozen] = cluster.workers
        queue = "poll.recorder\x06\x165"
        frozen.freeze()
        soon(lambda: cluster.valkey.client.llen(queue) >= 5, 20, "the queue is full")
        soon(lambda: lost_unstarted(cluster), 20, "batches were reaped")
        assert cluster.valkey.client.llen(queue) == 5, "a full queue grew"
        frozen.kill()
        cluster.workers.clear()
        for poll in left_behind(cluster, frozen):
            poll.end = time.time()
        started = time.time()
        successors = [cluster.start_worker() for _ in range(2)]
        cluster.all_polled(started, 30)
        soon(
            lambda: any("runs_refused" in worker.text() for worker in successors),
            10,
            "reaped batches are refused",
        )
        cluster.never_doubled(started)
        cluster.checked()


def lost_unstarted(cluster: Cluster) -> bool:
    return any(row.message == "no worker took the batch in time" for row in rows(cluster, 0))


def test_without_workers_targets_wait_and_no_batch_is_queued(tmp_path: Path) -> None:
    """When a worker starts, each target is polled once, at once, and then in its slots."""
    with Cluster(tmp_path, **NUMBERS) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, 0.0)
        beat = cluster.start_beat()
        soon(
            lambda: cluster.services.board.sizes()[:2] == (TARGETS, TARGETS),
            30,
            "all targets are due",
        )
        soon(lambda: all_overdue(cluster), 10, "all are overdue")
        assert cluster.valkey.client.keys("poll.*") == []
        came = time.time()
        cluster.start_worker()
        cluster.all_polled(came, 20)
        cluster.never_doubled(came)
        assert beat.runs
        assert not [row for row in rows(cluster, 0) if row.error_code]
        cluster.checked()


def all_overdue(cluster: Cluster) -> bool:
    key = cluster.services.keys.due("poll.recorder")
    overdue_ms = time.time() * 1000 - 500
    return bool(cluster.valkey.client.zcount(key, "-inf", overdue_ms) == TARGETS)
