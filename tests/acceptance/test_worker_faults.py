"""Workers are killed, frozen or missing while the cluster polls: every target is polled again within its lease."""

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

TARGETS, INTERVAL_S, POLL_S, TIMEOUT_S = 120, 2.0, 0.6, 0.9
MARGIN_S, QUEUE_WAIT_S = 3.0, 3.0
#: From the start of a poll until its target is taken away from a worker that says nothing any more.
LEASE_S = TIMEOUT_S + MARGIN_S
NUMBERS = {
    "POLLER_LEASE_MARGIN_S": f"{MARGIN_S:g}",
    "POLLER_SPOOL_PATIENCE_S": f"{MARGIN_S / 10:g}",
    "POLLER_QUEUE_WAIT_S": f"{QUEUE_WAIT_S:g}",
}


def polling(cluster: Cluster, workers: int) -> None:
    """So many workers, each with polls under way."""
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
    """Waits for the middle of a batch; the polls that run."""

    def running() -> list[Poll] | None:
        now = time.time()
        found = [
            poll
            for poll in cluster.record.polls(now - 1)
            if poll.pid == worker.pid and poll.end is None
        ]
        return (
            found
            if len(found) >= 5 and all(now - poll.start < POLL_S / 2 for poll in found)
            else None
        )

    return soon(running, 20, "a batch is under way")


def left_behind(cluster: Cluster, worker: Program) -> list[Poll]:
    """Polls of a worker that stopped, which have no end."""
    return [poll for poll in cluster.record.polls() if poll.pid == worker.pid and poll.end is None]


def rows(cluster: Cluster, since: float) -> list[Any]:
    query = sa.select(runs).where(runs.c.plan_ms >= since * 1000).order_by(runs.c.plan_ms)
    with cluster.services.engine.connect() as conn:
        return list(conn.execute(query))


def closed_as_lost(cluster: Cluster, targets: set[int]) -> bool:
    """The ledger has a row for the runs of these that nobody finished."""
    found = [row for row in rows(cluster, 0) if row.error_code == error_codes.LEASE_LOST]
    assert {row.outcome for row in found} <= {Result.FAILED}
    return {row.target_id for row in found} >= targets


def polled_again(cluster: Cluster, lost: list[Poll], since: float) -> float:
    """How long it took until the last of these was polled by somebody else."""
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


@pytest.mark.parametrize("workers", [2, 1], ids=["by another worker", "by its successor"])
def test_what_a_killed_worker_held_is_polled_again_within_the_lease(
    tmp_path: Path, workers: int
) -> None:
    """kill -9 in the middle of a batch: nothing doubled, nothing lost, and the ledger says what became of the runs."""
    with Cluster(tmp_path, **NUMBERS) as cluster:
        polling(cluster, workers)
        began, victim = time.time(), cluster.workers.pop()
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
            poll.end = killed  # as the kernel saw it
        # What had been collected in its last moment was not finished on the board, and is polled again.
        cluster.never_doubled(
            began, lambda poll: poll.end is not None and killed - 0.5 < poll.end < killed
        )
        cluster.checked()


def test_a_worker_that_wakes_up_after_its_lease_is_refused(tmp_path: Path) -> None:
    """SIGSTOP, SIGCONT: others polled its targets meanwhile; what it has is nobody's, and it polls on."""
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
            "its watchdog would have had enough, were it awake",
        )
        sleeper.thaw()
        woke = time.time()
        soon(
            lambda: "late_results_refused" in sleeper.text(), 10, "it is told that it came too late"
        )
        soon(
            lambda: any(p.pid == sleeper.pid for p in cluster.record.polls(woke + 1)),
            20,
            "it polls on",
        )
        assert sleeper.runs
        assert closed_as_lost(cluster, ids), "what came late was written over the row"
        stop_beats(cluster)
        good = [row for row in rows(cluster, 0) if row.outcome == Result.OK]
        with cluster.services.engine.connect() as conn:
            written = conn.execute(sa.select(sa.func.count()).select_from(readings)).scalar_one()
        assert written == len(good), "readings of a run that was refused, or too few"
        cluster.sound()


def stop_beats(cluster: Cluster) -> None:
    """Nothing new begins, and what was under way is written."""
    for beat in cluster.beats:
        beat.terminate()
        beat.wait(10)
    soon(lambda: cluster.services.board.sizes()[2] == 0, 10, "nothing is in flight")


def test_a_worker_that_is_killed_while_it_holds_retries_loses_nothing(tmp_path: Path) -> None:
    """They waited in its memory only: the lease brings each of them back."""
    wait_s, devices = 6, 90
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
        killed, held = time.time(), held_retries(cluster)
        cluster.start_worker()
        lease_s = wait_s + QUEUE_WAIT_S + MARGIN_S

        def back() -> bool:
            return held <= {row.target_id for row in rows(cluster, killed)}

        soon(back, lease_s + 2, f"{len(held)} targets are polled again")
        print(
            f"{len(held)} retries: polled again within {time.time() - killed:.1f} s; the lease was {lease_s:.1f} s"
        )
        cluster.checked()


def held_retries(cluster: Cluster) -> set[int]:
    """Targets whose first attempt failed and that are still in flight."""
    in_flight = {
        int(key) for key in cluster.valkey.client.zrange(cluster.services.keys.inflight, 0, -1)
    }
    return in_flight & {row.target_id for row in rows(cluster, 0) if row.attempt == 1}


def test_batches_that_nobody_took_are_polled_once_when_workers_come(tmp_path: Path) -> None:
    """A frozen worker lets its queue fill up; its successors find stale batches, and refuse what was taken back."""
    small = {"POLLER_BATCH_SIZE": "4", "POLLER_MAX_QUEUE": "5"}
    with Cluster(tmp_path, **NUMBERS, **small) as cluster:
        polling(cluster, workers=1)
        [frozen] = cluster.workers
        queue = "poll.recorder\x06\x165"
        frozen.freeze()
        soon(lambda: cluster.valkey.client.llen(queue) >= 5, 20, "the queue is full")
        soon(lambda: lost_unstarted(cluster), 20, "batches were taken back")
        assert cluster.valkey.client.llen(queue) == 5, "a full queue was filled on"
        frozen.kill()
        cluster.workers.clear()
        for poll in left_behind(cluster, frozen):
            poll.end = time.time()
        came = time.time()
        news = [cluster.start_worker() for _ in range(2)]
        cluster.all_polled(came, 30)
        soon(
            lambda: any("runs_refused" in worker.text() for worker in news),
            10,
            "what was taken back is refused",
        )
        cluster.never_doubled(came)
        cluster.checked()


def lost_unstarted(cluster: Cluster) -> bool:
    return any(row.message == "no worker took the batch in time" for row in rows(cluster, 0))


def test_without_workers_everything_waits_and_nothing_is_queued(tmp_path: Path) -> None:
    """They come an hour or a minute later: each target is polled once, at once, and then in its slots."""
    with Cluster(tmp_path, **NUMBERS) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, 0.0)
        beat = cluster.start_beat()
        soon(
            lambda: cluster.services.board.sizes()[:2] == (TARGETS, TARGETS),
            30,
            "all are on the board, and wait",
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
    keys, now = cluster.services.keys, time.time() * 1000
    return bool(
        cluster.valkey.client.zcount(keys.due("poll.recorder"), "-inf", now - 500) == TARGETS
    )
