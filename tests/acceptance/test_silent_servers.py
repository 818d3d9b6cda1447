"""A server accepts connections and never answers: every process still ends when it is told to."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

TARGETS, INTERVAL_S, POLL_S = 100, 1.0, 0.05
START_S = 60
STOPPED_WITHIN_S = 10
#: Long enough for a call of each process to wait for an answer.
SILENT_S = 2.0


def test_a_silent_redis_delays_no_end(tmp_path: Path) -> None:
    """The leader, a standby and a worker end with status 0 within ten seconds of SIGTERM."""
    with Cluster(tmp_path) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
        network = cluster.make_network()
        worker = cluster.start_worker(network=network)
        beats = [cluster.start_beat(), cluster.start_beat()]
        cluster.all_polled(0, START_S)
        for each in (network, *(beat.network for beat in beats)):
            each.silence()
        time.sleep(SILENT_S)
        began = time.monotonic()
        for program in (worker, *beats):
            program.terminate()
        ends = {}
        for program in (*beats, worker):
            status = program.wait(within_s=60)
            ends[program.name] = (status, round(time.monotonic() - began, 1))
    assert all(status == 0 for status, _ in ends.values()), ends
    assert all(seconds < STOPPED_WITHIN_S for _, seconds in ends.values()), ends
