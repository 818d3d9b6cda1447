"""The registry of beats: who is there, and who leads."""

from __future__ import annotations

import pytest
import redis

from poller.bootstrap import Services
from poller.settings import Settings
from poller.state.cluster import beat_registry
from poller.state.cluster.beat_registry import BeatInstance
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys

KEYS = Keys()
NOW_MS = 1_800_000_000_000


def test_living_beats_are_listed(redis_client: redis.Redis) -> None:
    """Silent ones, and entries that no beat wrote, are left out."""
    leader = BeatInstance("one", leads=True, election=True, jobs=3, seen_ms=NOW_MS)
    gone = BeatInstance("two", leads=True, election=True, jobs=3, seen_ms=NOW_MS - 11_000)
    lost = BeatInstance("three", leads=False, election=True, jobs=3, seen_ms=1)
    for beat in (leader, gone, lost):
        beat_registry.announce(redis_client, KEYS, beat)
    rubbish = {"four": "{", "five": "[]", "six": "{}", "seven": '{"leads": 1, "jobs": "x"}'}
    redis_client.hset(KEYS.beats, mapping=rubbish)
    assert beat_registry.listing(redis_client, KEYS, NOW_MS) == [leader]
    assert leader.leads

    beat_registry.forget_lost(redis_client, KEYS, NOW_MS)
    assert not redis_client.hexists(KEYS.beats, "three")
    assert redis_client.hexists(KEYS.beats, "two")
    beat_registry.leave(redis_client, KEYS, "one")
    assert beat_registry.listing(redis_client, KEYS, NOW_MS) == []


def test_a_standby_is_listed_in_the_round_trip_of_its_heartbeat(redis_client: redis.Redis) -> None:
    """It knows how many entries RedBeat has. A damaged registry does not stop it."""
    leadership = Leadership(redis_client, KEYS, 4_000, "standby-1")
    redis_client.zadd(KEYS.schedule, {"a": 1, "b": 2})
    leadership.stand_by(NOW_MS)
    leadership.stand_by(NOW_MS)
    (beat,) = beat_registry.listing(redis_client, KEYS, NOW_MS)
    assert (beat.instance, beat.leads, beat.jobs) == ("standby-1", False, 2)
    redis_client.delete(KEYS.beats)
    redis_client.set(KEYS.beats, "another program's")
    leadership.stand_by(NOW_MS)
    assert redis_client.zscore(KEYS.standbys, "standby-1") == NOW_MS


def test_the_instance_id_is_the_name_of_a_beat(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the lock's record and in the list of standbys."""
    monkeypatch.setenv("POLLER_INSTANCE_ID", "beat-a")
    named = Services(Settings()).leadership
    assert named.name == "beat-a"
    assert named.take() == (1, True)
    assert services.redis.hget(services.keys.leader, "name") == "beat-a"
    assert services.leadership.name != "beat-a"
