"""All that Redis knows about a few targets and their surroundings, in two round trips."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from poller.domain.failures.quarantine import Record
from poller.domain.failures.site_outage import Outage
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import affinity
from poller.domain.why.target_facts import BoardRow, ClusterFacts, QueueFacts
from poller.state.board import board_rows
from poller.state.board.record_formats import FIRST_INSTANT_MS, Spec
from poller.state.cluster import (
    overview_reader,
    quarantine_records,
    site_windows,
    worker_registry,
)
from poller.state.cluster.quarantine_records import Release
from poller.state.keys import ROUTINE_MARK, Keys
from poller.state.redis_client import store_errors

#: A target that moves while it is read may be seen in no place; it is read once more.
_TRIES = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """Replies of Redis as values. `rows` lacks targets that are not on the board."""

    now_ms: int
    cluster: ClusterFacts  # without crash records, which are those of one collector
    crashes: Mapping[Release, Record]
    outage: Outage | None
    neighbours: Mapping[int, Status]
    rows: Mapping[int, BoardRow]
    queues: Mapping[str, QueueFacts]


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The replies to the first pipeline."""

    now_ms: int
    specs: Mapping[int, Spec]
    cluster: ClusterFacts
    crashes: Mapping[Release, Record]
    outage: Outage | None
    neighbours: Mapping[int, Status]


def read(
    client: Redis, keys: Keys, ids: Sequence[int], site: str = "", neighbours: Sequence[int] = ()
) -> Evidence:
    """Read targets of one site, and the statuses of its other targets. Raises StoreError."""
    with store_errors(client):
        around = _read_surroundings(client, keys, ids, site, neighbours)
        for _ in range(_TRIES):
            rows, queues = _read_rows(client, keys, around)
            if all(row.place for row in rows.values()):
                break
    return Evidence(
        now_ms=around.now_ms,
        cluster=around.cluster,
        crashes=around.crashes,
        outage=around.outage,
        neighbours=around.neighbours,
        rows=rows,
        queues=queues,
    )


def _read_surroundings(
    client: Redis, keys: Keys, ids: Sequence[int], site: str, neighbours: Sequence[int]
) -> _Surroundings:
    pipe = client.pipeline(transaction=False)
    pipe.time()
    pipe.hmget(keys.spec, [str(target_id) for target_id in ids])
    pipe.hgetall(keys.workers)
    pipe.hgetall(keys.leader)
    pipe.exists(keys.lock)
    pipe.zrange(keys.standbys, 0, -1, withscores=True)
    pipe.hget(keys.board, "clock")
    pipe.hgetall(keys.doubts)
    pipe.hget(keys.dark, site)
    # HMGET takes at least one field; 0 is no target.
    pipe.hmget(keys.status, [str(target_id) for target_id in neighbours] or ["0"])
    clock, specs, workers, leader, locked, standbys, claimed, doubts, dark, texts = pipe.execute()

    now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
    registered = worker_registry.not_superseded(worker_registry.parse_entries(workers))
    living = [worker for worker in registered if worker_registry.is_alive(worker, now_ms)]
    lost = [worker for worker in registered if not worker_registry.is_alive(worker, now_ms)]
    recent_ms = now_ms - overview_reader.STANDBY_SEEN_MS
    cluster = ClusterFacts(
        leader=overview_reader.parse_leader(leader) if locked else None,
        standbys=sum(seen_ms >= recent_ms for _, seen_ms in standbys),
        clock_ms=int(claimed) if claimed and claimed.isdigit() else 0,
        living=living,
        lost=lost,
    )
    return _Surroundings(
        now_ms=now_ms,
        specs=board_rows.parse_specs(ids, specs),
        cluster=cluster,
        crashes=quarantine_records.parse(doubts),
        outage=site_windows.parse_outage(dark) if dark else None,
        neighbours=_statuses(neighbours, texts),
    )


def _statuses(ids: Sequence[int], texts: Sequence[str | None]) -> dict[int, Status]:
    statuses = {}
    for target_id, text in zip(ids, texts, strict=False):
        if text:
            statuses[target_id] = target_status.unpack(text)
    return statuses


def _read_rows(
    client: Redis, keys: Keys, around: _Surroundings
) -> tuple[dict[int, BoardRow], dict[str, QueueFacts]]:
    """Places and queues in one transaction: a target is not seen on its way."""
    specs = around.specs
    if not specs:
        return {}, {}
    queues = sorted({spec.queue for spec in specs.values()})
    own_queues = affinity.own_queues(around.cluster.living)

    pipe = client.pipeline(transaction=True)
    board_rows.add_commands(pipe, keys, specs)
    for queue in queues:
        pipe.zcount(keys.due(queue), FIRST_INSTANT_MS, around.now_ms)
        pipe.zcount(keys.urgent(queue), "-inf", around.now_ms)
        for name in _lists(queue, own_queues):
            pipe.llen(name)
    replies: Any = pipe.execute()

    number = board_rows.replies(specs)
    rows = board_rows.parse(specs, replies[:number], around.now_ms)
    return rows, _queues(queues, own_queues, replies[number:])


def _lists(queue: str, own_queues: Collection[str]) -> list[str]:
    """The Celery lists of a queue: the shared ones, and those of single workers."""
    own = sorted(name for name in own_queues if affinity.shared_queue(name) == queue)
    return [name + mark for name in (queue, *own) for mark in ("", ROUTINE_MARK)]


def _queues(
    queues: Sequence[str], own_queues: Collection[str], replies: Sequence[int]
) -> dict[str, QueueFacts]:
    found = {}
    position = 0
    for queue in queues:
        due, urgent = replies[position : position + 2]
        lists = len(_lists(queue, own_queues))
        lengths = replies[position + 2 : position + 2 + lists]
        position += 2 + lists
        found[queue] = QueueFacts(batches=sum(lengths), overdue=due + urgent)
    return found
