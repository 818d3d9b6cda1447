"""Real schedulers die while they tell people: nothing is lost, nothing has a second key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poller.db import database_clock
from poller.db.alerts import delivery_listing
from poller.db.alerts.delivery_listing import DeliveryFilter
from poller.domain.alerts.telling.delivery import DeliveryState
from tests.acceptance.cluster import Beat, Cluster, soon
from tests.contract.stored_alerts import fire
from tests.integration.alert_receivers import Mood, web

pytestmark = pytest.mark.timeout(180)

ALERTS = 30


def test_a_killed_leader_loses_no_notice(tmp_path: Path) -> None:
    """Three leaders are killed one after another in the middle of sending; every alert arrives,
    and no alert under two keys.
    """
    with web(Mood()) as (url, mood), web(Mood(hangs=True)) as (stuck_url, stuck):
        receivers = {
            "hook": {"kind": "webhook", "url": url},
            "stuck": {"kind": "webhook", "url": stuck_url, "timeout_s": 30},
        }
        route = {"receivers": ["hook", "stuck"], "group_by": ["device"], "group_wait": "0s"}
        tables = {
            "POLLER_RECEIVER": json.dumps(receivers),
            "POLLER_ROUTE": json.dumps({"ops": {**route, "per_minute": 0}}),
        }
        with Cluster(tmp_path, **tables) as cluster:
            cluster.valkey.start()
            engine = cluster.services.engine
            cluster.add_targets(ALERTS, 60)  # no worker polls them
            for _ in range(4):
                cluster.start_beat()
            for part in range(3):
                leader = soon(lambda: living(cluster), 30, "a leader")
                for number in range(part * ALERTS // 3, (part + 1) * ALERTS // 3):
                    fire(engine, number + 1, database_clock.now_ms(engine))
                told = len(mood.bodies)
                soon(lambda told=told: len(mood.bodies) > told, 20, "the first notices of a part")
                leader.kill()
            stuck.hangs = False
            stuck.free.set()
            soon(lambda: is_all_sent(cluster), 60, "every delivery is sent")
            made = delivery_listing.page(engine, DeliveryFilter(), 500)
    assert len(made) == 2 * ALERTS
    for bodies in (mood.bodies, stuck.bodies):
        keys: dict[str, set[str]] = {}
        for body in bodies:
            if body["kind"] == "firing":
                for alert in body["alerts"]:
                    keys.setdefault(alert["device"], set()).add(body["key"])
        assert len(keys) == ALERTS
        assert {len(each) for each in keys.values()} == {1}


def living(cluster: Cluster) -> Beat | None:
    """The leader; None while a dead one has the lock."""
    leader = cluster.leader()
    return leader if leader is not None and leader.runs else None


def is_all_sent(cluster: Cluster) -> bool:
    """Whether every alert was told to both receivers."""
    found = delivery_listing.page(cluster.services.engine, DeliveryFilter(), 500)
    sent = [each for each in found if each.state is DeliveryState.SENT]
    return len(sent) == len(found) == 2 * ALERTS
