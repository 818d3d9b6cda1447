"""Redis answers late: polling goes on at its rate, under the same leader."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster, soon

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]

TARGETS, INTERVAL_S, POLL_S = 100, 4.0, 0.05
START_S = 60
#: Time for the first ticks with the new delay.
SETTLE_S = 4.0


def test_a_slow_redis_delays_polls_and_stops_none(tmp_path: Path) -> None:
    """At 400 ms a round trip no poll of three intervals is left out; at a second the same beat
    still leads, and polls.
    """
    with Cluster(tmp_path) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
        networks = [cluster.make_network()]
        cluster.start_worker(network=networks[0])
        networks += [cluster.start_beat().network for _ in range(2)]
        cluster.all_polled(0, START_S)
        soon(lambda: cluster.standbys() == 1, START_S, "a standby")
        leader = soon(cluster.leading, 5, "a leader")

        began = time.time()
        for network in networks:
            network.slow_down(0.4)
        time.sleep(SETTLE_S)
        since = time.time()
        time.sleep(3 * INTERVAL_S)
        polls = Counter(poll.target for poll in cluster.record.polls(since))
        # A poll of the first or the last interval may be a little late, beyond one end of the time.
        assert min(polls[target] for target in cluster.targets()) >= 2
        assert polls.total() >= 2.8 * TARGETS

        for network in networks:
            network.slow_down(1.0)
        time.sleep(SETTLE_S)
        cluster.all_polled(time.time(), 3 * INTERVAL_S)
        assert soon(cluster.leading, 5, "a leader") == leader
        cluster.never_doubled(began)
        cluster.sound()
