"""The situations of a target, each with its facts and its sentence. docs/why.md shows the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Result
from poller.domain.failures.quarantine import Record
from poller.domain.failures.site_outage import Outage
from poller.domain.record.overview import Leader, State, Worker
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Decision, Policy
from poller.domain.why.causes import Cause
from poller.domain.why.target_facts import (
    BoardRow,
    ClusterFacts,
    Flight,
    HandOpening,
    InventoryRow,
    QueueFacts,
    RequiredTag,
    SiteFacts,
    StoreFaults,
    TargetFacts,
)

NOW = 1_800_000_000_000
QUEUE = "poll.snmp"
REQUIRED = (RequiredTag("zone=dmz", "site"),)


class Situation(NamedTuple):
    cause: Cause
    name: str
    facts: TargetFacts
    sentence: str


def worker(name: str = "w1@pop", **fields: Any) -> Worker:
    values: dict[str, Any] = {
        "seen_ms": NOW - 1000,
        "started_ms": NOW - 600_000,
        "polls": 10,
        "in_flight": 0,
        "rss_bytes": 0,
        "collectors": {"snmp": "poller 4.0"},
        "queues": (QUEUE,),
        "slots": 16,
    }
    return Worker(name, **(values | fields))


ROW = InventoryRow(
    target_id=7,
    device_id=3,
    device="sw1",
    target="snmp",
    address="192.0.2.1",
    site="ams",
    collector="snmp",
    queue=QUEUE,
    interval_ms=60_000,
    timeout_ms=10_000,
    credential="public",
    credential_of="device",
    options={"module": "if_mib"},
)
GOOD = Status(
    state=State.OK, since_ms=NOW - 900_000, run_ms=NOW - 12_500, finished_ms=NOW - 12_000,
    ok_ms=NOW - 12_000,
)  # fmt: skip
DUE = BoardRow("due", NOW + 48_000, QUEUE, 60_000, 10_000, GOOD)
LEADER = Leader("beat1:12", 3, NOW - 3_600_000)
CLUSTER = ClusterFacts(leader=LEADER, clock_ms=NOW - 500, living=(worker(),))
SITE = SiteFacts("ams", neighbours=42, answering=41)
HEALTHY = TargetFacts(NOW, 7, inventory=ROW, board=DUE, site=SITE, cluster=CLUSTER)


def failing(failures: int = 4, code: str = "timeout", message: str = "", **more: Any) -> Status:
    fields: dict[str, Any] = {
        "state": State.FAILING,
        "since_ms": NOW - 300_000,
        "run_ms": NOW - 60_000,
        "finished_ms": NOW - 50_000,
        "ok_ms": NOW - 360_000,
        "failures": failures,
        "code": code,
        "message": message,
    }
    return Status(**(fields | more))


def runs(number: int, code: str = "timeout", **fields: Any) -> tuple[Run, ...]:
    values: dict[str, Any] = {"error_code": code, "runner": "w1@pop"}
    outcome = Result.FAILED if code else Result.OK
    return tuple(
        Run(7, NOW - 60_000 * back, outcome, **(values | fields)) for back in range(1, number + 1)
    )


def on_board(**fields: Any) -> TargetFacts:
    return replace(HEALTHY, board=replace(DUE, **fields))


def in_flight(seconds: int, attempts: int = 1, **fields: Any) -> TargetFacts:
    token = f"3.{NOW - seconds * 1000:x}.aa"
    values: dict[str, Any] = {"lease_ms": NOW + 13_000, "holder": "w1@pop" if attempts else ""}
    flight = Flight(token, NOW - seconds * 1000, attempts, **(values | fields))
    return on_board(place="in_flight", at_ms=0, flight=flight)


def in_cluster(facts: TargetFacts = HEALTHY, **fields: Any) -> TargetFacts:
    return replace(facts, cluster=replace(CLUSTER, **fields))


OPEN = Breaker(trips=1, since_ms=NOW - 120_000, probe_ms=NOW + 190_000)
OUTAGE = Outage("ams", 4, NOW - 300_000, NOW - 10_000, (11, 12, 13))
OPENED = HandOpening(NOW + 1_500_000, NOW - 300_000, "alice")
QUARANTINE = Record(crashes_ms=(1, 2, 3), isolated_ms=1, quarantined_ms=NOW - 120_000)
DMZ = "poll.snmp;zone=dmz"
DECISION = Decision(0.99, 0, 0, 8_000, 8_000, 8_000, "steady")
ADAPTIVE_ROW = replace(
    ROW, policy=Policy.ADAPTIVE, interval_ms=10_000, min_ms=5_000, max_ms=300_000,
    staleness="steady",
)  # fmt: skip
LOST = replace(worker(), seen_ms=NOW - 14_000)
UNANSWERED = "connection refused by 127.0.0.1:6379"

SITUATIONS = (
    Situation(
        Cause.REDIS_AWAY,
        "Redis away",
        TargetFacts(0, 7, stores=StoreFaults(redis=UNANSWERED), inventory=ROW),
        "Redis does not answer, so nothing is scheduled and no state is known: "
        "connection refused by 127.0.0.1:6379.",
    ),
    Situation(
        Cause.REDIS_REFUSES_WRITES,
        "Redis takes no writes",
        replace(HEALTHY, stores=StoreFaults(write="OOM command not allowed.")),
        "Redis takes no writes, so nothing can be scheduled: OOM command not allowed.",
    ),
    Situation(
        Cause.DATABASE_AWAY,
        "database away",
        replace(HEALTHY, inventory=None, stores=StoreFaults(sql="cannot reach the database")),
        "The database does not answer: cannot reach the database; workers poll the targets that "
        "they know, and results wait on their disks; the last good poll was 12 s ago, next poll "
        "in 48 s.",
    ),
    Situation(
        Cause.LEADER_MISSING,
        "leader missing",
        in_cluster(leader=None, clock_ms=NOW - 130_000),
        "No leader: nothing is being scheduled; the last claim was 2 m 10 s ago.",
    ),
    Situation(
        Cause.DISABLED,
        "target disabled",
        replace(HEALTHY, inventory=replace(ROW, target_enabled=False), board=None),
        "Not polled: the target is disabled.",
    ),
    Situation(
        Cause.DISABLED,
        "device disabled",
        replace(HEALTHY, inventory=replace(ROW, device_enabled=False), board=None),
        "Not polled: the device is disabled.",
    ),
    Situation(
        Cause.PAUSED,
        "paused: breaker opened by hand",
        on_board(opening=OPENED),
        "Not polled: alice opened its breaker by hand 5 m ago, for another 25 m.",
    ),
    Situation(
        Cause.PAUSED,
        "paused, with a reason",
        on_board(opening=replace(OPENED, reason="new firmware.")),
        "Not polled: alice opened its breaker by hand 5 m ago, for another 25 m: new firmware.",
    ),
    Situation(
        Cause.NOT_ON_BOARD,
        "not scheduled yet",
        replace(HEALTHY, board=None),
        "Not scheduled yet: the leader has not put the target on the board.",
    ),
    Situation(
        Cause.NO_PLACE,
        "damaged board",
        on_board(place="", at_ms=0),
        "Not polled: the target is in no place of the board, which another program damaged.",
    ),
    Situation(
        Cause.NO_WORKER,
        "no worker runs",
        in_cluster(on_board(at_ms=NOW - 40_000), living=()),
        "No worker is running: nothing is being polled; overdue by 40 s.",
    ),
    Situation(
        Cause.UNROUTABLE,
        "unroutable",
        replace(on_board(queue=DMZ), inventory=replace(ROW, required=REQUIRED)),
        "Not polled: no worker may take it, needs tag zone=dmz; 1 worker live, without it; "
        "site ams requires zone=dmz.",
    ),
    Situation(
        Cause.WORKERS_BLOCKED,
        "its workers reach no store",
        in_cluster(living=(worker(store_error="cannot reach the database."),)),
        "Not polled: w1@pop, the only worker that may take it, reports cannot reach the database.",
    ),
    Situation(
        Cause.QUARANTINED,
        "quarantined collector",
        in_cluster(crashes={"poller 4.0": QUARANTINE}),
        "Not polled: collector snmp was quarantined 2 m ago after 3 crashes; a person must "
        "release it.",
    ),
    Situation(
        Cause.SITE_DARK,
        "held: its site is dark",
        replace(on_board(place="held", at_ms=0), site=SiteFacts("ams", OUTAGE, 42, 0)),
        "Held: site ams has been dark for 5 m; 3 canaries are polled for it.",
    ),
    Situation(
        Cause.CANARY,
        "canary of a dark site",
        replace(
            on_board(place="urgent", at_ms=NOW + 2_000),
            site=SiteFacts("ams", replace(OUTAGE, canaries=(7, 8)), 42, 0),
        ),
        "A canary: its site ams has been dark for 5 m; next poll in 2 s.",
    ),
    Situation(
        Cause.DEAD_LETTER,
        "parked: a dead letter",
        on_board(
            place="parked",
            at_ms=NOW + 700_000,
            status=failing(2, "auth_failed", "wrong digest", breaker=OPEN)._replace(
                parked_ms=NOW - 1_100_000, reason=Reason.AUTH_FAILED
            ),
        ),
        "Needs a person: the last 2 polls failed, the newest with: wrong digest; parked for "
        "18 m 20 s, next slow retry in 11 m 40 s; the site is up: 41 of 42 neighbours answer.",
    ),
    Situation(
        Cause.WORKER_LOST,
        "worker lost",
        in_cluster(in_flight(16, holder="w1@pop"), living=(worker("w2@pop"),), lost=(LOST,)),
        "In flight for 16 s on w1@pop, which was lost 14 s ago; due again when its lease ends, "
        "in 13 s.",
    ),
    Situation(
        Cause.LEASE_ENDED,
        "lease ended",
        in_flight(30, 0, lease_ms=NOW - 2_000),
        "In flight for 30 s, but its lease ended 2 s ago; the leader brings the target back at "
        "its next check.",
    ),
    Situation(
        Cause.NOT_STARTED,
        "claimed and not started",
        replace(in_flight(12, 0), queue=QueueFacts(batches=14)),
        "Claimed 12 s ago, and no worker has started it; 14 batches wait in its queue for "
        "1 worker; due again when its lease ends, in 13 s.",
    ),
    Situation(
        Cause.LONG_IN_FLIGHT,
        "in flight for long",
        in_flight(130, 2),
        "In flight for 2 m 10 s on w1@pop, longer than 2 attempts of 10 s; due again when its "
        "lease ends, in 13 s.",
    ),
    Situation(
        Cause.PROBING,
        "breaker half-open",
        replace(
            in_flight(1),
            board=replace(
                in_flight(1).board, status=failing(breaker=replace(OPEN, probe_ms=NOW - 1_000))
            ),
            runs=runs(4),
        ),
        "Polled every 60 s; the last 4 polls timed out, the breaker is half-open, its probe is "
        "in flight; the site is up: 41 of 42 neighbours answer.",
    ),
    Situation(
        Cause.BREAKER_OPEN,
        "breaker open",
        replace(
            on_board(place="urgent", at_ms=NOW + 180_000, status=failing(breaker=OPEN)),
            runs=runs(4),
        ),
        "Polled every 60 s; the last 4 polls timed out, the breaker is open, next probe in 3 m; "
        "the site is up: 41 of 42 neighbours answer.",
    ),
    Situation(
        Cause.CLOCK_SET_BACK,
        "clock stepped back",
        on_board(status=GOOD._replace(finished_ms=NOW + 7_200_000, ok_ms=NOW + 7_200_000)),
        "Polled every 60 s; the clock of Redis was set back by 2 h or more, so its last poll is "
        "in the future; next poll in 48 s.",
    ),
    Situation(
        Cause.DOWN,
        "down, polled at every slot",
        replace(
            on_board(status=failing(6, "down", "no answer to 3 pings")),
            site=SiteFacts("ams", neighbours=42, answering=9),
        ),
        "Polled every 60 s; the last 6 polls found it not well: no answer to 3 pings; it is "
        "polled at every slot, next poll in 48 s; the site is in trouble: only 9 of 42 "
        "neighbours answer.",
    ),
    Situation(
        Cause.FAILING,
        "failing, breaker still closed",
        replace(
            on_board(at_ms=NOW + 20_000, status=failing(1, "unreachable", "connection refused")),
            site=SiteFacts("ams", neighbours=200, answering=198, is_sample=True),
        ),
        "Polled every 60 s; the last poll failed: connection refused, the breaker opens after 2 "
        "more, next poll in 20 s; the site is up: 198 of a sample of 200 neighbours answer.",
    ),
    Situation(
        Cause.OVERDUE,
        "overdue: workers do not keep up",
        replace(on_board(at_ms=NOW - 200_000), queue=QueueFacts(12, 340)),
        "Polled every 60 s; overdue by 3 m 20 s; 1 worker does not keep up: 12 batches and "
        "340 targets of its queue wait.",
    ),
    Situation(
        Cause.POLL_LOST,
        "last poll lost with its worker",
        replace(
            on_board(status=GOOD._replace(run_ms=NOW - 120_000)),
            runs=runs(1, "lease_lost", runner=""),
        ),
        "Polled every 60 s; the worker did not report back from the last poll; the last good "
        "poll was 12 s ago, next poll in 48 s.",
    ),
    Situation(
        Cause.DEGRADED,
        "degraded: a part failed",
        on_board(
            status=GOOD._replace(
                state=State.DEGRADED, code="timeout", message="module if_mib timed out"
            )
        ),
        "Polled every 60 s; the last poll got only a part: module if_mib timed out; next poll in "
        "48 s.",
    ),
    Situation(
        Cause.DEMANDED,
        "demanded by a person",
        on_board(place="urgent", at_ms=0),
        "Demanded: the target goes before all others, as soon as the leader claims it.",
    ),
    Situation(
        Cause.NEVER_POLLED,
        "never polled",
        on_board(at_ms=NOW + 31_000, status=Status()),
        "Polled every 60 s; not polled yet, next poll in 31 s.",
    ),
    Situation(
        Cause.POLLING,
        "poll in flight",
        in_flight(2),
        "Polled every 60 s; its poll is in flight for 2 s, by w1@pop; the last good poll was "
        "12 s ago.",
    ),
    Situation(
        Cause.HEALTHY,
        "healthy",
        HEALTHY,
        "Polled every 60 s; the last poll was good 12 s ago, next poll in 48 s.",
    ),
    Situation(
        Cause.HEALTHY,
        "healthy and adaptive",
        replace(
            on_board(at_ms=NOW + 4_000, status=GOOD._replace(decision=DECISION)),
            inventory=ADAPTIVE_ROW,
        ),
        "Polled every 8 s (adaptive, 5 s to 5 m); the last poll was good 12 s ago, next poll in "
        "4 s.",
    ),
)
