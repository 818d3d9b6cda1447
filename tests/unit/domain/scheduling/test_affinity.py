"""Affinity: each host has one worker, and moves only when it must."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity
from poller.domain.scheduling.affinity import Homes

HOSTS = [f"10.0.{number // 250}.{number % 250}" for number in range(3000)]
names = st.lists(
    st.text("abcdefgh@-0123456789", min_size=1, max_size=12), min_size=1, max_size=6, unique=True
)


def worker(name: str, queues: tuple[str, ...], sessions: tuple[str, ...] = ("routeros",)) -> Worker:
    return Worker(name, 0, 0, 0, 0, 0, queues=queues, sessions=sessions)


@given(names, st.text(min_size=1, max_size=30))
def test_only_the_hosts_of_a_worker_that_goes_move(workers: list[str], host: str) -> None:
    """The hosts of all other workers stay, in any order of the workers."""
    home = affinity.preferred_worker(host, workers)
    assert affinity.preferred_worker(host, workers[::-1]) == home
    for gone in workers:
        rest = [name for name in workers if name != gone]
        if gone != home:
            assert affinity.preferred_worker(host, rest) == home


def test_a_worker_that_comes_takes_its_share_and_nothing_else_moves() -> None:
    before = {host: affinity.preferred_worker(host, ["w1", "w2", "w3"]) for host in HOSTS}
    after = {host: affinity.preferred_worker(host, ["w1", "w2", "w3", "w4"]) for host in HOSTS}
    moved = {host for host in HOSTS if before[host] != after[host]}
    assert {after[host] for host in moved} == {"w4"}
    assert 0.2 < len(moved) / len(HOSTS) < 0.3
    shares = Counter(after.values())
    assert max(shares.values()) < 1.2 * min(shares.values())


def test_the_hash_is_the_same_in_every_release() -> None:
    """A changed hash would move every session of the fleet at an update."""
    assert [
        affinity.preferred_worker(f"192.0.2.{n}", ["a@x", "b@x", "c@y"])[0] for n in range(6)
    ] == list("ccbabc")


def test_own_queues_differ_from_shared_ones() -> None:
    queue = "poll.routeros;site=a@b.c"
    mine = affinity.own_queue(queue, "w1@host~2")
    assert (affinity.shared_queue(mine), affinity.queue_owner(mine)) == (queue, "w1@host~2")
    assert (affinity.shared_queue(queue), affinity.queue_owner(queue)) == (queue, "")
    assert affinity.subscribed_queues([queue], "w") == {queue, f"{queue}~w"}


def test_a_queue_of_jobs_has_no_home() -> None:
    """Its name is no collector, whatever collectors keep sessions."""
    workers = [worker(name, ("job.acme",), ("job.acme", "acme")) for name in ("a", "b")]
    workers += [replace(each, name=f"new {each.name}", own_queues=True) for each in workers]
    assert affinity.own_queues(workers) == set()
    assert affinity.homes(workers) == {}


def test_a_queue_has_homes_if_it_has_more_than_one_worker() -> None:
    """A queue of a collector that keeps sessions is divided by host among the workers with
    sessions, any other queue by target.
    """
    both = ("poll.routeros", "poll.snmp")
    w1, w2 = (replace(worker(name, both), own_queues=True) for name in ("w1", "w2"))
    assert affinity.homes([w1]) == {}
    assert affinity.homes([w2, w1]) == {
        "poll.routeros": Homes((("w1", 1), ("w2", 1)), is_by_host=True),
        "poll.snmp": Homes((("w1", 1), ("w2", 1)), is_by_host=False),
    }
    without = replace(w2, sessions=())
    assert affinity.homes([w1, without])["poll.routeros"] == Homes((("w1", 1),), is_by_host=True)
    elsewhere = replace(w2, queues=("poll.routeros;zone=dmz",))
    assert affinity.homes([w1, elsewhere]) == {}


def test_workers_of_an_earlier_release_have_own_queues_for_sessions_only() -> None:
    """Batches of other collectors that went to their own queue would not be taken."""
    both = ("poll.routeros", "poll.snmp")
    old = [worker("w1", both), worker("w2", both, ())]
    assert affinity.own_queues(old) == {"poll.routeros~w1"}
    assert affinity.homes(old) == {"poll.routeros": Homes((("w1", 1),), is_by_host=True)}


def test_a_worker_in_trouble_gets_no_batches_of_its_own() -> None:
    """Its targets would wait for a worker that cannot poll them, while another one can."""
    well = replace(worker("well", ("poll.snmp",)), own_queues=True)
    limited = replace(well, name="limited", rate_limit="1/m")
    without = replace(well, name="without", queues=("poll.snmp", "poll.ping"), store_error="away")
    assert affinity.able_slots([well, limited, without]) == {
        "poll.snmp~well": 1,
        "poll.ping~without": 1,
    }


def test_workers_stay_with_what_they_know_while_none_has_a_database() -> None:
    """No other worker could read their targets."""
    workers = [
        replace(worker(name, ("poll.snmp",)), own_queues=True, store_error="away", slots=3)
        for name in ("w1", "w2")
    ]
    assert affinity.able_slots(workers) == {"poll.snmp~w1": 3, "poll.snmp~w2": 3}
