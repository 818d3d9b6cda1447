"""The list of queues on a real server, and the subscriptions of workers to it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from poller import wakeups
from poller.bootstrap import Services
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.scheduling import affinity
from poller.domain.scheduling.worker_drain import Drain
from poller.jobs import api
from poller.jobs.registry import Registry
from poller.settings import Settings
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_values import ClaimLimits, Move, NotLeader, Place
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import ROUTINE_MARK, Keys
from poller.state.requests import worker_drains
from poller.workers.process.subscriptions import Subscriptions
from tests.acceptance.cluster import soon

QUEUE, OTHER = "poll.snmp", "poll.snmp;zone=dmz"
NOW = 1_800_000_000_000
MONTH_MS = 31 * 86_400_000
LIMITS = ClaimLimits(targets=1000, batch_size=10, lease_ms=30_000)


class World:
    """A board with its leader."""

    def __init__(self, client: redis.Redis) -> None:
        self.redis, self.keys = client, Keys()
        self.board = Board(client, self.keys)
        self.maintenance = BoardMaintenance(self.board)
        leadership = Leadership(client, self.keys, 60_000)
        leadership.take()
        self.leader = leadership.token

    def place(self, version: int, *specs: tuple[int, str], interval_ms: int = 60_000) -> None:
        """Targets with their queues; '' removes one."""
        rows = [
            (TargetSpec(i, version, queue, interval_ms, 5_000, bool(queue)), NOW)
            for i, queue in specs
        ]
        self.board.place(self.leader, rows, version)

    def fly(self, token: str, queue: str) -> list[int]:
        claim = self.board.claim(self.leader, token, "", {queue: 100}, LIMITS, NOW)
        return [int(i) for part in claim.parts for i in part.ids]

    def went(self) -> list[str]:
        return self.maintenance.update_queues(self.leader).went


@pytest.fixture
def world(redis_client: redis.Redis) -> World:
    return World(redis_client)


def test_a_queue_goes_with_its_last_target(world: World) -> None:
    """The queue stays for other targets, and leaves once."""
    world.place(1, (1, QUEUE), (2, OTHER), (3, OTHER))
    assert world.went() == []
    world.place(2, (2, ""))
    assert world.went() == []
    world.place(3, (3, ""))
    assert world.went() == [OTHER]
    assert world.went() == []
    assert world.board.queues() == [QUEUE]


def test_an_old_queue_goes_with_a_target_that_moves(world: World) -> None:
    """An edit of a required tag makes a new domain and ends the old one."""
    world.place(1, (1, QUEUE))
    world.place(2, (1, OTHER))
    assert world.went() == [QUEUE]
    assert world.board.queues() == [OTHER]


@pytest.mark.parametrize("place", ["in flight", "parked", "held"])
def test_a_queue_stays_while_its_target_is_elsewhere(world: World, place: str) -> None:
    """A target in flight, parked or held returns to its queue."""
    world.place(1, (1, QUEUE))
    if place == "held":
        assert world.board.withhold(world.leader, 7, [1]) == 1
    else:
        assert world.fly("t", QUEUE) == [1]
    if place == "parked":
        world.board.start("t", 0, "c", 15_000, [1], NOW)
        world.board.finish("t", [Move(1, NOW + 1000, place=Place.PARKED)], now_ms=NOW)
    assert world.redis.zcard(world.keys.due(QUEUE)) == 0
    assert world.went() == []
    assert world.board.queues() == [QUEUE]


def test_the_longest_interval_needs_its_queue_as_well(world: World) -> None:
    """A need of less than a millionth of a poll per second is not 0."""
    world.place(1, (1, QUEUE), interval_ms=MONTH_MS)
    assert world.fly("t", QUEUE) == [1]
    assert world.went() == []
    world.place(2, (1, ""), interval_ms=MONTH_MS)
    assert world.went() == [QUEUE]


@pytest.mark.parametrize(
    "name", [QUEUE, affinity.own_queue(QUEUE, "w1")], ids=["for all", "for one"]
)
@pytest.mark.parametrize("mark", ["", ROUTINE_MARK], ids=["urgent", "routine"])
def test_a_queue_goes_after_its_messages(world: World, name: str, mark: str) -> None:
    """Workers take the messages first, so that no target is stranded."""
    world.place(1, (1, QUEUE))
    world.redis.sadd(
        world.keys.own, affinity.own_queue(QUEUE, "w1"), affinity.own_queue(OTHER, "w1")
    )
    world.redis.lpush(name + mark, "a batch")
    world.place(2, (1, OTHER))
    assert world.went() == []
    world.redis.rpop(name + mark)
    assert world.went() == [QUEUE]


def test_a_target_of_a_vanished_queue_is_due_after_its_lease(world: World) -> None:
    """A worker died with the message: the target is due in its new queue."""
    world.place(1, (1, QUEUE))
    assert world.fly("t", QUEUE) == [1]
    world.place(2, (1, OTHER))
    assert world.went() == [QUEUE]
    assert [each.id for each in world.board.reap(world.leader, now_ms=NOW + 31_000)] == [1]
    assert world.redis.zscore(world.keys.due(OTHER), "1") is not None
    check = world.board.check([1])
    assert (check.lost, check.doubled) == ([], [])


def test_a_damaged_list_is_repaired_and_foreign_entries_stay(world: World) -> None:
    """A queue that targets need comes back; a queue without a need on record stays."""
    world.place(1, (1, QUEUE), (2, OTHER))
    world.redis.srem(world.keys.queues, OTHER)
    world.redis.sadd(world.keys.queues, "rubbish")
    assert world.maintenance.update_queues(world.leader).came == [OTHER]
    assert world.board.queues() == sorted([QUEUE, OTHER, "rubbish"])
    world.redis.hset(world.keys.needs, QUEUE, "rubbish")
    world.fly("t", QUEUE)
    assert world.went() == []


def test_only_the_leader_updates_the_queues(world: World) -> None:
    """A call of another process changes nothing."""
    world.place(1, (1, QUEUE))
    world.place(2, (1, ""))
    with pytest.raises(NotLeader):
        world.maintenance.update_queues("another process")
    assert world.board.queues() == [QUEUE]


def test_each_change_of_the_list_wakes_the_workers_once(world: World) -> None:
    """The message is published with the step that changed the list."""
    heard: list[str] = []
    stopping = threading.Event()
    wakeups.listen(world.redis, world.keys.domains, heard.append, stopping)
    soon(lambda: heard == [wakeups.RESUBSCRIBED], 5, "the subscription")
    world.place(1, (1, QUEUE))
    world.place(2, (2, QUEUE))
    world.went()
    world.place(3, (1, ""), (2, ""))
    world.went()
    world.redis.publish(world.keys.domains, "end")
    soon(lambda: heard[-1] == "end", 5, "the last note")
    assert heard[1:] == ["came", "changed", "end"]
    stopping.set()
    silent()


def silent() -> None:
    """Wait until the listening threads have ended."""
    names = ("wakeups", "domains")
    soon(
        lambda: not any(thread.name in names for thread in threading.enumerate()),
        5,
        "the threads end",
    )


class Consumer:
    """A Celery consumer whose calls on the hub wait for `run`."""

    def __init__(self, consumed: list[str]) -> None:
        self.consumed = dict.fromkeys(consumed)
        self.calls: list[Any] = []
        self.hub = SimpleNamespace(
            call_soon=lambda call, *args: self.calls.append(lambda: call(*args))
        )
        self.app = SimpleNamespace(
            amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=self.consumed))
        )
        self.task_consumer = object()
        self.hostname = "w@test"

    def add_task_queue(self, name: str) -> None:
        self.consumed[name] = None

    def cancel_task_queue(self, name: str) -> None:
        del self.consumed[name]

    def run(self) -> set[str]:
        """Make the waiting calls, newest first, since the hub keeps no order; return the queues.

        The own queue of the worker beside each queue of polls is checked here and left out.
        """
        while self.calls:
            self.calls.pop()()
        queues = {name for name in self.consumed if not affinity.queue_owner(name)}
        polls = [name for name in queues if name.startswith("poll.")]
        assert set(self.consumed) - queues == {f"{queue}~{self.hostname}" for queue in polls}
        return queues


def test_a_worker_subscribes_to_fitting_queues_and_leaves_queues_that_vanished(
    services: Services,
) -> None:
    """A consumer that reconnects has the queues of before; queues that are not for polls stay."""
    services.redis.sadd(
        services.keys.queues, QUEUE, OTHER, "poll.snmp;zone=lan", "poll.acme", "rubbish"
    )
    changed = threading.Event()
    services.jobs = Registry()  # type: ignore[misc]
    subscriptions = Subscriptions(services, {"zone": "dmz"}, changed)
    consumer = Consumer(["poller", "poll.gone"])
    subscriptions.attach(consumer)
    try:
        soon(lambda: consumer.calls, 5, "the first refresh")
        assert subscriptions.served == []
        assert consumer.run() == {"poller", QUEUE, OTHER, "scrape", "scrape;zone=dmz"}
        assert subscriptions.served == [QUEUE, OTHER]
        assert changed.is_set()
        subscriptions.detach()
        assert subscriptions.served == []
        again = Consumer(["poller", *affinity.subscribed_queues([QUEUE, OTHER], "w@test")])
        services.redis.srem(services.keys.queues, QUEUE, OTHER)
        subscriptions.attach(again)
        soon(lambda: again.calls, 5, "the refresh after the connection was lost")
        assert again.run() == {"poller", "scrape", "scrape;zone=dmz"}
    finally:
        subscriptions.stop()
        silent()


def test_a_drained_worker_leaves_every_queue_and_takes_them_up_again(services: Services) -> None:
    """Queues of polls, jobs and scrapes; those of polls are handed back, once."""
    services.redis.sadd(services.keys.queues, QUEUE)
    changed = threading.Event()
    services.jobs = Registry({"tidy": api.job(every_s=60, name="tidy")(print)}, {"tidy": "acme 1"})  # type: ignore[misc]
    subscriptions = Subscriptions(services, {}, changed, "w@test")
    consumer = Consumer(["poller"])
    drain = Drain(services.board.now_ms(), services.board.now_ms() + 60_000, "kim")
    subscriptions.attach(consumer)
    try:
        soon(lambda: consumer.calls, 5, "the first refresh")
        assert consumer.run() == {"poller", QUEUE, "job.acme", "scrape"}
        assert (subscriptions.take_left(), subscriptions.drain) == (set(), None)
        worker_drains.store(services.redis, services.keys, ["w@test", "other"], drain)
        soon(lambda: consumer.calls, 5, "the refresh after the drain")
        assert consumer.run() == {"poller"}
        assert (subscriptions.served, subscriptions.drain) == ([], drain)
        left = {QUEUE, f"{QUEUE}~w@test", "job.acme", "scrape"}
        assert (subscriptions.take_left(), subscriptions.take_left()) == (left, set())
        subscriptions.pause_jobs(False)
        assert consumer.run() == {"poller"}
        worker_drains.end(services.redis, services.keys, ["w@test"])
        soon(lambda: consumer.calls, 5, "the refresh after its end")
        assert consumer.run() == {"poller", QUEUE, "job.acme", "scrape"}
        assert (subscriptions.served, subscriptions.drain) == (["job.acme", QUEUE], None)
    finally:
        subscriptions.stop()
        silent()


def test_a_notification_during_a_refresh_is_not_lost(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker refreshes once more without another notification."""
    services.redis.sadd(services.keys.queues, QUEUE)
    reading = threading.Event()
    go_on = threading.Event()
    read = services.board.queues

    def read_slowly() -> list[str]:
        queues = read()
        reading.set()
        assert go_on.wait(5)
        return queues

    monkeypatch.setattr(services.board, "queues", read_slowly)
    services.jobs = Registry()  # type: ignore[misc]
    subscriptions = Subscriptions(services, {"zone": "dmz"}, threading.Event())
    consumer = Consumer([])
    subscriptions.attach(consumer)
    try:
        assert reading.wait(5)
        services.redis.sadd(services.keys.queues, OTHER)
        soon(
            lambda: services.redis.publish(services.keys.domains, "came"),
            5,
            "the worker listens and gets the notification",
        )
        go_on.set()
        soon(
            lambda: consumer.run() == {QUEUE, OTHER, "scrape", "scrape;zone=dmz"},
            5,
            "the worker subscribes to the queue that came meanwhile",
        )
    finally:
        go_on.set()
        subscriptions.stop()
        silent()


