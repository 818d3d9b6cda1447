"""The leader is lost in many ways: another beat dispatches within 5 s, no poll is doubled."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from tests.acceptance import faults
from tests.acceptance.cluster import Cluster, soon
from tests.acceptance.faults import Fault

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

TARGETS, INTERVAL_S, POLL_S = 300, 1.0, 0.05
TRIALS = 2
SUDDEN = ([faults.KILLED] * TRIALS, [faults.FROZEN] * TRIALS, [faults.SILENT, faults.REFUSED])
#: After a fault every target is polled within its interval, and the time a busy machine needs.
POLLED_WITHIN_S = INTERVAL_S + 3
#: Time for new processes to start and poll every target once.
START_S = 30


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three beats and two workers that have polled every target once."""
    with Cluster(tmp_path_factory.mktemp("many")) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
        for _ in range(3):
            cluster.start_beat()
        for _ in range(2):
            cluster.start_worker()
        cluster.all_polled(0, START_S)
        yield cluster


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker, and the beats that a test starts and stops."""
    with Cluster(tmp_path_factory.mktemp("few")) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
        cluster.start_worker()
        yield cluster


@pytest.fixture
def no_beats(few: Cluster) -> Iterator[Cluster]:
    """The small cluster; its beats are stopped after the test."""
    yield few
    for beat in few.beats:
        beat.terminate()
    for beat in few.beats:
        assert beat.wait(within_s=10) == 0, beat.text()[-2000:]
    few.beats.clear()


@pytest.mark.parametrize(
    "kinds", SUDDEN, ids=lambda kinds: " and ".join(sorted({kind.name for kind in kinds}))
)
def test_a_standby_dispatches_within_five_seconds(many: Cluster, kinds: Sequence[Fault]) -> None:
    """No target is lost or doubled; a beat that was cut off becomes a standby."""
    began = time.time()
    for kind in kinds:
        faults.ready(many)
        takeover = faults.take_over(many, kind.strike)
        assert takeover.seconds < 5
        kind.mend(many, takeover.lost)
    # A lease is longer than all this: a stranded target would not be polled in time.
    many.all_polled(takeover.resumed, POLLED_WITHIN_S)
    faults.ready(many)
    assert all(program.runs for program in [*many.beats, *many.workers])
    many.never_doubled(began)
    many.checked()


def test_a_clean_stop_hands_over_within_a_second(many: Cluster) -> None:
    """SIGTERM ends the leader with status 0, and a standby does not wait for the lock."""
    began = time.time()
    for _ in range(TRIALS):
        faults.ready(many)
        takeover = faults.take_over(many, faults.STOPPED.strike)
        assert takeover.seconds < 1
        assert takeover.lost.wait(within_s=10) == 0
        faults.STOPPED.mend(many, takeover.lost)
    many.all_polled(takeover.resumed, POLLED_WITHIN_S)
    many.never_doubled(began)
    many.sound()


def test_late_batches_of_a_resumed_leader_are_refused(many: Cluster) -> None:
    """A leader is stopped between claim and publish; another beat publishes the claim meanwhile."""
    began = time.time()
    faults.ready(many)
    old = soon(many.leader, 5, "a leader")
    old.network.hold(b"poller.poll")  # the name of the task: a batch is being published
    soon(lambda: old.network.holding, 5, "a batch is being published")
    takeover = faults.take_over(many, lambda beat: beat.freeze())
    assert takeover.lost is old
    many.all_polled(takeover.resumed, POLLED_WITHIN_S)
    refused = refusals(many)
    old.network.release()
    soon(lambda: refusals(many) > refused, 5, "the late batch arrives, and is refused")
    old.thaw()
    faults.ready(many)
    assert old.runs
    many.never_doubled(began)
    many.sound()


def refusals(cluster: Cluster) -> int:
    """The number of targets in duplicate and late messages."""
    totals = cluster.valkey.client.hmget(cluster.services.keys.totals, "duplicate", "stale")
    return sum(int(number or 0) for number in totals)


def test_every_beat_and_worker_answers_a_ping(many: Cluster) -> None:
    """A standby responds too: it is healthy, although it dispatches nothing."""
    faults.ready(many)
    expected = {program.name for program in [*many.beats, *many.workers]}
    soon(lambda: many.ping() >= expected, 20, f"pongs of {expected}")


def test_a_single_leader_whose_lock_is_stolen_steps_down_and_comes_back(no_beats: Cluster) -> None:
    """The leader does not crash, and does not dispatch while another token is in the lock."""
    began = time.time()
    beat = no_beats.start_beat()
    no_beats.all_polled(began, START_S)
    no_beats.valkey.client.set(no_beats.services.keys.lock, "another token", px=3000)
    stolen = time.time()
    soon(lambda: time.time() > stolen + 2.9, 5, "the other token expired")
    assert [poll for poll in no_beats.record.polls(stolen + 1) if poll.start < stolen + 2.9] == []
    first = soon(lambda: no_beats.first_poll(stolen + 2.9), 5, "polls again")
    assert first.start - stolen < 4
    assert "leadership_lost" in beat.text()
    no_beats.all_polled(first.start, POLLED_WITHIN_S)
    assert beat.runs
    no_beats.never_doubled(began)
    no_beats.sound()


def test_without_election_one_beat_leads_and_warns_and_two_double_nothing(
    no_beats: Cluster,
) -> None:
    """POLLER_LEADER_ELECTION=false is for one beat; a second one costs messages, not polls."""
    began = time.time()
    one = no_beats.start_beat(POLLER_LEADER_ELECTION="false")
    no_beats.all_polled(began, START_S)
    assert "leader_election_off" in one.text()
    two = no_beats.start_beat(POLLER_LEADER_ELECTION="false")
    soon(lambda: "leader_election_off" in two.text(), START_S, "a second beat leads too")
    refused = refusals(no_beats)
    soon(lambda: refusals(no_beats) > refused, 10, "both publish")
    no_beats.all_polled(time.time(), POLLED_WITHIN_S)
    no_beats.all_polled(time.time(), POLLED_WITHIN_S)
    no_beats.never_doubled(began)
    no_beats.sound()


def test_a_beat_that_starts_before_redis_waits_and_dispatches_when_it_comes(
    no_beats: Cluster,
) -> None:
    """The beat keeps running, and dispatches within two seconds after the start of Redis."""
    no_beats.valkey.kill()
    beat = no_beats.start_beat()
    soon(lambda: "tick_failed" in beat.text(), START_S, "the log says that Redis is down")
    assert beat.runs
    no_beats.valkey.start()
    up = time.time()
    soon(
        lambda: no_beats.valkey.client.zcard(no_beats.services.keys.inflight),
        2,
        "targets are dispatched",
    )
    no_beats.all_polled(up, 10)
    assert beat.runs
    no_beats.never_doubled(up)
    no_beats.sound()


def test_a_worker_with_a_beat_inside_polls_and_answers_a_ping(few: Cluster) -> None:
    """`celery -A poller worker -B` is one process for both roles."""
    both = few.start_worker("-B")
    began = time.time()
    few.all_polled(began, START_S)
    soon(lambda: both.name in few.ping(), 20, "a pong")
    both.terminate()
    assert both.wait(within_s=15) == 0
    few.never_doubled(began)
