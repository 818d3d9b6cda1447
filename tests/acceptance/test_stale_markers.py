"""A real Prometheus shows no series whose target vanished, failed, or is polled no more.

Without stale markers it would show the last value of each for five minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.db.inventory import devices, targets
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.acceptance.cluster import COLLECTOR, Cluster, soon
from tests.integration.store_servers import Prometheus

pytestmark = pytest.mark.timeout(120)

INTERVAL_S = 1.0
#: A poll and a write, on a busy machine.
SOON_S = 15.0
#: One and a half intervals, a sweep, and a write.
SWEPT_S = 30.0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A stock Prometheus: it takes no sample that is older than the last one of its series."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, prometheus: Prometheus) -> Iterator[Cluster]:
    """A beat, two workers that share the targets, and seven devices `d0` to `d6`."""
    directory: Path = tmp_path_factory.mktemp("ends")
    table = {"prom": {"kind": "remote_write", "url": f"{prometheus.url}/api/v1/write"}}
    settings = {"POLLER_SINKS": "sql,prom", "POLLER_SINK": json.dumps(table)}
    with Cluster(directory, **settings) as made:
        made.valkey.start()
        made.add_targets(7, INTERVAL_S)
        made.start_beat()
        made.start_worker()
        made.start_worker()
        made.all_polled(0, 60)
        yield made


def author(cluster: Cluster) -> Author:
    return Author(notify=cluster.services.notify)


def edit_options(cluster: Cluster, device: str, **options: object) -> None:
    draft = TargetDraft(COLLECTOR, COLLECTOR, options)
    targets.edit(cluster.services.engine, device, COLLECTOR, draft, author(cluster))


def shown(prometheus: Prometheus, expression: str) -> list[str]:
    """Return the devices of the series that Prometheus shows now, sorted."""
    return sorted(series["metric"]["device"] for series in prometheus.query(expression))


def test_prometheus_shows_only_series_that_are_polled(
    cluster: Cluster, prometheus: Prometheus
) -> None:
    """Two workers share the targets: whichever polls next ends what another one sent."""
    everyone = [f"d{number}" for number in range(7)]
    edit_options(cluster, "d0", word="old")
    soon(lambda: shown(prometheus, "polled") == everyone, SOON_S, "all are shown")
    soon(lambda: shown(prometheus, 'worded{word="old"}') == ["d0"], SOON_S, "the old word is shown")

    engine = cluster.services.engine
    edit_options(cluster, "d0", word="new")
    edit_options(cluster, "d1", seconds=5)
    devices.edit(engine, "d2", DeviceDraft("d2", enabled=False), author(cluster))
    devices.remove(engine, ["d3"], author(cluster))
    devices.edit(engine, "d4", DeviceDraft("renamed"), author(cluster))

    soon(lambda: shown(prometheus, 'worded{word="new"}') == ["d0"], SOON_S, "the new word is shown")
    assert shown(prometheus, 'worded{word="old"}') == []
    left = ["d0", "d5", "d6", "renamed"]
    soon(lambda: shown(prometheus, "polled") == left, SWEPT_S, "only polled series are shown")

    edit_options(cluster, "d1", seconds=0)
    soon(lambda: "d1" in shown(prometheus, "polled"), SOON_S, "what is well again is shown")
    with_five_minutes = shown(prometheus, "last_over_time(polled[5m])")
    assert set(with_five_minutes) == {*everyone, "renamed"}
