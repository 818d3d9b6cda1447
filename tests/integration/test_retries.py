"""A failing target is retried, then its breaker opens, then it is parked; a success brings
it back.
"""

from __future__ import annotations

from poller.db.record import run_pages
from poller.db.tables import targets as targets_table
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from tests.integration.worlds import QUEUE, World


def test_only_failed_targets_that_may_recover_travel_in_the_retry(world: World) -> None:
    """Retried targets stay in flight under the same run; the others are due at their next slot."""
    world.retrying(2)
    ids = world.add("answer", "dead", "crash")
    world.claim()
    assert world.poller.poll("t", ids) == [ids[1]]
    assert world.in_flight() == 1
    assert world.board.statuses(ids)[ids[1]].run_ms == 0
    assert (
        world.poller.poll("t", [ids[1]], attempt=0) == []
    )  # the first message once more: a duplicate
    assert world.poller.poll("t", [ids[1]], attempt=1) == [ids[1]]
    assert world.poller.poll("t", [ids[1]], attempt=2) == []
    assert world.in_flight() == 0
    found = world.board.statuses(ids)[ids[1]]
    assert (found.failures, found.code) == (1, "timeout")
    assert [
        row.run.attempt for row in run_pages.recent(world.services.engine, target_ids=[ids[1]])
    ] == [3]
    assert world.sound(ids)


def test_a_retry_that_succeeds_is_a_good_run(world: World) -> None:
    """No failure is counted, and the breaker stays closed."""
    world.retrying(2)
    ids = world.add("dead")
    world.claim()
    assert world.poller.poll("t", ids) == ids
    world.collector.recovered = True
    assert world.poller.poll("t", ids, attempt=1) == []
    assert world.board.statuses(ids)[ids[0]].failures == 0
    assert world.outcomes() == {ids[0]: (Result.OK, "")}


def test_a_lost_retry_comes_back_by_its_lease(world: World) -> None:
    """A worker that dies with a retry loses nothing: the leader reaps the target."""
    world.retrying(2)
    ids = world.add("dead")
    world.claim()
    world.poller.poll("t", ids)
    now_ms = world.board.now_ms()
    assert world.board.reap("", now_ms=now_ms + 30_000) == []
    assert [item.id for item in world.board.reap("", now_ms=now_ms + 60_000)] == ids
    assert world.poller.poll("t", ids, attempt=1) == []
    assert world.sound(ids)


def test_a_site_that_goes_dark_costs_a_bounded_number_of_retries(world: World) -> None:
    """Retries are limited to a tenth of the polls, plus a reserve of a hundred."""
    world.retrying(2)
    ids = world.add(*["dead"] * 400)
    world.claim()
    again = sum(len(world.poller.poll("t", ids[n : n + 50])) for n in range(0, 400, 50))
    assert 100 <= again <= 140
    assert world.sound(ids)


def test_a_target_that_keeps_failing_is_left_alone_and_recovers(world: World) -> None:
    """The breaker opens with the third failure; the probe is not retried, and its success closes
    the breaker.
    """
    ids = world.add("dead", interval_ms=10_000)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(2):
        assert world.services.redis.zcard(world.services.keys.urgent(QUEUE)) == 0
        world.poll_now(ids, f"t{number}")
    opened = world.board.statuses(ids)[ids[0]]
    assert (opened.failures, opened.breaker.trips) == (3, 1)
    assert 17_000 <= world.due_ms(ids[0]) - opened.finished_ms <= 30_000
    world.retrying(2)
    world.poll_now(ids, "probe")
    waited = world.board.statuses(ids)[ids[0]]
    assert (waited.failures, waited.breaker.trips, world.in_flight()) == (4, 2, 0)
    world.collector.recovered = True
    world.poll_now(ids, "good")
    healed = world.board.statuses(ids)[ids[0]]
    assert (healed.failures, healed.breaker.trips, healed.code) == (0, 0, "")
    assert world.services.redis.zscore(world.services.keys.due(QUEUE), str(ids[0])) is not None
    totals = world.services.redis.hgetall(world.services.keys.totals)
    assert (totals["breaker_opened"], totals["breaker_closed"]) == ("1", "1")


def test_a_target_that_cannot_be_polled_is_parked_and_retried_slowly(world: World) -> None:
    """A parked target is in no queue; after a success it is an ordinary target again."""
    ids = world.add("answer")
    with world.services.engine.begin() as conn:
        conn.execute(targets_table.update().values(options={"do": 7}))
    world.claim()
    world.poller.poll("t", ids)
    found = world.board.statuses(ids)[ids[0]]
    assert found.parked_ms > 0
    score = world.services.redis.zscore(world.services.keys.parked, str(ids[0]))
    assert 1_600_000 <= score - found.finished_ms <= 1_800_000
    assert world.board.unpark("", int(score) - 1) == 0
    assert world.board.unpark("", int(score)) == 1
    assert world.sound(ids)
    with world.services.engine.begin() as conn:
        conn.execute(targets_table.update().values(options={"do": "answer"}, version=9))
    world.board.place("", [(TargetSpec(ids[0], 9, QUEUE, 60_000, 2_000), 1)], 9)
    world.poll_now(ids, "u")
    assert world.board.statuses(ids)[ids[0]].parked_ms == 0
