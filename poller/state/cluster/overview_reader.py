"""The overview of the cluster, read in a few round trips whatever the size of the fleet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from redis import Redis
from redis.client import Pipeline

from poller.domain.batched import batched
from poller.domain.metrics import poll_totals
from poller.domain.record.overview import (
    LastError,
    Leader,
    Overview,
    State,
    Worker,
)
from poller.domain.record.target_status import OPEN, REASONS, STATES
from poller.state.board import failing_targets, unstarted_runs
from poller.state.cluster import (
    event_stream,
    prune_notice,
    queue_loads,
    site_windows,
    stats_slices,
    worker_registry,
)
from poller.state.cluster.queue_loads import QueueSizes
from poller.state.cluster.stats_slices import Slice, number
from poller.state.keys import SLICE_MS, Keys
from poller.state.redis_client import store_errors

SLICES = 90  # fifteen minutes
RECENT_SLICES = 30  # five minutes
MINUTE_SLICES = 6
STANDBY_SEEN_MS = 5_000
EVENTS = 100
ERRORS = 20
_ERROR_FIELDS = [field.name for field in fields(LastError)]


@dataclass(frozen=True, slots=True)
class _Replies:
    """Replies of the server to the one pipeline of an overview."""

    counts: Mapping[str, str]
    in_flight: int
    parked: int
    opened: int
    held: int
    totals: Mapping[str, str]
    leader: Mapping[str, str]
    standbys: int
    errors: Sequence[str]
    events: Any
    prune_refused: str
    poll_totals: Mapping[str, str]
    queues: Mapping[str, QueueSizes]
    slices: Sequence[Slice]  # oldest first; the last one is not complete

    @property
    def last_minute(self) -> Sequence[Slice]:
        """The complete slices of the last minute."""
        complete = self.slices[:-1]
        return complete[-MINUTE_SLICES:]


@dataclass(frozen=True, slots=True)
class _StatusCounts:
    """Numbers of targets, from the marks of their statuses."""

    states: Counter[State]
    dead_letters: Mapping[str, int]  # by reason
    breakers_open: int


def read(client: Redis, keys: Keys) -> Overview:
    """Read the overview. Raises StoreUnavailable."""
    with store_errors(client, "overview"):
        seconds, micros = client.time()
        now_ms = seconds * 1000 + micros // 1000
        queues = sorted(str(queue) for queue in client.smembers(keys.queues))
        replies = _fetch(client, keys, now_ms, queues)

    statuses = _count_statuses(replies.counts)
    workers = worker_registry.registered(client, keys)
    last_minute = _since_start(replies.last_minute, workers, now_ms)
    loads = queue_loads.loads(client, replies.queues, last_minute, workers, now_ms)
    overdue_queues = [load.queue for load in loads if load.overdue]
    recent_slices = replies.slices[-RECENT_SLICES:]
    entries = event_stream.entries(replies.events)
    return Overview(
        as_of_ms=now_ms,
        targets=statuses.states.total(),
        states={state: statuses.states[state] for state in State},
        due=sum(load.due for load in loads),
        overdue=sum(load.overdue for load in loads),
        in_flight=replies.in_flight,
        parked=replies.parked,
        held=replies.held,
        dark=_dark_sites(client, keys) if replies.held else {},
        polls_per_second=stats_slices.polls_per_second(last_minute),
        outcomes=stats_slices.outcomes(recent_slices),
        lateness=stats_slices.lateness(recent_slices),
        recent=stats_slices.points(replies.slices, now_ms),
        loads=loads,
        leader=parse_leader(replies.leader),
        standbys=replies.standbys,
        workers=workers,
        errors=_errors(replies.errors),
        events=[entry.event for entry in entries if entry.event],
        totals=_totals(replies.totals),
        long_overdue=_count_long_overdue(client, keys, now_ms, overdue_queues),
        breakers_open=statuses.breakers_open,
        opened_by_hand=replies.opened,
        dead_letters=statuses.dead_letters,
        prune_refused=replies.prune_refused,
        lateness_sum=stats_slices.lateness_sum(replies.totals),
        unstarted=unstarted_runs.estimate(client, keys, now_ms) if replies.in_flight else 0,
        by_collector=_by_collector(replies.poll_totals),
    )


def _add_commands(pipe: Pipeline, keys: Keys, now_ms: int, queues: Sequence[str]) -> None:
    pipe.hgetall(keys.counts)
    pipe.zcard(keys.inflight)
    pipe.zcard(keys.parked)
    pipe.hlen(keys.opened)
    pipe.zcard(keys.held)
    pipe.hgetall(keys.totals)
    pipe.hgetall(keys.leader)
    pipe.exists(keys.lock)
    pipe.zcount(keys.standbys, now_ms - STANDBY_SEEN_MS, "+inf")
    pipe.lrange(keys.errors, 0, ERRORS - 1)
    pipe.xrevrange(keys.events, count=EVENTS)
    pipe.hget(keys.prune, prune_notice.TEXT)
    pipe.hgetall(keys.poll_totals)
    for queue in queues:
        queue_loads.add_to(pipe, keys, queue, now_ms)
    newest = now_ms // SLICE_MS
    for slice_number in range(newest - SLICES + 1, newest + 1):
        pipe.hgetall(keys.stats(slice_number))


def _fetch(client: Redis, keys: Keys, now_ms: int, queues: Sequence[str]) -> _Replies:
    """Send all commands at once and name the replies, which come in the order of the commands."""
    pipe = client.pipeline(transaction=False)
    _add_commands(pipe, keys, now_ms, queues)
    counts, in_flight, parked, opened, held, totals, leader, locked, *rest = pipe.execute()
    standbys, errors, events, prune_refused, poll_counts, *rest = rest

    slices = rest[-SLICES:]
    rows = batched(rest[:-SLICES], len(QueueSizes._fields))
    sizes = map(QueueSizes._make, rows)
    return _Replies(
        counts=counts,
        in_flight=in_flight,
        parked=parked,
        opened=opened,
        held=held,
        totals=totals,
        leader=leader if locked else {},
        standbys=standbys,
        errors=errors,
        events=events,
        prune_refused=prune_refused or "",
        poll_totals=poll_counts,
        queues=dict(zip(queues, sizes, strict=True)),
        slices=slices,
    )


def _count_statuses(counts: Mapping[str, str]) -> _StatusCounts:
    states: Counter[State] = Counter()
    reasons: Counter[str] = Counter()
    breakers_open = 0
    for mark, text in counts.items():
        targets = number(text)
        state = STATES.get(mark[:1])
        if state:
            states[state] += targets

        reason = REASONS.get(mark[-1:])
        if reason:
            reasons[reason.value] += targets

        if OPEN in mark:
            breakers_open += targets

    return _StatusCounts(states, dict(+reasons), breakers_open)


def _since_start(
    slices: Sequence[Slice], workers: Sequence[Worker], now_ms: int
) -> Sequence[Slice]:
    """The slices without those before the first worker started: a rate counts from there."""
    living = [worker for worker in workers if worker_registry.is_alive(worker, now_ms)]
    started_ms = min((worker.started_ms for worker in living), default=0)
    current_ms = now_ms // SLICE_MS * SLICE_MS
    oldest_end_ms = current_ms - (len(slices) - 1) * SLICE_MS

    before_start = 0
    for counts in slices[:-1]:
        end_ms = oldest_end_ms + before_start * SLICE_MS
        if counts or end_ms > started_ms:
            break
        before_start += 1
    return slices[before_start:]


def _count_long_overdue(client: Redis, keys: Keys, now_ms: int, queues: Sequence[str]) -> int:
    """The number of stuck targets in the oldest page of each place."""
    stuck = failing_targets.long_overdue(
        client,
        keys,
        queues,
        now_ms,
        pages=1,
    )
    return sum(1 for _ in stuck)


def _dark_sites(client: Redis, keys: Keys) -> dict[str, int]:
    starts = {}
    for outage in site_windows.dark(client, keys).values():
        starts[outage.site] = outage.since_ms

    return starts


def parse_leader(record: Mapping[str, str]) -> Leader | None:
    """The leader of a `leader` record; None for an empty record."""
    if not record:
        return None
    return Leader(
        name=record.get("name", ""),
        epoch=number(record.get("epoch")),
        since_ms=number(record.get("since")),
    )


def _errors(texts: Sequence[str]) -> list[LastError]:
    """The last failures. Texts of other programs are left out."""
    errors = []
    for text in texts:
        try:
            values = zip(_ERROR_FIELDS, json.loads(text), strict=True)
            errors.append(LastError(**dict(values)))
        except (ValueError, TypeError):
            continue

    return errors


def _by_collector(fields: Mapping[str, str]) -> dict[str, poll_totals.PollTotals]:
    return poll_totals.parse((name, number(text)) for name, text in fields.items())


def _totals(totals: Mapping[str, str]) -> dict[str, int]:
    """The totals without those of lateness and queues."""
    shown = {}
    for name, value in totals.items():
        if not name.startswith(("l", "q:")):
            shown[name] = number(value)

    return shown
