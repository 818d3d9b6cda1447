"""Overviews of a healthy fleet and of fleets with problems, at a fixed time."""

from __future__ import annotations

import dataclasses
import math

from poller.domain.metrics import poll_totals
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import (
    LastError,
    Lateness,
    LatenessSum,
    Leader,
    Load,
    Overview,
    Point,
    State,
    Worker,
)

NOW_MS = 1_794_874_392_000  # 2026-11-17T00:13:12Z
SLICE_MS = 10_000
NEWEST_MS = NOW_MS - NOW_MS % SLICE_MS - SLICE_MS

EMPTY = Overview(
    as_of_ms=NOW_MS,
    targets=0,
    states={},
    due=0,
    overdue=0,
    in_flight=0,
    parked=0,
    polls_per_second=0.0,
    outcomes={},
    lateness=Lateness(),
    recent=(),
    loads=(),
    leader=None,
    standbys=0,
    workers=(),
    errors=(),
    totals={},
)


def points(missing: range = range(0)) -> tuple[Point, ...]:
    """Fifteen minutes of ten-second slices with a slow wave, without the `missing` ones."""
    return tuple(
        Point(
            at_ms=NEWEST_MS - (89 - n) * SLICE_MS,
            seconds=10.0,
            polls=16_000 + round(900 * math.sin(n / 6)) + (n * 37 % 11) * 30,
            failed=5 + n * 7 % 9,
            lateness_p99_ms=80 + 25 * math.sin(n / 4) + (n * 53 % 13) * 3,
        )
        for n in range(90)
        if n not in missing
    )


