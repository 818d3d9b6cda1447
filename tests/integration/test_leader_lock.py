"""The lock has one leader at a time, also after a step of the clock or damage."""

from __future__ import annotations

import redis

from poller.state.cluster import overview_reader
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys


def test_one_leader_at_a_time_and_a_clean_hand_over(redis_client: redis.Redis) -> None:
    """Each new leader has a higher epoch; renewal never takes a free or foreign lock."""
    one, two = (Leadership(redis_client, Keys(), 60_000) for _ in range(2))
    assert one.take() == (1, True)
    assert one.take() == (1, False)  # a late reply to our own request
    assert two.take() == (0, False)
    assert not two.renew()
    assert one.renew()
    assert one.resign()
    assert not one.renew()
    assert two.take() == (2, True)
    assert not one.resign()


def test_a_standby_that_takes_the_lead_stands_by_no_more(redis_client: redis.Redis) -> None:
    """The overview would count the leader as a standby for five seconds otherwise."""
    leadership = Leadership(redis_client, Keys(), 60_000)
    leadership.stand_by(int(redis_client.time()[0]) * 1000)
    assert overview_reader.read(redis_client, Keys()).standbys == 1
    leadership.take()
    assert overview_reader.read(redis_client, Keys()).standbys == 0


def test_a_lock_that_outlives_its_holder_is_taken_over(redis_client: redis.Redis) -> None:
    """The clock was set back by an hour and the leader died: the lock would last for an hour."""
    dead, next_leader = (Leadership(redis_client, Keys(), 4_000) for _ in range(2))
    dead.take()
    assert next_leader.take() == (0, False)
    redis_client.pexpire(Keys().lock, 3_604_000)
    assert not next_leader.renew()
    assert next_leader.take() == (2, True)
    assert not dead.renew()


def test_a_lock_without_an_end_is_taken_over(redis_client: redis.Redis) -> None:
    """Another program made it; it would stop polling for ever."""
    redis_client.set(Keys().lock, "another program")
    assert Leadership(redis_client, Keys(), 4_000).take() == (1, True)


def test_a_lock_of_another_program_is_respected(redis_client: redis.Redis) -> None:
    """A foreign lock is not taken over before its end."""
    ours = Leadership(redis_client, Keys(), 4_000)
    ours.take()
    redis_client.set(Keys().lock, "another program", px=3_600_000)
    assert ours.take() == (0, False)
