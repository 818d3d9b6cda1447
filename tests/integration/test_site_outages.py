"""A dark site: its targets are held, canaries are polled, and all targets come back spread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from poller import errors
from poller.beat import reconcile
from poller.beat.leadership import Leader
from poller.beat.site_outages import SiteOutages
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
LIMITS = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)
FLEET = 40


class World:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.board, self.redis, self.keys = services.board, services.redis, services.keys
        leader = Leader(services.leadership, 1.0, election=False)
        leader.try_to_lead()
        self.outages = SiteOutages(services, leader, threading.Event(), chance=lambda: 0.0)
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
        self.postponed: set[int] = set()  # targets of the last poll

    def poll(self, ids: set[int], dark: bool, site: str = "west") -> None:
        """Poll as a worker does: all targets are due, are polled, and are due a minute later."""
        for target_id in ids:
            self.redis.zadd(self.keys.due(QUEUE), {str(target_id): self.now}, xx=True)
        self.claims += 1
        taken = self.board.claim(
            "", f"t{self.claims}", f"t{self.claims - 1}", {QUEUE: 99}, LIMITS, self.now
        )
        polled = [int(i) for part in taken.parts for i in part.ids]
        assert ids <= set(polled)  # targets of the other site may be due too
        start = self.board.start(f"t{self.claims}", 0, "c", 9_000, polled, self.now)
        self.postponed = {answer.id for answer in start.targets if answer.postponed}
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


def test_the_first_poll_after_an_outage_is_postponed_and_missed_no_slot(world: World) -> None:
    """The first poll of each target is postponed; a demanded poll during the outage counts as the
    first.
    """
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    asked = min(world.held())
    world.board.demand([asked])
    world.now += 40_000
    world.outages.check(world.now)
    canaries = world.urgent() - {asked}
    world.poll(canaries, dark=False)
    world.outages.check(world.now)
    assert world.postponed >= canaries | {asked}
    world.poll(world.west, dark=False)
    assert world.postponed >= world.west - canaries - {asked}
    world.poll(world.west, dark=False)
    assert world.postponed == set()


def test_a_dark_site_is_held_while_canaries_are_polled_and_comes_back_spread(world: World) -> None:
    """The other site does not change; no target is lost or doubled."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}
    canaries = world.urgent()
    assert len(canaries) == 3
    assert world.held() == world.west - canaries
    assert world.sound()
    world.now += 5_000
    world.poll(canaries, dark=True)
    world.outages.check(world.now)
    assert world.held() | canaries == world.west  # still dark
    world.now += 30_000
    world.outages.check(world.now)
    again = world.urgent()
    assert len(again) == 3
    world.now += 1_000
    world.poll(again, dark=False)
    world.outages.check(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.held() == set()
    scores = [
        score for _, score in world.redis.zrange(world.keys.due(QUEUE), 0, -1, withscores=True)
    ]
    assert len(scores) == len(world.all)
    back = [score for score in scores if world.now <= score < world.now + 60_000]
    assert max(back) - min(back) > 30_000
    assert world.sound()


def test_a_canary_that_failed_just_before_the_return_is_polled_again(world: World) -> None:
    """Two canaries answered, one timed out before: it does not wait for its own breaker."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    early, *others = sorted(world.urgent())
    world.now += 3_000
    world.poll({early}, dark=True)
    world.poll(set(others), dark=False)
    world.outages.check(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.urgent() == {early}
    assert world.sound()


def test_a_recovered_site_is_not_dark_because_of_its_past_outage(world: World) -> None:
    """Failed polls of the outage are within the last minute, and do not count any more."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    world.now += 3_000
    world.poll(world.urgent(), dark=False)
    world.outages.check(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    world.now += 2_000
    world.outages.check(world.now)
    assert site_windows.dark(world.redis, world.keys) == {}
    world.now += 1_000
    world.poll(world.west, dark=True)  # a second outage
    world.outages.check(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}


def test_a_dark_site_is_detected_before_most_polls_of_a_minute_have_failed(world: World) -> None:
    """Otherwise, with short intervals, the breakers of all targets would open first."""
    for _ in range(4):
        world.poll(world.west, dark=False)
        world.now += 10_000
    world.now += 10_000
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    assert set(site_windows.dark(world.redis, world.keys)) == {"west"}


def test_few_failures_or_a_small_share_of_failures_make_no_dark_site(world: World) -> None:
    """Nine dead devices among forty are no outage of the site."""
    dead = set(sorted(world.west)[:9])
    world.poll(dead, dark=True)
    world.poll(world.west - dead, dark=False)
    world.outages.check(world.now)
    assert (world.held(), site_windows.dark(world.redis, world.keys)) == (set(), {})


def test_a_target_that_leaves_a_dark_site_is_released(world: World) -> None:
    """A target leaves when its device moves or is removed, or when an operator demands a poll."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    moved, removed, asked = sorted(world.held())[:3]
    names = {
        i: target.device
        for i, target in inventory_feed.poll_targets(world.services.engine, world.west).items()
    }
    devices.edit(world.services.engine, names[moved], DeviceDraft(names[moved], site="east"))
    devices.remove(world.services.engine, [names[removed]])
    reconcile.reconcile(world.board, world.services.engine, "", world.now)
    world.board.demand([asked])
    world.outages.check(world.now)
    assert not world.held() & {moved, removed, asked}
    assert asked in world.urgent()
    world.all.discard(removed)
    assert world.sound()


def test_a_removed_site_holds_no_target(world: World) -> None:
    """The devices of a removed site have another site, and the outage ends."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)
    for n in range(FLEET):
        devices.edit(world.services.engine, f"west{n}", DeviceDraft(f"west{n}", site=""))
    reconcile.reconcile(world.board, world.services.engine, "", world.now)
    world.outages.check(world.now)
    assert (world.held(), site_windows.dark(world.redis, world.keys)) == (set(), {})
    assert world.sound()


def test_an_unreadable_entry_of_a_dark_site_is_ignored(world: World) -> None:
    """Another program may have written it."""
    world.redis.hset(world.keys.dark, "west", "rubbish")
    world.outages.check(world.now)
    assert world.held() == set()


def test_an_outage_ends_without_a_database(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets of the site are those last read, or those that are held."""
    world.poll(world.west, dark=True)
    world.outages.check(world.now)

    def refuse(*_: object) -> None:
        raise errors.StoreUnavailable("cannot use the database")

    monkeypatch.setattr(sites, "targets_of", refuse)
    world.now += 40_000
    world.outages.check(world.now)
    asked = world.urgent()
    assert len(asked) == 3
    world.poll(asked, dark=False)
    world.outages.check(world.now)
    assert world.held() == set()
    assert site_windows.dark(world.redis, world.keys) == {}
    assert world.sound()
