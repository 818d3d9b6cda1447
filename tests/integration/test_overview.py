"""The overview, read from a real server."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess

import pytest
import redis

from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.overview import State, Worker
from poller.presentation.health import Level
from poller.state.board import unstarted_runs
from poller.state.board.board_values import ClaimLimits, Move
from poller.state.board.moves import Board
from poller.state.cluster import overview_reader, worker_registry
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import SLICE_MS, Keys
from poller.web.api import metrics
from tests.conftest import missing

KEYS = Keys()
LIMITS = ClaimLimits(targets=100, batch_size=10, lease_ms=30_000)


def test_an_empty_server_is_an_empty_overview(redis_client: redis.Redis) -> None:
    """There is no leader, no worker, no target and no error."""
    view = overview_reader.read(redis_client, KEYS)
    assert (view.targets, view.leader, view.workers, view.recent, view.errors) == (
        0,
        None,
        [],
        [],
        [],
    )


def test_the_overview_shows_states_places_polls_and_processes(redis_client: redis.Redis) -> None:
    """One of two targets failed, 40 ms late; one worker serves one of two queues."""
    board, leader = Board(redis_client, KEYS), Leadership(redis_client, KEYS, 60_000)
    leader.take()
    specs = [
        TargetSpec(1, 1, "poll.snmp", 60_000, 5_000),
        TargetSpec(2, 1, "poll.hello", 60_000, 5_000),
    ]
    board.place(leader.token, [(spec, 1) for spec in specs], 1)
    worker_registry.announce(
        redis_client, KEYS, Worker("w", 0, 0, 7, 1, 2**20, queues=["poll.snmp"])
    )
    board.claim(leader.token, "t", "", {"poll.snmp": 10}, LIMITS)
    now_ms = board.start("t", 0, "c", 15_000, [1]).now_ms
    error = f'[{now_ms}, 1, "sw1", "snmp", "timeout", "no answer"]'
    stats = {"polls": 1, "failed": 1, "l39": 1, "lmax": 40, "missed_slots": 0}
    board.finish("t", [Move(1, now_ms + 60_000, "f[1]")], stats=stats, errors=[error])
    view = overview_reader.read(redis_client, KEYS)
    assert view.states == {State.OK: 0, State.DEGRADED: 0, State.FAILING: 1, State.UNKNOWN: 1}
    assert (view.targets, view.due, view.overdue, view.in_flight) == (2, 2, 1, 0)
    assert view.unserved == {"poll.hello": 1}
    assert view.outcomes == {"failed": 1}
    assert (view.lateness.count, view.lateness.max_ms) == (1, 40)
    assert view.lateness.p99_ms <= 40
    assert view.leader is not None
    assert (view.leader.name, view.leader.epoch) == (leader.name, 1)
    assert [(w.name, w.polls) for w in view.workers] == [("w", 7)]
    assert [(e.device, e.code) for e in view.errors] == [("sw1", "timeout")]
    assert view.totals["polls"] == 1


def test_promtool_accepts_the_metrics(redis_client: redis.Redis, leader: Leadership) -> None:
    """The quantiles are of a summary, with the number of all polls and the sum of lateness."""
    promtool = shutil.which("promtool") or missing("promtool is not installed: package prometheus")
    Board(redis_client, KEYS).count({"polls": 1, "ok": 1, "l39": 1, "lmax": 40})
    scrape = metrics.render(overview_reader.read(redis_client, KEYS), Level.OK)
    checked = subprocess.run([promtool, "check", "metrics"], input=scrape, capture_output=True)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")
    assert b'poller_lateness_seconds{quantile="0.99"} 0.04' in scrape
    assert b"poller_lateness_seconds_count 1.0" in scrape


def test_the_rate_of_a_new_cluster_counts_from_its_start(redis_client: redis.Redis) -> None:
    """Twenty polls in the twenty seconds since the first worker started are one a second."""
    board = Board(redis_client, KEYS)
    now_ms = board.now_ms() // SLICE_MS * SLICE_MS
    for slices_ago in (1, 2):
        key = KEYS.stats(now_ms // SLICE_MS - slices_ago)
        redis_client.hset(key, mapping={"polls": 10, "q:poll.snmp": 10})
    redis_client.sadd(KEYS.queues, "poll.snmp")
    started_ms = now_ms - 2 * SLICE_MS
    worker = Worker("w", 0, started_ms, 20, 0, 2**20, queues=["poll.snmp"])
    worker_registry.announce(redis_client, KEYS, worker)

    view = overview_reader.read(redis_client, KEYS)
    assert view.polls_per_second == pytest.approx(1.0, rel=0.35)  # the clock may enter a slice
    assert view.loads[0].done_per_s == view.polls_per_second

    worker_registry.announce(redis_client, KEYS, dataclasses.replace(worker, started_ms=1))
    assert overview_reader.read(redis_client, KEYS).polls_per_second == pytest.approx(20 / 60)


def test_damaged_entries_do_not_hide_the_others(redis_client: redis.Redis) -> None:
    """The overview leaves out damaged entries of every key."""
    redis_client.hset(KEYS.workers, mapping={"x": "rubbish", "y": '{"name": 1}', "z": "[]"})
    redis_client.lpush(KEYS.errors, "rubbish", "[1]", "{}")
    redis_client.sadd(KEYS.queues, "rubbish;", "poll.;;=")
    redis_client.hset(KEYS.status, "1", "rubbish")
    redis_client.set(KEYS.lock, "x")
    now_ms = int(redis_client.time()[0]) * 1000
    for key in (KEYS.counts, KEYS.totals, KEYS.leader, KEYS.needs, KEYS.stats(now_ms // 10_000)):
        redis_client.hset(
            key,
            mapping=dict.fromkeys(
                ("o", "polls", "epoch", "lmax", "l1", "q:x", "rubbish;"), "rubbish"
            ),
        )
    view = overview_reader.read(redis_client, KEYS)
    assert (view.workers, view.errors) == ([], [])


def test_a_worker_that_left_or_has_been_dead_for_long_is_forgotten(
    redis_client: redis.Redis,
) -> None:
    """A worker that leaves goes at once, a dead one after `FORGET_AFTER_MS`."""
    one = Worker("one", 0, 0, 0, 0, 0)
    seen_ms = worker_registry.announce(redis_client, KEYS, one)
    worker_registry.announce(redis_client, KEYS, dataclasses.replace(one, name="two"))
    worker_registry.leave(redis_client, KEYS, "two")
    assert [w.name for w in worker_registry.living(redis_client, KEYS, seen_ms + 1_000)] == ["one"]
    assert (
        worker_registry.living(redis_client, KEYS, seen_ms + worker_registry.DEAD_AFTER_MS + 1)
        == []
    )
    entries = worker_registry.registered(redis_client, KEYS)
    assert worker_registry.forget_lost(redis_client, KEYS, entries, seen_ms + 1_000) == []
    assert worker_registry.forget_lost(
        redis_client, KEYS, entries, seen_ms + worker_registry.FORGET_AFTER_MS + 1
    ) == ["one"]
    assert worker_registry.registered(redis_client, KEYS) == []


@pytest.mark.parametrize(
    "entry",
    [
        '{"seen_ms":"abc"}',
        '{"name":null}',
        '{"queues":null}',
        '{"slots":null}',
        '{"queues":[1]}',
        "[",
        '{"tags":7}',
        "7",
    ],
)
def test_a_damaged_worker_entry_does_not_hide_the_others(
    redis_client: redis.Redis, entry: str
) -> None:
    """The other workers are alive."""
    worker_registry.announce(
        redis_client, KEYS, Worker("good", 0, 0, 7, 1, 2**20, queues=["poll.snmp"])
    )
    text = json.loads(str(redis_client.hget(KEYS.workers, "good")))
    strange = (
        json.dumps({**text, "name": "bad", **json.loads(entry)}) if entry.startswith("{") else entry
    )
    redis_client.hset(KEYS.workers, "bad", strange)
    assert [
        worker.name for worker in worker_registry.living(redis_client, KEYS, text["seen_ms"])
    ] == ["good"]


def test_a_worker_of_a_newer_release_is_alive(redis_client: redis.Redis) -> None:
    """During an upgrade a leader of the older release gives it batches."""
    worker_registry.announce(
        redis_client, KEYS, Worker("newer", 0, 0, 7, 1, 2**20, queues=["poll.snmp"])
    )
    text = json.loads(str(redis_client.hget(KEYS.workers, "newer")))
    redis_client.hset(KEYS.workers, "newer", json.dumps({**text, "what_comes_next": [1]}))
    assert [
        worker.queues for worker in worker_registry.living(redis_client, KEYS, text["seen_ms"])
    ] == [["poll.snmp"]]


def test_targets_in_flight_that_no_worker_starts_are_counted(redis_client: redis.Redis) -> None:
    """A batch of this moment does not count, nor does one that is being polled."""
    board, leader = Board(redis_client, KEYS), Leadership(redis_client, KEYS, 60_000)
    leader.take()
    now_ms = board.now_ms()
    queue = "poll.snmp"
    specs = [TargetSpec(key, 1, queue, 60_000, 5_000) for key in range(1, 7)]
    board.place(leader.token, [(spec, 1) for spec in specs], 1)
    tokens = [f"1.{now_ms - ago_ms:x}.{key}" for key, ago_ms in enumerate((9_000, 8_000, 0))]
    for published, token in zip(["", *tokens], tokens, strict=False):
        two = dataclasses.replace(LIMITS, targets=2, batch_size=2)
        board.claim(leader.token, token, published, {queue: 10}, two)
    board.start(tokens[0], 0, "c", 15_000, [1, 2])
    view = overview_reader.read(redis_client, KEYS)
    assert (view.in_flight, view.unstarted) == (6, 2)


def test_a_large_number_in_flight_is_estimated(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a sample is read, whatever the size of the fleet."""
    monkeypatch.setattr(unstarted_runs, "SAMPLE", 50)
    now_ms = int(redis_client.time()[0]) * 1000
    old = f"1.{now_ms - 60_000:x}.ab|{now_ms - 60_000}|0|"
    redis_client.zadd(KEYS.inflight, {str(key): now_ms for key in range(1_000)})
    redis_client.hset(KEYS.run, mapping={str(key): old for key in range(1_000)})
    assert unstarted_runs.estimate(redis_client, KEYS, now_ms) == 1_000
