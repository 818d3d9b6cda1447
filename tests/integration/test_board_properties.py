"""The invariant of the board under random claims, duplicates, losses, edits, takeovers.

Every enabled target is in exactly one place and is polled by at most one worker at a time.
"""

from __future__ import annotations

import itertools

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.overview import State
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_repair import Repair, Repaired
from poller.state.board.board_values import ClaimLimits, Move, NotLeader, Place, Started
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys

QUEUES = ("poll.snmp", "poll.snmp;zone=dmz")
BATCHES = dict.fromkeys(QUEUES, 1000)
LIMITS = ClaimLimits(targets=6, batch_size=3, lease_ms=30_000)
MARGIN_MS, TIMEOUT_MS = 15_000, 5_000
START_MS = 1_700_000_000_000
ids = st.integers(1, 12)


class BoardMachine(RuleBasedStateMachine):
    client: redis.Redis

    @initialize()
    def begin(self) -> None:
        self.client.flushall()
        self.board = Board(self.client, Keys())
        self.now = START_MS
        self.serial = itertools.count(1)
        self.specs: dict[int, TargetSpec] = {}  # enabled targets, as SQL has them
        # Every published batch; each may be delivered again.
        self.messages: list[tuple[str, list[int]]] = []
        # Running polls by target: the claim token and the board's reply.
        self.polls: dict[int, tuple[str, Started]] = {}
        self.leaders = [Leadership(self.client, Keys(), 60_000) for _ in range(2)]
        self.published = {leader.token: "" for leader in self.leaders}
        self.leader = self.leaders[0]
        self.leader.take()

    # the inventory

    @rule(chosen=st.lists(ids, min_size=1, max_size=4, unique=True), queue=st.sampled_from(QUEUES),
          interval=st.sampled_from([1_000, 60_000]))  # fmt: skip
    def add_or_edit(self, chosen: list[int], queue: str, interval: int) -> None:
        version = next(self.serial)
        made = [TargetSpec(i, version, queue, interval, TIMEOUT_MS) for i in chosen]
        self.board.place(self.leader.token, [(spec, self.now) for spec in made], version)
        self.specs.update({spec.id: spec for spec in made})

    @rule(chosen=st.lists(ids, min_size=1, max_size=3, unique=True))
    def remove(self, chosen: list[int]) -> None:
        version = next(self.serial)
        gone = [(TargetSpec(i, version, "", 1_000, 1, enabled=False), self.now) for i in chosen]
        self.board.place(self.leader.token, gone, version)
        for i in chosen:
            self.specs.pop(i, None)

    @rule(chosen=st.lists(ids, min_size=1, max_size=3, unique=True))
    def demand(self, chosen: list[int]) -> None:
        _, places = self.board.demand(chosen)
        assert {i for i, place in places.items() if place == "gone"} == set(chosen) - set(
            self.specs
        )

    # the leader

    @rule(reply_lost=st.booleans())
    def claim_and_publish(self, reply_lost: bool) -> None:
        token = f"t{next(self.serial)}"
        published = self.published[self.leader.token]
        claim = self.board.claim(self.leader.token, token, published, BATCHES, LIMITS, self.now)
        if claim.token and not reply_lost:
            for _, _, claimed in claim.parts:
                self.messages.append((claim.token, [int(i) for i in claimed]))
            self.published[self.leader.token] = claim.token

    @rule(late_s=st.sampled_from([0, 1, 25, 61]))
    def reap(self, late_s: int) -> None:
        self.now += late_s * 1000
        for reaped in self.board.reap(self.leader.token, now_ms=self.now):
            self.polls.pop(reaped.id, None)
        # `reap` does not return a target that was removed in flight.
        flying = {int(i) for i in self.client.zrange(self.board.keys.inflight, 0, -1)}
        self.polls = {i: held for i, held in self.polls.items() if i in flying}

    @rule(hours=st.sampled_from([-1, 1]))
    def set_the_clock(self, hours: int) -> None:
        """No running poll loses its lease, and no target waits for an hour."""
        self.now += hours * 3_600_000
        BoardMaintenance(self.board).renew_leases(self.leader.token, self.now, 15_000, MARGIN_MS)
        assert self.board.reap(self.leader.token, now_ms=self.now) == []
        if hours < 0:
            sum(BoardMaintenance(self.board).bring_nearer(self.leader.token, self.now))
            for spec in self.specs.values():
                score = self.client.zscore(self.board.keys.due(spec.queue), str(spec.id))
                assert score is None or score <= self.now + spec.interval_ms

    @rule()
    def update_the_queues(self) -> None:
        """The queues without targets leave, and no others."""
        needed = {spec.queue for spec in self.specs.values()}
        changes = BoardMaintenance(self.board).update_queues(self.leader.token)
        assert changes.came == []
        assert not needed & set(changes.went)
        assert set(self.board.queues()) == needed

    @rule()
    def repair_a_sound_board(self) -> None:
        """Repair changes nothing on a sound board, beside a leader and workers."""
        version = self.board.version() or 0
        repair = Repair(self.board)
        assert repair.check(self.specs.values()).sound
        assert repair.repair(self.specs.values(), version, lambda spec: self.now) == Repaired()

    @rule()
    def change_the_leader(self) -> None:
        """The lock ran out while the old leader was paused; its next claim is refused."""
        old, self.leader = (
            self.leader,
            next(each for each in self.leaders if each is not self.leader),
        )
        self.client.delete(self.board.keys.lock)
        self.leader.take()
        self.published[self.leader.token] = ""
        with pytest.raises(NotLeader):
            self.board.claim(old.token, "x", self.published[old.token], BATCHES, LIMITS, self.now)

    # the workers

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Deliver any message, new or old, perhaps for the second time."""
        token, batch = data.draw(st.sampled_from(self.messages[-8:]))
        call = f"c{next(self.serial)}"
        start = self.board.start(token, 0, call, MARGIN_MS, batch, self.now)
        for target in start.targets:
            if target.result is Result.OK:
                assert target.id not in self.polls, "two workers poll one target"
                self.polls[target.id] = (token, target)

    @precondition(lambda self: self.polls)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        """A long poll extends its lease; another token cannot."""
        target = data.draw(st.sampled_from(sorted(self.polls)))
        token, _ = self.polls[target]
        assert self.board.hold("other", 30_000, [target], self.now) == {target: Result.STALE}
        expected = Result.OK if target in self.specs else Result.GONE
        assert self.board.hold(token, 30_000, [target], self.now) == {target: expected}
        if expected is Result.GONE:
            del self.polls[target]

    @precondition(lambda self: self.polls)
    @rule(data=st.data(), place=st.sampled_from(Place), after_ms=st.sampled_from([0, 700, 60_000]))
    def finish(self, data: st.DataObject, place: Place, after_ms: int) -> None:
        """Finish as a worker does: a target that was well and is well is steady."""
        target = data.draw(st.sampled_from(sorted(self.polls)))
        token, started = self.polls.pop(target)
        steady = place is Place.DUE and started.status.state is State.OK
        move = Move(target, self.now + after_ms, "o[1]", place, steady)
        verdict = self.board.finish(token, [move], now_ms=self.now, queue=started.queue).results[0]
        assert verdict is (Result.OK if target in self.specs else Result.GONE)
        assert (
            self.board.finish(token, [move], now_ms=self.now, queue=started.queue).results[0]
            is Result.STALE
        )

    # invariants

    @invariant()
    def every_enabled_target_is_in_exactly_one_place(self) -> None:
        if hasattr(self, "specs"):
            check = self.board.check(sorted(self.specs))
            assert (check.lost, check.doubled) == ([], [])
            assert self.board.ids() == set(self.specs)

    @invariant()
    def every_queue_with_targets_is_listed(self) -> None:
        """Workers take batches from listed queues only."""
        if hasattr(self, "specs"):
            assert {spec.queue for spec in self.specs.values()} <= set(self.board.queues())

    @invariant()
    def only_targets_in_flight_have_an_edit_record(self) -> None:
        """While `edited` exists, every finish is slower."""
        if hasattr(self, "specs"):
            flying = set(self.client.zrange(self.board.keys.inflight, 0, -1))
            assert set(self.client.hkeys(self.board.keys.edited)) <= flying

    @invariant()
    def counts_by_state_are_true(self) -> None:
        if hasattr(self, "specs"):
            counts = {
                letter: int(n) for letter, n in self.client.hgetall(self.board.keys.counts).items()
            }
            assert all(number >= 0 for number in counts.values())
            assert sum(counts.values()) == len(self.specs)

    @invariant()
    def needs_are_true(self) -> None:
        if hasattr(self, "specs"):
            needs = dict.fromkeys(QUEUES, 0)
            for spec in self.specs.values():
                needs[spec.queue] += 10**9 // spec.interval_ms
            found = {
                queue: int(n) for queue, n in self.client.hgetall(self.board.keys.needs).items()
            }
            assert {**dict.fromkeys(QUEUES, 0), **found} == needs


@pytest.fixture
def machine(redis_client: redis.Redis) -> type[BoardMachine]:
    BoardMachine.client = redis_client
    return BoardMachine


def test_the_invariant_holds_under_any_interleaving(machine: type[BoardMachine]) -> None:
    """Hypothesis searches for a sequence that loses or doubles a target."""
    wide = settings(
        max_examples=60,
        stateful_step_count=60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=wide)
