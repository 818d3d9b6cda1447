"""Events of devices and of their targets: each change is told once, and what was told is true.

The judge of a worker and the real board decide; the clock is the test's.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poller.beat import reconcile
from poller.bootstrap import Services
from poller.collectors import staleness_registry
from poller.db.inventory import devices, targets
from poller.db.record import event_rows
from poller.domain.failures import error_codes
from poller.domain.failures.error_codes import Reach
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import PollTarget, TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.settings import Settings
from poller.state.board import down_devices
from poller.state.board.board_values import ClaimLimits, Move, Start, Started
from poller.state.board.moves import Board
from poller.state.cluster import event_stream
from poller.state.keys import Keys
from poller.workers.batch import round_effects
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.retries import Retries
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.batch.verdict import Judge, Verdict

QUEUE = "poll.snmp"
LIMITS = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)
BEGIN_MS = 1_800_000_000_000
MINUTE_MS = 60_000
OK = ""
CODES = (OK, "timeout", "down", "auth_failed", "unwell", "host_busy", "collector_crashed")
DEVICE_KINDS = (Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED)
TARGET_KINDS = (Kind.TARGET_FAILED, Kind.TARGET_RECOVERED)


class Fleet:
    """Devices with several targets. `devices` holds the target ids by device."""

    site = "west"

    def __init__(self, client: redis.Redis, devices: dict[int, list[int]]) -> None:
        client.flushall()
        self.client, self.devices = client, devices
        self.board = Board(client, Keys())
        self.now_ms = BEGIN_MS
        self.intervals: dict[int, int] = {}
        retries = Retries(Settings())
        self.judge = Judge(Settings(), staleness_registry.load(), retries, lambda: 0.5)
        self.serial = itertools.count(1)
        self.published = ""
        self.place(itertools.chain.from_iterable(devices.values()))

    def place(self, ids: Iterable[int], interval_ms: int = MINUTE_MS) -> None:
        version = next(self.serial)
        specs = []
        for target_id in ids:
            self.intervals[target_id] = interval_ms
            spec = TargetSpec(target_id, version, QUEUE, interval_ms, 5_000)
            specs.append((spec, self.now_ms + interval_ms))
        self.board.place("", specs, version)

    def target(self, target_id: int) -> PollTarget:
        [device] = [device for device, ids in self.devices.items() if target_id in ids]
        siblings = tuple(each for each in self.devices[device] if each != target_id)
        return PollTarget(
            *(target_id, 1, f"t{target_id}", device, f"d{device}", "192.0.2.1", self.site, "snmp"),
            *(self.intervals[target_id], 5_000),
            siblings=siblings,
        )

    def claim(self) -> tuple[str, list[int]]:
        """Claim all due targets."""
        token = f"c{next(self.serial)}"
        claim = self.board.claim("", token, self.published, {QUEUE: 99}, LIMITS, self.now_ms)
        self.published = claim.token or self.published
        return token, [int(each) for part in claim.parts for each in part.ids]

    def start(self, token: str, target_id: int) -> Started:
        return self.board.start(token, 0, "call", 15_000, [target_id], self.now_ms).targets[0]

    def finish(self, token: str, started: Started, code: str, repeated: bool = False) -> list[Kind]:
        """Finish one poll as a worker does; the reply of a repeated call is that of the second."""
        verdict = self.verdict(started, code)
        for _ in range(1 + repeated):
            finished = self.board.finish(
                token,
                [verdict.move],
                now_ms=self.now_ms,
                queue=QUEUE,
                reports=round_effects.reports([verdict]),
            )
        return [event.kind for event in finished.events]

    def verdict(self, started: Started, code: str) -> Verdict:
        outcome = Outcome(Result.FAILED, code, "no") if code else Outcome(Result.OK)
        instants = (self.now_ms, self.now_ms, self.now_ms)
        cached = CachedTarget(self.target(started.id), 1)
        poll = FinishedPoll(cached, started, outcome, *instants)
        return self.judge.judge(poll, Start(self.now_ms, QUEUE, 0, [], 0.0, 0))

    def poll(self, target_id: int, code: str) -> list[Kind]:
        """Poll one target now. Returns the events that the board published."""
        self.board.demand([target_id])
        token, ids = self.claim()
        kinds = []
        for each in ids:
            started = self.start(token, each)
            kinds += self.finish(token, started, code) if each == target_id else []
            if each != target_id:
                self.board.finish(token, [Move(each, self.now_ms)], now_ms=self.now_ms)
        return kinds

    def due_ms(self, target_id: int) -> int:
        return int(self.client.zscore(self.board.keys.due(QUEUE), str(target_id)) or 0)

    def told(self, kinds: Sequence[Kind]) -> list[tuple[int | None, int | None, Kind]]:
        entries = event_stream.after(self.client, Keys(), event_stream.BEGINNING, 100_000)
        events = [entry.event for entry in entries if entry.event]
        return [
            (event.device_id, event.target_id, event.kind)
            for event in events
            if event.kind in kinds
        ]


@pytest.fixture
def pair(redis_client: redis.Redis) -> Fleet:
    """One device with two targets that are well."""
    fleet = Fleet(redis_client, {1: [1, 2]})
    for target_id in (1, 2):
        fleet.poll(target_id, OK)
    return fleet


def test_a_device_goes_down_once_and_recovers_once(pair: Fleet) -> None:
    """Two targets fail and recover; the device has one event for each change."""
    for _ in range(5):
        pair.now_ms += MINUTE_MS
        pair.poll(1, "timeout")
        pair.poll(2, "timeout")
    assert pair.told(Kind) == [(1, 1, Kind.DEVICE_WENT_DOWN)]
    for _ in range(3):
        pair.now_ms += MINUTE_MS
        pair.poll(2, OK)
        pair.poll(1, OK)
    assert pair.told(Kind) == [(1, 1, Kind.DEVICE_WENT_DOWN), (1, 2, Kind.DEVICE_RECOVERED)]


@pytest.mark.parametrize("code", ["timeout", "down", "auth_failed", "collector_crashed"])
def test_a_failing_service_of_a_device_that_responds_is_trouble_of_the_target(
    pair: Fleet, code: str
) -> None:
    """A dead service or a wrong community is no outage of the device."""
    for answer in ("unwell" if code == "down" else OK, OK, OK, OK):
        pair.now_ms += MINUTE_MS
        pair.poll(1, code)
        pair.poll(2, answer)
    assert pair.told(Kind) == [(1, 1, Kind.TARGET_FAILED)]
    pair.poll(1, OK)
    assert pair.told(Kind)[1:] == [(1, 1, Kind.TARGET_RECOVERED)]


def test_the_device_has_not_recovered_while_no_target_responds(pair: Fleet) -> None:
    """A failure of our own says nothing about the device."""
    for code in ("timeout", "timeout", "timeout", "host_busy", "collector_crashed", "timeout"):
        pair.now_ms += MINUTE_MS
        pair.poll(1, code)
        pair.poll(2, code)
    assert pair.told(DEVICE_KINDS) == [(1, 1, Kind.DEVICE_WENT_DOWN)]
    assert pair.poll(2, "auth_failed")[0] is Kind.DEVICE_RECOVERED


def test_a_target_that_stays_silent_is_told_when_its_device_is_back(pair: Fleet) -> None:
    """The outage hid its trouble; the device's recovery does not."""
    for _ in range(4):
        pair.now_ms += MINUTE_MS
        pair.poll(1, "timeout")
        pair.poll(2, "timeout")
    pair.now_ms += MINUTE_MS
    pair.poll(2, OK)
    assert pair.told(TARGET_KINDS) == []
    pair.now_ms += MINUTE_MS
    assert pair.poll(1, "timeout") == [Kind.TARGET_FAILED]


