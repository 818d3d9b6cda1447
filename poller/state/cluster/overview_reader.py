"""What people and metrics see, read from Redis in a few round trips however large the fleet is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from poller.domain.batched import batched
from poller.domain.metrics import histogram
from poller.domain.record.overview import (
    LastError,
    Lateness,
    Leader,
    Load,
    Overview,
    Point,
    State,
    Worker,
)
from poller.domain.record.target_status import OPEN, REASONS, STATES
from poller.domain.scheduling import affinity, capacity
from poller.state.board import failing_targets
from poller.state.cluster import event_stream, site_windows, worker_queues, worker_registry
from poller.state.keys import ROUTINE_MARK, SLICE_MS, Keys
from poller.state.redis_client import store_errors

SLICES = 90  # fifteen minutes
RECENT_SLICES = 30  # five minutes
MINUTE_SLICES = 6
STANDBY_SEEN_MS = 5_000
OVERDUE_MS = 1_000
CHANGES = 10
_FIGURES = 7  # asked for each queue
OUTCOMES = ("ok", "partial", "failed", "refused", "duplicate", "stale", "gone")


def read(client: redis.Redis, keys: Keys) -> Overview:
    """One look at the cluster. Raises StoreUnavailable."""
    with store_errors(client):
        seconds, micros = client.time()
        now_ms = seconds * 1000 + micros // 1000
        queues = sorted(str(queue) for queue in client.smembers(keys.queues))
        answers = _ask(client, keys, now_ms, queues)
    (
        counts,
        inflight,
        parked,
        opened,
        held,
        totals,
        leader,
        standbys,
        errors,
        changes,
        slices,
        waiting,
    ) = answers
    states, reasons, breakers_open = _counted(counts)
    everybody = worker_registry.known(client, keys)
    serving = Counter(
        queue for w in everybody if worker_registry.is_alive(w, now_ms) for queue in w.queues
    )
    done = _done(slices[-MINUTE_SLICES - 1 : -1])
    own = _waiting_for_one(client, everybody)
    loads = [
        _load(queue, figures, done[queue], serving[queue], own[queue])
        for queue, figures in zip(queues, waiting, strict=True)
    ]
    return Overview(
        as_of_ms=now_ms,
        targets=sum(states.values()),
        states={state: states[state] for state in State},
        due=sum(load.due for load in loads),
        overdue=sum(load.overdue for load in loads),
        in_flight=inflight,
        parked=parked,
        held=held,
        dark={outage.site: outage.since_ms for outage in site_windows.dark(client, keys).values()}
        if held
        else {},
        polls_per_second=_rate(slices[-MINUTE_SLICES - 1 : -1]),
        outcomes=_outcomes(slices[-RECENT_SLICES:]),
        lateness=_lateness(slices[-RECENT_SLICES:]),
        recent=_points(slices, now_ms),
        loads=loads,
        leader=_leader(leader),
        standbys=standbys,
        workers=everybody,
        errors=[error for error in map(_error, errors) if error],
        events=[entry.event for entry in event_stream.entries(changes) if entry.event],
        totals={
            name: _number(value)
            for name, value in totals.items()
            if not name.startswith(("l", "q:"))
        },
        long_overdue=_long_overdue(
            client, keys, now_ms, [load.queue for load in loads if load.overdue]
        ),
        breakers_open=breakers_open,
        opened_by_hand=opened,
        dead_letters=reasons,
    )


def _counted(counts: Mapping[str, str]) -> tuple[Counter[State], dict[str, int], int]:
    """Targets by state, dead letters by reason, and open breakers, from the marks of all statuses."""
    states: Counter[State] = Counter()
    reasons: Counter[str] = Counter()
    breakers_open = 0
    for mark, text in counts.items():
        number = _number(text)
        if mark[:1] in STATES:
            states[STATES[mark[:1]]] += number
        if mark[-1:] in REASONS:
            reasons[REASONS[mark[-1:]].value] += number
        breakers_open += number if OPEN in mark else 0
    return states, dict(+reasons), breakers_open


def _long_overdue(client: redis.Redis, keys: Keys, now_ms: int, queues: Sequence[str]) -> int:
    """Counted among the oldest of each queue: if there are more, polling is late by any measure."""
    return sum(1 for _ in failing_targets.long_overdue(client, keys, queues, now_ms, pages=1))


def _ask(client: redis.Redis, keys: Keys, now_ms: int, queues: Sequence[str]) -> tuple[Any, ...]:
    last = now_ms // SLICE_MS
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(keys.counts)
    pipe.zcard(keys.inflight)
    pipe.zcard(keys.parked)
    pipe.hlen(keys.opened)
    pipe.zcard(keys.held)
    pipe.hgetall(keys.totals)
    pipe.hgetall(keys.leader)
    pipe.exists(keys.lock)
    pipe.zcount(keys.standbys, now_ms - STANDBY_SEEN_MS, "+inf")
    pipe.lrange(keys.errors, 0, 19)
    pipe.xrevrange(keys.events, count=CHANGES)
    for queue in queues:
        for place in (keys.due(queue), keys.urgent(queue)):
            pipe.zcard(place)
            pipe.zcount(place, "-inf", now_ms - OVERDUE_MS)
        pipe.llen(queue)
        pipe.llen(queue + ROUTINE_MARK)
        pipe.hget(keys.needs, queue)
    for number in range(last - SLICES + 1, last + 1):
        pipe.hgetall(keys.stats(number))
    (
        counts,
        inflight,
        parked,
        opened,
        held,
        totals,
        leader,
        locked,
        standbys,
        errors,
        changes,
        *rest,
    ) = pipe.execute()
    end = _FIGURES * len(queues)
    waiting, slices = list(batched(rest[:end], _FIGURES)), rest[end:]
    leader = leader if locked else {}
    return (
        counts,
        inflight,
        parked,
        opened,
        held,
        totals,
        leader,
        standbys,
        errors,
        changes,
        slices,
        waiting,
    )


def _waiting_for_one(client: redis.Redis, everybody: Sequence[Worker]) -> Counter[str]:
    """Batches that wait in the own queues of workers, by the queue they belong to."""
    counted: Counter[str] = Counter()
    for name, waiting in worker_queues.depths(client, affinity.own_queues(everybody)).items():
        counted[affinity.shared(name)] += waiting
    return counted


def _load(queue: str, figures: Sequence[Any], done: int, serving: int, own: int) -> Load:
    due, overdue, urgent, urgent_overdue, first, routine, needs = figures
    needed_per_s, done_per_s = _number(needs) / 1e6, done / (MINUTE_SLICES * SLICE_MS / 1000)
    late = overdue + urgent_overdue
    short = capacity.shortage(needed_per_s, done_per_s, late)
    return Load(
        queue, due + urgent, late, first + routine + own, needed_per_s, done_per_s, serving, short
    )


def _done(slices: Sequence[Mapping[str, str]]) -> Counter[str]:
    """Polls by queue."""
    total: Counter[str] = Counter()
    for piece in slices:
        total.update(
            {name[2:]: _number(value) for name, value in piece.items() if name.startswith("q:")}
        )
    return total


def _error(text: str) -> LastError | None:
    try:
        return LastError(*json.loads(text))
    except (ValueError, TypeError):
        return None  # not written by us


def _leader(fields: Mapping[str, str]) -> Leader | None:
    return (
        Leader(fields.get("name", ""), _number(fields.get("epoch")), _number(fields.get("since")))
        if fields
        else None
    )


def _rate(slices: Sequence[Mapping[str, str]]) -> float:
    """Polls per second over whole slices; the one that is still filling is left out."""
    return (
        sum(_number(s.get("polls")) for s in slices) / (len(slices) * SLICE_MS / 1000)
        if slices
        else 0.0
    )


def _outcomes(slices: Sequence[Mapping[str, str]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for piece in slices:
        total.update({name: _number(piece[name]) for name in OUTCOMES if name in piece})
    return dict(total)


def _lateness(slices: Sequence[Mapping[str, str]]) -> Lateness:
    buckets: Counter[int] = Counter()
    for piece in slices:
        buckets.update(_buckets(piece))
    most = max((float(_number(piece.get("lmax"))) for piece in slices), default=0.0)
    half, nearly_all = (min(most, histogram.quantile_ms(buckets, share)) for share in (0.5, 0.99))
    return Lateness(buckets.total(), half, nearly_all, most)


def _buckets(piece: Mapping[str, str]) -> dict[int, int]:
    return {
        int(name[1:]): _number(value)
        for name, value in piece.items()
        if name[0] == "l" and name[1:].isdecimal()
    }


def _points(slices: Sequence[Mapping[str, str]], now_ms: int) -> list[Point]:
    """Oldest first; slices before the first poll are left out, empty ones after it are gaps people should see."""
    first = now_ms // SLICE_MS - len(slices) + 1
    filled = [(first + i, piece) for i, piece in enumerate(slices)]
    begun = next((i for i, (_, piece) in enumerate(filled) if piece), len(filled))
    return [
        Point(
            at_ms=number * SLICE_MS,
            seconds=min(SLICE_MS, now_ms - number * SLICE_MS) / 1000,
            polls=_number(piece.get("polls")),
            failed=_number(piece.get("failed")),
            lateness_p99_ms=histogram.quantile_ms(_buckets(piece), 0.99),
        )
        for number, piece in filled[begun:]
    ]


def _number(text: str | None) -> int:
    """0 for what is none: a value that somebody spoiled must not hide all the others."""
    try:
        return int(text or 0)
    except ValueError:
        return 0
