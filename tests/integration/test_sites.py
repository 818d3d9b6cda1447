"""A site goes dark: its targets wait aside, canaries ask, and everything comes back spread out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from poller import errors
from poller.beat import reconcile
from poller.beat.leadership import Leader
from poller.beat.site_outages import SiteWatch
from poller.bootstrap import Services
from poller.db import migrate
from poller.db.inventory import devices, imports, inventory_feed, sites
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.settings import Settings
from poller.state.board.board_values import ClaimLimits, Move
from poller.state.cluster import site_windows

QUEUE = "poll.snmp"
ROOM = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)
FLEET = 40


class World:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.board, self.redis, self.keys = services.board, services.redis, services.keys
        leader = Leader(services.leadership, 1.0, election=False)
        leader.try_to_lead()
        self.watch = SiteWatch(services, leader, threading.Event(), chance=lambda: 0.0)
        target = TargetDraft("snmp", "snmp", {}, interval_ms=60_000, timeout_ms=5_000)
        rows = [
            imports.Row(DeviceDraft(f"{site}{n}", "127.0.0.1", site=site), [target])
            for site in ("west", "east")
            for n in range(FLEET)
        ]
        imports.apply_import(services.engine, rows)
        self.now = self.board.now_ms()
        reconcile.reconcile(self.board, services.engine, "", self.now)
        self.west = set(sites.targets_of(services.engine, "west")[1])
        self.all = self.west | set(sites.targets_of(services.engine, "east")[1])
        self.claims = 0
        self.kept: set[int] = set()  # of the last poll

    def poll(self, ids: set[int], dark: bool, site: str = "west") -> None:
        """As a worker would: all of them are due, are polled, and fall due a minute later."""
        for target_id in ids:
            self.redis.zadd(self.keys.due(QUEUE), {str(target_id): self.now}, xx=True)
        self.claims += 1
        taken = self.board.claim(
            "", f"t{self.claims}", f"t{self.claims - 1}", {QUEUE: 99}, ROOM, self.now
        )
        polled = [int(i) for part in taken.parts for i in part.ids]
        assert ids <= set(polled)  # some of the other site's may have fallen due, too
        start = self.board.start(f"t{self.claims}", 0, "c", 9_000, polled, self.now)
        self.kept = {answer.id for answer in start.targets if answer.postponed}
        ok_ms = 0 if dark else self.now + 10
        text = Status(State.FAILING if dark else State.OK, 1, self.now, self.now + 10, ok_ms).pack()
        moves = [Move(answer.id, self.now + 60_000, text) for answer in start.targets]
        polls, lost = site_windows.counter_names(site)
        counts = {polls: len(ids), **({lost: len(ids)} if dark else {})}
        self.board.finish(f"t{self.claims}", moves, stats=counts, now_ms=self.now)

    def held(self) -> set[int]:
        return {int(i) for i in self.redis.zrange(self.keys.held, 0, -1)}

    def urgent(self) -> set[int]:
        return {int(i) for i in self.redis.zrange(self.keys.urgent(QUEUE), 0, -1)}

    def sound(self) -> bool:
        check = self.board.check(sorted(self.all))
        return not check.lost and not check.doubled


@pytest.fixture
def world(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = Services(Settings())
    migrate.upgrade(services.engine)
    yield World(services)
    services.engine.dispose()


def test_what_waited_for_its_site_was_kept_and_missed_nothing(world: World) -> None:
    """The first poll afterwards says so, and only that one; a person's poll meanwhile is such a poll, too."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    asked = min(world.held())
    world.board.demand([asked])
    world.now += 40_000
    world.watch.look(world.now)
    canaries = world.urgent() - {asked}
    world.poll(canaries, dark=False)
    world.watch.look(world.now)
    assert world.kept >= canaries | {asked}
    world.poll(world.west, dark=False)
    assert world.kept >= world.west - canaries - {asked}
    world.poll(world.west, dark=False)
    assert world.kept == set()