def test_the_queues_of_jobs_are_left_while_no_slot_is_free(services: Services) -> None:
    """The heartbeat lists them all the time, so the leader is not woken: the worker runs them."""
    services.redis.sadd(services.keys.queues, QUEUE)
    spec = api.job(every_s=60, name="tidy")(lambda context: None)
    services.jobs = Registry({"tidy": spec}, {"tidy": "Acme_Jobs 1.0"})  # type: ignore[misc]
    changed = threading.Event()
    subscriptions = Subscriptions(services, {}, changed)
    consumer = Consumer(["poller", "job.gone"])
    subscriptions.attach(consumer)
    try:
        soon(lambda: consumer.calls, 5, "the first refresh")
        assert consumer.run() == {"poller", QUEUE, "job.acme-jobs", "scrape"}
        assert changed.is_set()
        changed.clear()
        subscriptions.pause_jobs(True)
        assert consumer.run() == {"poller", QUEUE, "scrape"}
        assert not changed.is_set()
        assert subscriptions.served == ["job.acme-jobs", QUEUE]

        subscriptions.detach()
        subscriptions.pause_jobs(False)
        again = Consumer(["poller", *affinity.subscribed_queues([QUEUE], "w@test")])
        subscriptions.attach(again)
        soon(lambda: again.calls, 5, "the refresh after the connection was lost")
        assert again.run() == {"poller", QUEUE, "job.acme-jobs", "scrape"}
    finally:
        subscriptions.stop()
        silent()


def test_a_worker_without_job_slots_takes_no_jobs(services: Services) -> None:
    """It serves polls and scrapes only."""
    services.settings = Settings(worker_jobs=0)
    spec = api.job(every_s=60, name="tidy")(lambda context: None)
    services.jobs = Registry({"tidy": spec}, {"tidy": "Acme_Jobs 1.0"})  # type: ignore[misc]
    subscriptions = Subscriptions(services, {}, threading.Event())
    consumer = Consumer(["poller"])
    subscriptions.attach(consumer)
    try:
        soon(lambda: consumer.calls, 5, "the first refresh")
        assert consumer.run() == {"poller", "scrape"}
        assert subscriptions.served == []
    finally:
        subscriptions.stop()
        silent()