def test_a_slow_sibling_is_polled_before_the_device_is_told_as_down(
    redis_client: redis.Redis,
) -> None:
    """An hourly target is due now; its response, or its silence, decides."""
    for answer, expected in ((OK, [Kind.TARGET_FAILED]), ("timeout", [Kind.DEVICE_WENT_DOWN])):
        fleet = Fleet(redis_client, {1: [1, 2]})
        fleet.place([2], 60 * MINUTE_MS)
        fleet.poll(1, OK)
        fleet.poll(2, OK)
        for _ in range(3):
            fleet.now_ms += MINUTE_MS
            assert fleet.poll(1, "timeout") == []
        assert fleet.due_ms(2) == fleet.now_ms
        fleet.poll(2, answer)
        fleet.now_ms += MINUTE_MS
        fleet.poll(1, "timeout")
        assert [kind for _, _, kind in fleet.told(Kind)] == expected


def test_a_sibling_that_no_worker_polls_does_not_hide_the_outage(pair: Fleet) -> None:
    """A target that was overdue for a minute, parked or opened by hand is not waited for."""
    pair.board.redis.zadd(pair.board.keys.due(QUEUE), {"2": pair.now_ms - 1})
    pair.now_ms += MINUTE_MS
    kinds: list[Kind] = []
    for _ in range(4):
        pair.now_ms += MINUTE_MS
        token = f"x{next(pair.serial)}"
        pair.client.zrem(pair.board.keys.due(QUEUE), "1")
        pair.client.zrem(pair.board.keys.urgent(QUEUE), "1")
        pair.client.zadd(pair.board.keys.inflight, {"1": pair.now_ms + 30_000})
        pair.client.hset(pair.board.keys.run, "1", f"{token}|{pair.now_ms}|0|")
        kinds += pair.finish(token, pair.start(token, 1), "timeout")
    assert kinds == [Kind.DEVICE_WENT_DOWN]


