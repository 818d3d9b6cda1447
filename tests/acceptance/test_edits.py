"""The inventory is edited while the cluster polls: edits take effect without burst or stall."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from poller.db.inventory import devices, imports, inventory_feed, targets
from poller.db.inventory.inventory_feed import Author
from poller.db.tables import readings
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from tests.acceptance.cluster import COLLECTOR, Cluster, soon, target
from tests.acceptance.records import Poll

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

FLEET, FLEET_INTERVAL_S = 10_000, 20.0
#: A busy machine catches up within this time; a burst would last longer.
WINDOW_S = 5.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A beat, a worker and a hundred targets."""
    with Cluster(tmp_path_factory.mktemp("edits")) as made:
        made.valkey.start()
        made.add_targets(100, 1.0)
        made.start_beat()
        made.start_worker()
        made.all_polled(0, 30)
        yield made


def add(cluster: Cluster, name: str, interval_s: float, seconds: float = 0.0) -> int:
    """Add a device with one target and wake the leader. Returns the id of the target."""
    draft = target(interval_s, seconds, timeout_s=interval_s / 2)
    devices.add(
        cluster.services.engine,
        DeviceDraft(name, "127.0.0.1"),
        [draft],
        Author(notify=cluster.services.notify),
    )
    return target_id(cluster, name)


def target_id(cluster: Cluster, name: str) -> int:
    return targets.show(cluster.services.engine, name, COLLECTOR).id


def polls_of(cluster: Cluster, target_id: int) -> list[Poll]:
    return [poll for poll in cluster.record.polls() if poll.target == target_id]


def running_poll(cluster: Cluster, target_id: int) -> Poll:
    """A poll of the target that started and did not end."""
    polls = soon(lambda: polls_of(cluster, target_id), 5, "its poll starts")
    assert polls[-1].end is None
    return polls[-1]


def on_board(cluster: Cluster, target_id: int) -> bool:
    return target_id in cluster.services.board.ids()


def test_commands_reach_the_board_within_a_second(cluster: Cluster) -> None:
    """A wake-up brings edits to the board; the periodic check comes half a minute later."""
    done = cluster.run(
        "device", "add", "new", "127.0.0.1", "--collector", COLLECTOR, "--interval", "10s"
    )
    assert done.returncode == 0, done.stderr
    new = target_id(cluster, "new")
    soon(lambda: on_board(cluster, new), 1, "the new target is on the board")
    soon(lambda: polls_of(cluster, new), 2, "it is polled at once")
    assert cluster.run("device", "edit", "new", "--disable").returncode == 0
    soon(lambda: not on_board(cluster, new), 1, "the disabled target is off the board")
    assert cluster.run("device", "edit", "new", "--enable").returncode == 0
    soon(lambda: on_board(cluster, new), 1, "the enabled target is on the board again")
    assert cluster.run("device", "rm", "new", "--yes").returncode == 0
    soon(lambda: not on_board(cluster, new), 1, "the removed target is off the board")
    cluster.sound()


def test_an_edit_in_flight_takes_effect_when_the_poll_ends(cluster: Cluster) -> None:
    """The next poll starts right after the end of the running one, with the new options."""
    slow = add(cluster, "slow", interval_s=30, seconds=2)
    first = running_poll(cluster, slow)
    draft = TargetDraft(options={"seconds": 0.0, "word": "edited"})
    targets.edit(
        cluster.services.engine, "slow", COLLECTOR, draft, Author(notify=cluster.services.notify)
    )
    second = soon(lambda: polls_of(cluster, slow)[1:], 6, "it is polled again")[0]
    assert first.end is not None
    assert second.start > first.end
    assert second.word == "edited"
    devices.remove(cluster.services.engine, ["slow"], Author(notify=cluster.services.notify))


def remove_while_polled(cluster: Cluster, name: str) -> int:
    """Remove a target during its poll, and wait for the end of the poll. Returns its id."""
    removed = add(cluster, name, interval_s=30, seconds=1.5)
    poll = running_poll(cluster, removed)
    devices.remove(cluster.services.engine, [name], Author(notify=cluster.services.notify))
    soon(lambda: not on_board(cluster, removed), 1, "the removed target is off the board")
    assert poll.end is None
    soon(lambda: cluster.record.polls() and poll.end, 5, "the poll ends")
    return removed


