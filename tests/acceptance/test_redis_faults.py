"""Redis is killed, emptied, frozen or cut off under load, and polling resumes by itself, in the
same processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance import faults
from tests.acceptance.cluster import Cluster
from tests.acceptance.records import Poll

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

TARGETS, INTERVAL_S, POLL_S = 300, 1.0, 0.05
BACK_WITHIN_S = 10
#: Long enough for every client to lose its connection.
DOWN_S = 2.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two beats and two workers that have polled every target once."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        made.valkey.start()
        made.add_targets(TARGETS, INTERVAL_S, POLL_S)
        for _ in range(2):
            made.start_beat()
            made.start_worker()
        made.all_polled(0, 30)
        yield made


def restarted(cluster: Cluster) -> None:
    cluster.valkey.kill()
    time.sleep(DOWN_S)
    cluster.valkey.start()


def frozen(cluster: Cluster) -> None:
    cluster.valkey.freeze()
    time.sleep(6)
    cluster.valkey.thaw()


def cut_off(cluster: Cluster) -> None:
    """Close every connection but the caller's, those of subscribers too."""
    for kind in ("normal", "pubsub"):
        cluster.valkey.client.client_kill_filter(_type=kind, skipme=True)


def replaced(cluster: Cluster) -> None:
    cluster.valkey.kill()
    time.sleep(DOWN_S)
    cluster.valkey.start(empty=True)


def flushed(cluster: Cluster) -> None:
    cluster.valkey.client.flushall()


@pytest.mark.parametrize("fault", [restarted, frozen, cut_off], ids=lambda fault: fault.__name__)
def test_polling_resumes_where_it_was(cluster: Cluster, fault: Callable[[Cluster], None]) -> None:
    """Every target is polled within ten seconds, none twice for one plan, in the same processes."""
    began, _ = endure(cluster, fault)
    cluster.never_doubled(began)


@pytest.mark.parametrize("fault", [replaced, flushed], ids=lambda fault: fault.__name__)
def test_an_emptied_redis_is_rebuilt(cluster: Cluster, fault: Callable[[Cluster], None]) -> None:
    """Polling resumes on an emptied Redis; results of polls in flight have no claim any more and
    are not written.
    """
    began, back = endure(cluster, fault)

    def was_under_way(poll: Poll) -> bool:
        return poll.start < back + 1 and (poll.end is None or poll.end > began - 1)

    cluster.never_doubled(back, excused=was_under_way)


def endure(cluster: Cluster, fault: Callable[[Cluster], None]) -> tuple[float, float]:
    """Return the instants at which the fault began and ended."""
    faults.ready(cluster)
    before, began = cluster.pids(), time.time()
    assert len(before) == 4
    fault(cluster)
    back = time.time()
    cluster.all_polled(back, BACK_WITHIN_S)
    cluster.all_polled(time.time(), INTERVAL_S + 3)
    assert cluster.pids() == before
    cluster.sound()
    return began, back