def test_a_sibling_that_was_not_waited_for_shows_that_the_device_responds(pair: Fleet) -> None:
    """It was opened by hand and well before and after, so it makes no report of its own."""
    opening = f"{pair.now_ms + 10 * MINUTE_MS}|{pair.now_ms}|ann"
    pair.client.hset(pair.board.keys.opened, "2", opening)
    for _ in range(4):
        pair.now_ms += MINUTE_MS
        pair.poll(1, "timeout")
    assert pair.told(Kind) == [(1, 1, Kind.DEVICE_WENT_DOWN)]

    pair.now_ms += 10 * MINUTE_MS
    pair.poll(2, OK)
    pair.now_ms += MINUTE_MS
    assert pair.poll(1, "timeout") == [Kind.DEVICE_RECOVERED, Kind.TARGET_FAILED]
    assert pair.client.hkeys(pair.board.keys.down) == []
    pair.now_ms += MINUTE_MS
    assert pair.poll(1, "timeout") == []


def test_a_dark_site_hides_its_devices_until_it_is_back(pair: Fleet) -> None:
    """One outage is one event; a device that stays dead behind it is told afterwards."""
    pair.client.hset(pair.board.keys.dark, pair.site, "{}")
    for _ in range(4):
        pair.now_ms += MINUTE_MS
        pair.poll(1, "timeout")
        pair.poll(2, "timeout")
    assert pair.told(Kind) == []
    pair.client.hdel(pair.board.keys.dark, pair.site)
    pair.now_ms += MINUTE_MS
    assert pair.poll(2, "timeout") == [Kind.DEVICE_WENT_DOWN]


def test_a_lost_reply_neither_loses_nor_doubles_an_event(redis_client: redis.Redis) -> None:
    """The board publishes the event in the step that decides it."""
    fleet = Fleet(redis_client, {1: [1]})
    for code in (OK, "timeout", "timeout", "timeout", "timeout", OK, OK):
        fleet.now_ms += 10 * MINUTE_MS
        fleet.board.demand([1])
        token, _ = fleet.claim()
        fleet.finish(token, fleet.start(token, 1), code, repeated=True)
    assert [kind for _, _, kind in fleet.told(Kind)] == list(DEVICE_KINDS)


def test_a_removed_target_leaves_no_record(pair: Fleet) -> None:
    """Disabled and enabled again, its trouble is told again."""
    for _ in range(4):
        pair.now_ms += MINUTE_MS
        pair.poll(1, "auth_failed")
    assert pair.client.smembers(pair.board.keys.troubled) == {"1"}
    disabled = TargetSpec(1, 99, "", MINUTE_MS, 5_000, enabled=False)
    pair.board.place("", [(disabled, 0)], 99)
    assert pair.client.smembers(pair.board.keys.troubled) == set()


def test_a_removed_device_is_not_down_any_more(redis_client: redis.Redis) -> None:
    """A device with a target on the board stays."""
    fleet = Fleet(redis_client, {1: [1, 2], 2: [3]})
    for _ in range(4):
        fleet.now_ms += 10 * MINUTE_MS
        for target_id in (1, 2, 3):
            fleet.poll(target_id, "timeout")
    disabled = [TargetSpec(each, 99, "", MINUTE_MS, 5_000, enabled=False) for each in (1, 3)]
    fleet.board.place("", [(spec, 0) for spec in disabled], 99)
    assert down_devices.forget_absent(fleet.board, fleet.now_ms + MINUTE_MS) == 1
    assert fleet.client.hkeys(fleet.board.keys.down) == ["1"]


def test_a_device_whose_silent_target_is_removed_can_go_down_again(
    redis_client: redis.Redis,
) -> None:
    """Its other target responds, and its next outage is an event."""
    fleet = Fleet(redis_client, {1: [1, 2]})
    for _ in range(4):
        fleet.now_ms += 10 * MINUTE_MS
        for target_id in (1, 2):
            fleet.poll(target_id, "timeout")
    disabled = TargetSpec(1, 99, "", MINUTE_MS, 5_000, enabled=False)
    fleet.board.place("", [(disabled, 0)], 99)
    later_ms = fleet.now_ms + MINUTE_MS
    assert down_devices.forget_absent(fleet.board, later_ms) == 0  # the other one is silent, too

    ok = Status(State.OK, since_ms=later_ms, run_ms=later_ms, finished_ms=later_ms, ok_ms=later_ms)
    fleet.client.hset(fleet.board.keys.status, "2", ok.pack())
    assert down_devices.forget_absent(fleet.board, later_ms) == 1
    assert fleet.client.hkeys(fleet.board.keys.down) == []


