"""Faults that remove a leader, and the time until another beat dispatches.

Tests and benchmark share them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.acceptance.cluster import Beat, Cluster, soon

#: A takeover that takes longer is a failure, not a slow success.
PATIENCE_S = 15


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    strike: Callable[[Beat], None]
    mend: Callable[[Cluster, Beat], None]


@dataclass(frozen=True, slots=True)
class Takeover:
    """`seconds` is the time from the fault to `resumed`, the first poll that the new leader
    dispatched.
    """

    seconds: float
    resumed: float
    lost: Beat
    leader: Beat


def take_over(cluster: Cluster, strike: Callable[[Beat], None]) -> Takeover:
    """Strike the leader and wait until another beat dispatches."""
    lost = soon(cluster.leader, PATIENCE_S, "a beat leads")
    struck = time.time()
    strike(lost)
    leader = soon(lambda: _other_leader(cluster, lost), PATIENCE_S, "another beat leads")
    seen = cluster.leading()
    assert seen is not None
    first = soon(
        lambda: cluster.first_poll(seen.since_ms / 1000), PATIENCE_S, "a poll for the new leader"
    )
    return Takeover(first.start - struck, first.start, lost, leader)


def _other_leader(cluster: Cluster, lost: Beat) -> Beat | None:
    found = cluster.leader()
    return None if found is lost else found


def ready(cluster: Cluster) -> None:
    """Wait until one beat leads and all other running beats are standbys."""
    running = sum(beat.runs for beat in cluster.beats)
    soon(
        lambda: cluster.leader() and cluster.standbys() >= running - 1,
        PATIENCE_S,
        f"{running - 1} standbys",
    )


def _replace(cluster: Cluster, beat: Beat) -> None:
    cluster.beats.remove(beat)
    cluster.start_beat()


KILLED = Fault("kill -9", Beat.kill, _replace)
STOPPED = Fault("SIGTERM", Beat.terminate, _replace)
FROZEN = Fault("SIGSTOP", Beat.freeze, lambda _, beat: beat.thaw())
SILENT = Fault(
    "black hole", lambda beat: beat.network.silence(), lambda _, beat: beat.network.heal()
)
REFUSED = Fault("refused", lambda beat: beat.network.refuse(), lambda _, beat: beat.network.heal())
#: Faults without a handover: the lock has to run out.
SUDDEN = (KILLED, FROZEN, SILENT, REFUSED)
