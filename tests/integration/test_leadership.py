"""One leader at a time, whatever becomes of the lock."""

from __future__ import annotations

import redis

from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys


def test_one_leader_at_a_time_and_a_clean_hand_over(redis_client: redis.Redis) -> None:
    """Each new leader has a higher epoch; renewal never takes what is not ours."""
    one, two = (Leadership(redis_client, Keys(), 60_000) for _ in range(2))
    assert one.take() == (1, True)
    assert one.take() == (1, False)  # a late answer to our own request is adopted, not feared
    assert two.take() == (0, False)
    assert not two.renew()
    assert one.renew()
    assert one.resign()
    assert not one.renew()
    assert two.take() == (2, True)
    assert not one.resign()


def test_a_lock_that_outlives_its_holder_is_taken_over(redis_client: redis.Redis) -> None:
    """The clock was set back by an hour and the leader died: its lock would stand for an hour and four seconds."""
    gone, heir = (Leadership(redis_client, Keys(), 4_000) for _ in range(2))
    gone.take()
    assert heir.take() == (0, False)
    redis_client.pexpire(Keys().lock, 3_604_000)
    assert not heir.renew()
    assert heir.take() == (2, True)
    assert not gone.renew()


def test_a_lock_without_an_end_is_taken_over(redis_client: redis.Redis) -> None:
    """No poller makes one: whoever did, it would stop everybody for ever."""
    redis_client.set(Keys().lock, "somebody")
    assert Leadership(redis_client, Keys(), 4_000).take() == (1, True)


def test_a_lock_that_is_not_a_pollers_is_respected(redis_client: redis.Redis) -> None:
    """Whoever took it, for as long as they like."""
    ours = Leadership(redis_client, Keys(), 4_000)
    ours.take()
    redis_client.set(Keys().lock, "somebody else", px=3_600_000)
    assert ours.take() == (0, False)