def worker(number: int, **changes: object) -> Worker:
    made = Worker(
        name=f"celery@poll-{number}",
        seen_ms=NOW_MS - 800 * number,
        started_ms=NOW_MS - 9_000_000 - 60_000 * number,
        polls=4_812_034 - 31_007 * number,
        in_flight=118 + 7 * number,
        rss_bytes=192_000_000 + 3_100_000 * number,
        tags={"site": "ams"} if number % 2 else {"site": "fra", "zone": "dmz"},
        collectors={"snmp": "poller 0.1.0", "routeros": "poller 0.1.0"},
        queues=("poll.routeros", "poll.snmp", "poll.snmp;site=ams"),
        slots=256,
        polled_ms=NOW_MS - 1_100 * number,
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def load(queue: str, **changes: object) -> Load:
    made = Load(queue, 32_330, 4, 3, 545.8, 546.1, workers=4, shortage=0.0)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


HEALTHY = Overview(
    as_of_ms=NOW_MS,
    targets=98_204,
    states={State.OK: 98_204},
    due=96_991,
    overdue=12,
    in_flight=1_213,
    parked=0,
    polls_per_second=1637.4,
    outcomes={"ok": 490_871, "partial": 41},
    lateness=Lateness(490_912, 12.0, 86.0, 1240.0),
    recent=points(),
    loads=(
        load("poll.routeros", waiting=0),
        load("poll.snmp"),
        load("poll.snmp;site=ams", waiting=1, workers=2),
    ),
    leader=Leader("beat-1:4711", 7, NOW_MS - 7_931_000),
    standbys=2,
    workers=tuple(worker(n) for n in range(1, 5)),
    errors=(),
    totals={
        "polls": 19_204_113,
        "ok": 19_200_002,
        "failed": 4_111,
        "samples": 3_072_658_080,
        "missed_slots": 17,
        "worker_stalls": 2,
        "store_failures": 81,
        "queue_entries_refused": 3,
        "retries": 801,
        "breaker_opened": 412,
        "breaker_closed": 383,
        "breaker_skips": 90_210,
        "traps_received": 1_207,
        "traps_accepted": 7,
        "traps_unknown_sender": 1_200,
        "traps_polls": 5,
    },
    lateness_sum=LatenessSum(19_204_100, 230_449_200.0),
    by_collector=poll_totals.parse(
        {
            "snmp|end|ok": 19_200_002,
            "snmp|end|failed": 4_111,
            "snmp|code|timeout": 4_900,
            "snmp|took|0": 3,
            "snmp|took|3": 2,
            "snmp|took|ms": 430,
            "snmp|waited|0": 5,
            "snmp|late|0": 4,
            "snmp|late|12": 1,
            "snmp|late|ms": 400_000,
        }.items()
    ),
)

_CAUSES = (
    ("timeout", "no answer in 3 tries of 2 s"),
    ("auth_failed", "SNMPv3 user mon refused: wrong digest"),
    ("unreachable", "connection to port 8728 refused"),
    (
        "timeout",
        "no complete answer before the deadline: 41 of 160 columns read, /interface took 41 s",
    ),
)


def failure(number: int, **changes: object) -> LastError:
    code, message = _CAUSES[number % len(_CAUSES)]
    made = LastError(
        at_ms=NOW_MS - 3_000 - 7_400 * number,
        target_id=4_000 + number,
        device=f"ap-{412 + number * 13:04d}.west",
        target="routeros" if code == "unreachable" else "snmp",
        code=code,
        message=message,
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


_CHANGES = (
    (
        Kind.DEVICE_WENT_DOWN,
        "ap-0412.west is down: no answer in 3 tries of 2 s",
        "ap-0412.west",
        "snmp",
    ),
    (
        Kind.DEVICE_RECOVERED,
        "edge-17.fra answers again after 4 h 10 m and 22 failures",
        "edge-17.fra",
        "snmp",
    ),
    (Kind.WORKER_LOST, "celery@poll-3 sent no heartbeat for 11 s", "", ""),
    (Kind.LEADERSHIP_TAKEN, "beat-1:4711 leads, epoch 7", "", ""),
    (
        Kind.DEAD_LETTER_MADE,
        "needs a person (auth_failed): SNMPv3 user mon refused",
        "ap-0425.west",
        "routeros",
    ),
)


def change(number: int, **changes: object) -> Event:
    kind, message, device, target = _CHANGES[number % len(_CHANGES)]
    made = Event(
        NOW_MS - 5_000 - 61_300 * number, kind, message, device, target, data={"n": number}
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


FAILING = dataclasses.replace(
    HEALTHY,
    states={State.OK: 98_100, State.DEGRADED: 3, State.FAILING: 41, State.UNKNOWN: 60},
    parked=12,
    breakers_open=29,
    opened_by_hand=2,
    dead_letters={"auth_failed": 9, "not_pollable": 3},
    outcomes={"ok": 490_102, "failed": 769, "partial": 41},
    recent=points(missing=range(40, 47)),
    errors=tuple(failure(n) for n in range(20)),
    events=tuple(change(n) for n in range(10)),
)
LATE = dataclasses.replace(
    HEALTHY,
    loads=(load("poll.snmp", overdue=4_310, waiting=64, done_per_s=237.3, shortage=2.3),),
    overdue=4_310,
    lateness=Lateness(401_112, 2_100.0, 12_400.0, 41_000.0),
)
UNROUTABLE = dataclasses.replace(
    HEALTHY,
    loads=(
        *HEALTHY.loads,
        load("poll.snmp;zone=lab", due=312, overdue=0, waiting=0, done_per_s=0.0, workers=0),
        load(
            "poll.acme-olt;site=ams;zone=dmz",
            due=1,
            overdue=1,
            waiting=0,
            done_per_s=0.0,
            workers=0,
        ),
    ),
    workers=(*HEALTHY.workers, worker(4, instance="9f31c2", queues=["poll.snmp"])),
)
NO_LEADER = dataclasses.replace(HEALTHY, leader=None, standbys=0)
NO_WORKERS = dataclasses.replace(HEALTHY, workers=(), in_flight=0)
SCRIPT = "<script>alert(1)</script>"
HOSTILE = dataclasses.replace(
    HEALTHY,
    errors=(
        failure(
            0,
            device=SCRIPT,
            message=f"\"'><img src=x onerror=alert(2)>{SCRIPT}",
            target="a/b\u202e",
        ),
    ),
    events=(
        change(
            0,
            device=SCRIPT,
            message=f"\"'><img src=x onerror=alert(2)>{SCRIPT}",
            target="a/b\u202e",
        ),
    ),
    workers=(worker(1, name=f"celery@{SCRIPT}", tags={SCRIPT: SCRIPT}),),
    loads=(load(f"poll.{SCRIPT}"),),
    leader=Leader(f'beat"{SCRIPT}', 1, NOW_MS),
)