def test_a_target_removed_in_flight_is_forgotten_when_its_poll_ends(cluster: Cluster) -> None:
    """The late result puts no record of the target back on the board."""
    client, keys = cluster.valkey.client, cluster.services.keys
    removed = remove_while_polled(cluster, "removed")
    soon(lambda: not client.hexists(keys.run, removed), 5, "its run is over")
    assert client.zscore(keys.inflight, removed) is None
    assert not on_board(cluster, removed)
    cluster.sound()


def test_the_late_result_of_a_removed_target_is_not_stored(cluster: Cluster) -> None:
    """SQL has no reading of the removed target."""
    removed = remove_while_polled(cluster, "late")
    soon(
        lambda: not cluster.valkey.client.hexists(cluster.services.keys.run, removed),
        5,
        "its run is over",
    )
    with cluster.services.engine.connect() as conn:
        assert conn.execute(readings.select().where(readings.c.target_id == removed)).all() == []


def test_an_edit_without_a_wakeup_is_found_by_the_periodic_check(cluster: Cluster) -> None:
    """The board follows after reconcile_s at the latest."""
    old = cluster.beats.pop()
    cluster.start_beat(POLLER_RECONCILE_S="1")
    soon(cluster.standbys, 10, "a standby")
    old.terminate()
    assert old.wait(within_s=10) == 0
    cluster.all_polled(time.time(), 5)
    engine = cluster.services.engine
    devices.add(engine, DeviceDraft("quiet", "127.0.0.1"), [target(10)])
    quiet = target_id(cluster, "quiet")
    soon(lambda: on_board(cluster, quiet), 2, "the new target is on the board")
    devices.edit(engine, "quiet", DeviceDraft("quiet", enabled=False))
    soon(lambda: not on_board(cluster, quiet), 2, "the disabled target is off the board")
    devices.remove(engine, ["quiet"])
    devices.add(engine, DeviceDraft("quiet", "127.0.0.1"), [target(10)])
    soon(
        lambda: on_board(cluster, target_id(cluster, "quiet")),
        2,
        "the new target of that name is on the board",
    )
    cluster.sound()


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Ten thousand targets, polled at a steady rate."""
    with Cluster(tmp_path_factory.mktemp("fleet")) as made:
        made.valkey.start()
        made.add_targets(FLEET, FLEET_INTERVAL_S)
        made.start_beat()
        made.start_worker()
        made.start_worker()
        soon(made.first_poll, 30, "the first poll")
        yield made


def test_ten_thousand_edits_at_once_take_effect_without_a_burst(fleet: Cluster) -> None:
    """The board has all edits within two seconds; the rate stays below one and a half of the
    usual.
    """
    steady = FLEET / FLEET_INTERVAL_S
    began = time.time()
    soon(lambda: len(fleet.record.polls(began)) > steady, 10, "a steady rate")
    rows = [imports.Row(DeviceDraft(f"d{i}"), [EDITED]) for i in range(FLEET)]
    imports.apply_import(
        fleet.services.engine, rows, update=True, author=Author(notify=fleet.services.notify)
    )
    edited = time.time()
    version = inventory_feed.version(fleet.services.engine)
    soon(lambda: fleet.services.board.version() == version, 2, "the edits are on the board")
    soon(lambda: time.time() > edited + 2 + WINDOW_S, 10, "some seconds of polling")
    assert busiest(fleet.record.polls(began), WINDOW_S) < 1.5 * steady * WINDOW_S
    after = fleet.record.polls(edited + 2)
    assert len(after) > 0.5 * steady * WINDOW_S
    assert {poll.word for poll in after} == {"edited"}
    fleet.sound()


#: A longer interval and other options: all slots move, and the workers read all targets again.
EDITED = TargetDraft(
    COLLECTOR, COLLECTOR, {"word": "edited"}, interval_ms=round(1250 * FLEET_INTERVAL_S)
)


def busiest(polls: list[Poll], window_s: float) -> int:
    """The largest number of polls that started within any period of that length."""
    largest = first = 0
    for last, poll in enumerate(polls):
        while polls[first].start < poll.start - window_s:
            first += 1
        largest = max(largest, last - first + 1)
    return largest