def test_an_emptied_redis_restores_what_was_told(services: Services) -> None:
    """So a device that is still down is not told again, and its recovery is told."""
    drafts = [TargetDraft(name, "snmp", {}, interval_ms=60_000) for name in ("a", "b")]
    device_ids = [
        devices.add(services.engine, DeviceDraft(name, "192.0.2.1"), drafts).id
        for name in ("dead", "back", "partly")
    ]
    dead, back, partly = device_ids
    [first, *_] = [each.id for each in targets.of_device(services.engine, "partly")]
    told = [
        (dead, None, Kind.DEVICE_WENT_DOWN),
        (back, None, Kind.DEVICE_WENT_DOWN),
        (back, None, Kind.DEVICE_RECOVERED),
        (partly, first, Kind.TARGET_FAILED),
    ]
    events = [
        Event(BEGIN_MS, kind, "", device_id=device_id, target_id=target_id)
        for device_id, target_id, kind in told
    ]
    event_rows.record(services.engine, [(f"{n}-0", event) for n, event in enumerate(events)])
    services.redis.flushall()
    reconcile.reconcile(services.board, services.engine, "", BEGIN_MS)
    ids = [each.id for each in targets.of_device(services.engine, "dead")]
    assert services.redis.hgetall(services.keys.down) == {
        str(dead): f"{BEGIN_MS}|{ids[0]},{ids[1]}"
    }
    assert services.redis.smembers(services.keys.troubled) == {str(first)}


@given(st.integers(0, 2**32))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_events_alternate_and_match_the_truth_at_the_end(
    redis_client: redis.Redis, seed: int
) -> None:
    """Any outcomes of several targets, finished in any order by workers at the same time."""
    chance = random.Random(seed)
    numbers = itertools.count(1)
    fleet_devices = {
        device: [next(numbers) for _ in range(chance.randint(1, 3))]
        for device in range(1, chance.randint(2, 3))
    }
    fleet = Fleet(redis_client, fleet_devices)
    ids = [target_id for of_device in fleet_devices.values() for target_id in of_device]
    for _ in range(chance.randint(0, 10)):
        fleet.now_ms += chance.choice([1_000, 30_000, MINUTE_MS, 10 * MINUTE_MS])
        fleet.board.demand(chance.sample(ids, chance.randint(1, len(ids))))
        codes = {target_id: chance.choice(CODES) for target_id in ids}
        poll_all_due(fleet, chance, codes)
    final = {target_id: chance.choice(CODES) for target_id in ids}
    for _ in range(5):  # until every failure is confirmed
        fleet.now_ms += 20 * MINUTE_MS
        fleet.board.demand(ids)
        poll_all_due(fleet, chance, final)
    check_alternation(fleet)
    check_truth(fleet, final)


def poll_all_due(fleet: Fleet, chance: random.Random, codes: dict[int, str]) -> None:
    """Poll all due targets; they end in any order, and some replies are lost."""
    token, due = fleet.claim()
    running = {target_id: fleet.start(token, target_id) for target_id in due}
    for target_id in chance.sample(due, len(due)):
        fleet.now_ms += chance.choice([0, 1, 2_000])
        is_repeated = chance.random() < 0.3
        fleet.finish(token, running[target_id], codes[target_id], is_repeated)


def check_alternation(fleet: Fleet) -> None:
    for kinds, position in ((DEVICE_KINDS, 0), (TARGET_KINDS, 1)):
        by_key: dict[object, list[Kind]] = {}
        for told in fleet.told(kinds):
            by_key.setdefault(told[position], []).append(told[2])
        for told_kinds in by_key.values():
            assert told_kinds == [kinds[number % 2] for number in range(len(told_kinds))]


def check_truth(fleet: Fleet, final: dict[int, str]) -> None:
    """What was told last is what the targets show."""
    down = set(map(int, fleet.client.hkeys(fleet.board.keys.down)))
    troubled = set(map(int, fleet.client.smembers(fleet.board.keys.troubled)))
    last = {told[0]: told[2] for told in fleet.told(DEVICE_KINDS)}
    assert down == {device for device, kind in last.items() if kind is Kind.DEVICE_WENT_DOWN}
    for device, ids in fleet.devices.items():
        reaches = {target_id: reach_of(final[target_id]) for target_id in ids}
        if Reach.ANSWERED in reaches.values():
            assert device not in down
        elif Reach.SILENT in reaches.values():
            assert device in down
        for target_id in ids:
            if final[target_id] == OK:
                assert target_id not in troubled
            elif reaches[target_id] is not Reach.SILENT or device not in down:
                assert target_id in troubled


def reach_of(code: str) -> Reach:
    return error_codes.TABLE[code].reach if code else Reach.ANSWERED