def test_a_dark_site_waits_aside_while_canaries_ask_and_comes_back_spread(world: World) -> None:
    """The other site is not touched; nothing is lost or doubled on the way."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}
    canaries = world.urgent()
    assert len(canaries) == 3
    assert world.held() == world.west - canaries
    assert world.sound()
    world.now += 5_000
    world.poll(canaries, dark=True)
    world.watch.look(world.now)
    assert world.held() | canaries == world.west  # still dark
    world.now += 30_000
    world.watch.look(world.now)
    again = world.urgent()
    assert len(again) == 3
    world.now += 1_000
    world.poll(again, dark=False)
    world.watch.look(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.held() == set()
    scores = [
        score for _, score in world.redis.zrange(world.keys.due(QUEUE), 0, -1, withscores=True)
    ]
    assert len(scores) == len(world.all)
    back = [score for score in scores if world.now <= score < world.now + 60_000]
    assert max(back) - min(back) > 30_000
    assert world.sound()


def test_a_canary_that_was_asked_too_early_is_asked_again_with_the_return(world: World) -> None:
    """Two have answered, one had timed out just before: it does not wait for its own breaker."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    early, *others = sorted(world.urgent())
    world.now += 3_000
    world.poll({early}, dark=True)
    world.poll(set(others), dark=False)
    world.watch.look(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.urgent() == {early}
    assert world.sound()


def test_a_site_that_is_back_is_not_taken_for_dark_because_of_its_outage(world: World) -> None:
    """What its polls found before it came back is in the last minute still."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    world.now += 3_000
    world.poll(world.urgent(), dark=False)
    world.watch.look(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    world.now += 2_000
    world.watch.look(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    world.now += 1_000
    world.poll(world.west, dark=True)  # and away again
    world.watch.look(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}


def test_a_site_that_goes_dark_is_noticed_before_most_of_a_minute_has_failed(world: World) -> None:
    """With short intervals the targets' own breakers would open first, one event each."""
    for _ in range(4):
        world.poll(world.west, dark=False)
        world.now += 10_000
    world.now += 10_000
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}


def test_a_few_failures_or_failures_among_many_open_no_site(world: World) -> None:
    """Nine dead devices, or twenty among forty, are nine or twenty dead devices."""
    few = set(sorted(world.west)[:9])
    world.poll(few, dark=True)
    world.poll(world.west - few, dark=False)
    world.watch.look(world.now)
    assert (world.held(), site_windows.dark(world.redis, world.keys)) == (set(), {})


def test_what_leaves_a_dark_site_does_not_wait_for_it(world: World) -> None:
    """A device that is moved to another site, or removed, or asked for by a person."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    moved, removed, asked = sorted(world.held())[:3]
    names = {
        i: target.device
        for i, target in inventory_feed.poll_targets(world.services.engine, world.west).items()
    }
    devices.edit(world.services.engine, names[moved], DeviceDraft(names[moved], site="east"))
    devices.remove(world.services.engine, [names[removed]])
    reconcile.reconcile(world.board, world.services.engine, "", world.now)
    world.board.demand([asked])
    world.watch.look(world.now)
    assert not world.held() & {moved, removed, asked}
    assert asked in world.urgent()
    world.all.discard(removed)
    assert world.sound()


def test_a_site_that_is_removed_holds_nobody(world: World) -> None:
    """Its devices went elsewhere; the outage is forgotten."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)
    for n in range(FLEET):
        devices.edit(world.services.engine, f"west{n}", DeviceDraft(f"west{n}", site=""))
    reconcile.reconcile(world.board, world.services.engine, "", world.now)
    world.watch.look(world.now)
    assert (world.held(), site_windows.dark(world.redis, world.keys)) == (set(), {})
    assert world.sound()


def test_a_stranger_in_the_hash_of_dark_sites_harms_nobody(world: World) -> None:
    """Whoever wrote it."""
    world.redis.hset(world.keys.dark, "west", "rubbish")
    world.watch.look(world.now)
    assert world.held() == set()


def test_a_database_that_is_away_keeps_no_site_dark(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its targets are known from before, or are those that are held."""
    world.poll(world.west, dark=True)
    world.watch.look(world.now)

    def refuse(*_: object) -> None:
        raise errors.StoreUnavailable("cannot use the database")

    monkeypatch.setattr(sites, "targets_of", refuse)
    world.now += 40_000
    world.watch.look(world.now)
    asked = world.urgent()
    assert len(asked) == 3
    world.poll(asked, dark=False)
    world.watch.look(world.now)
    assert world.held() == set()
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.sound()
