"""Pages of what a filter selects: all ways to a page find the same rows, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from poller.bootstrap import Services
from poller.collectors.registry import Registry
from poller.db import migrate
from poller.db.inventory import devices, imports, inventory_feed, targets
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory import key_position, target_filter
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.service import target_selection
from poller.service.selection import match_count, page_candidates, selection_windows, target_page
from poller.settings import Settings
from poller.state.board.board_repair import Repair
from poller.state.board.breakers import Breakers
from poller.state.board.record_formats import Opening
from poller.state.board.unwell_targets import UnwellTargets

NOW = 1_800_000_000_000
#: Every target of the fleet has one of these statuses, in turn.
STATUSES = (
    Status(State.OK, NOW, NOW, NOW, NOW),
    Status(State.OK, NOW, NOW, NOW, NOW),
    Status(State.DEGRADED, NOW, NOW, NOW, NOW, 0, 0, "timeout", "two of three"),
    Status(State.FAILING, NOW, NOW, NOW, 5, 1, 0, "timeout", "no answer"),
    Status(State.FAILING, NOW, NOW, NOW, 7, 9, 0, "unreachable", 'a "b", c', breaker=Breaker(2)),
    Status(
        State.FAILING,
        *(NOW, NOW, NOW, 0, 3, 0, "auth_failed", "refused"),
        breaker=Breaker(1),
        parked_ms=NOW,
        reason=Reason.AUTH_FAILED,
    ),
    Status(),
)
FILTERS = (
    "",
    "site:fra",
    "site:fra,ber",
    "site:''",
    "site:fra state:failing",
    "tag:core",
    "tag:core tag:new",
    "tag:absent",
    "collector:ping",
    "collector:ping,snmp site:ber",
    "state:ok",
    "state:ok,failing",
    "state:degraded",
    "state:failing",
    "state:open",
    "state:parked",
    "state:unknown",
    "state:disabled",
    "state:disabled,parked",
    "code:timeout",
    "code:auth_failed,unreachable state:failing",
    "code:timeout state:disabled",
    "name:sw-*",
    "name:sw-1*,rt-2?",
    "name:*-3",
    "name:sw-01,rt-02,Zürich",
    "name:sw-01 state:failing",
    "name:[x]*",
    "address:10.1.0.0/16",
    "address:10.1.0.4/30,10.2.0.8",
    "address:2001:db8::/32",
    "address:*.Example.net",
    "address:10.1.0.0/24 state:failing tag:core",
)


@pytest.fixture
def fleet(
    home: Path,
    database_url: str,
    valkey_url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Services]:
    """About 60 devices with up to two targets each, at two sites, on the board in every state."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    monkeypatch.setenv("POLLER_DATABASE_URL", database_url)
    services = Services(Settings())
    services.registry = Registry({}, (), {})  # type: ignore[misc]
    migrate.upgrade(services.engine)
    imports.apply_import(services.engine, [row(number) for number in range(60)])
    place(services)
    yield services
    services.engine.dispose()


def row(number: int) -> imports.Row:
    names = {57: "Zürich", 58: "[x]y", 59: "no-target"}
    name = names.get(number, f"{'sw' if number % 2 else 'rt'}-{number:02}")
    addresses = {3: "2001:db8::3", 4: "2001:0DB8:0::4", 5: "sw5.example.NET"}
    device = DeviceDraft(
        name=name,
        address=addresses.get(number, f"10.{number % 3}.0.{number}"),
        site=("fra", "ber", "")[number % 3],
        tags=(*(("core",) if number % 4 == 0 else ()), *(("new",) if number % 8 == 0 else ())),
        enabled=number % 13 != 0,
    )
    drafts = [TargetDraft(collector="snmp", enabled=number % 11 != 0)]
    if number % 3 == 0:
        drafts.append(TargetDraft(collector="ping"))
    return imports.Row(device, [] if number == 59 else drafts)


def place(services: Services) -> None:
    """Put the inventory on the board and give every target a status."""
    with inventory_feed.all_specs(services.engine) as stored:
        specs = list(stored.specs)
    services.board.place("", [(spec, NOW) for spec in specs], stored.version)
    enabled = sorted(spec.id for spec in specs if spec.enabled)
    for position, target_id in enumerate(enabled):
        text = STATUSES[position % len(STATUSES)].pack()
        services.redis.hset(services.keys.status, str(target_id), text)
    opening = Opening(services.board.now_ms() + 60_000, 1, "someone")
    Breakers(services.board).open(enabled[:3], opening)
    services.board.scripts.run("recount", [])


@pytest.fixture(params=["by candidates", "by walking", "in small steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to a page: candidates where a key has some, never, and with bounds of a few rows."""
    if request.param != "by candidates":
        monkeypatch.setattr(page_candidates, "MOST", 0)
    if request.param == "in small steps":
        monkeypatch.setattr(target_page, "SCAN_LIMIT", 7)
        monkeypatch.setattr(selection_windows, "_LARGEST_WINDOW", 3)
    return str(request.param)


def all_targets(services: Services, wanted: TargetFilter, limit: int) -> list[int]:
    found: list[int] = []
    after: Position | None = None
    for _ in range(200):
        page = target_page.target_page(services, wanted, after, limit)
        assert len(page.targets) <= limit
        found += [target.id for target in page.targets]
        if page.next is None:
            return found
        after = key_position.parse(page.next.text)
    raise AssertionError("the pages do not end")


def all_devices(services: Services, wanted: TargetFilter, limit: int) -> list[int]:
    found: list[int] = []
    after: Position | None = None
    for _ in range(200):
        page = target_page.device_page(services, wanted, after, limit)
        assert len(page.devices) <= limit
        found += [device.id for device in page.devices]
        if page.next is None:
            return found
        after = key_position.parse(page.next.text)
    raise AssertionError("the pages do not end")


def test_pages_have_exactly_the_selected_rows_in_the_order_of_keys(
    fleet: Services, way: str
) -> None:
    """Every filter selects by pages what it selects as a whole, whichever way leads to a page."""
    for text in FILTERS:
        wanted = target_filter.parse(text)
        whole = target_selection.select_targets(fleet, wanted)
        keys = [(target.device, target.name) for target in whole]
        assert keys == sorted(keys), text
        expected = [target.id for target in whole]
        assert all_targets(fleet, wanted, 5) == expected, text
        assert all_targets(fleet, wanted, 500) == expected, text
        expected_devices = [each.id for each in target_selection.select_devices(fleet, wanted)]
        assert all_devices(fleet, wanted, 4) == expected_devices, text
    assert len(all_targets(fleet, target_filter.ANY, 50)) > 70, way


def test_counts_are_exact_or_say_that_they_are_not(fleet: Services, way: str) -> None:
    """A count is that of the whole selection; one that stopped early is smaller and says so."""
    for text in FILTERS:
        wanted = target_filter.parse(text)
        expected = len(target_selection.select_targets(fleet, wanted))
        counted = match_count.count_targets(fleet, wanted)
        assert counted.number == expected if counted.is_exact else counted.number <= expected, text
        expected = len(target_selection.select_devices(fleet, wanted))
        counted = match_count.count_devices(fleet, wanted)
        assert counted.number == expected if counted.is_exact else counted.number <= expected, text


def test_a_walk_is_bounded_and_says_where_to_go_on(
    fleet: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter without an index that matches nothing ends after the limit, with a next page."""
    monkeypatch.setattr(target_page, "SCAN_LIMIT", 20)
    monkeypatch.setattr(selection_windows, "_LARGEST_WINDOW", 10)
    page = target_page.target_page(fleet, target_filter.parse("name:*nothing*"), None, 5)
    assert page.targets == []
    assert page.next is not None
    assert 20 <= page.scanned <= 30


def test_readers_see_each_row_once_while_others_come_and_go(fleet: Services, way: str) -> None:
    """Rows that stay are seen exactly once, also if their neighbours are added and removed."""
    before = [target.id for target in target_selection.select_targets(fleet, target_filter.ANY)]
    seen: list[int] = []
    removed: list[int] = []
    after: Position | None = None
    for number in range(100):
        page = target_page.target_page(fleet, target_filter.ANY, after, 7)
        seen += [target.id for target in page.targets]
        if page.next is None:
            break
        after = page.next
        draft = DeviceDraft(f"{after.device}-{number}", "10.9.9.9")
        devices.add(fleet.engine, draft, [TargetDraft(collector="snmp")])
        if page.targets:
            gone = page.targets[-1]
            removed.append(gone.id)
            targets.remove(fleet.engine, gone.device, gone.name)
    assert len(seen) == len(set(seen))
    assert set(before) <= set(seen)
    assert removed


def test_the_list_of_unwell_targets_follows_every_move(fleet: Services) -> None:
    """Polls, resets, edits and removals keep the list as long as the counts say, and exact."""
    board, unwell = fleet.board, UnwellTargets(fleet.board)
    listed = unwell.ids(1000)
    assert listed is not None
    texts = {int(key): text for key, text in fleet.redis.hgetall(fleet.keys.status).items()}
    assert set(listed) == {key for key, text in texts.items() if not text.startswith("o")}

    failing = next(key for key, text in texts.items() if text.startswith("fB"))
    Breakers(board).reset([failing], NOW)
    assert unwell.is_sound()
    assert failing in (unwell.ids(1000) or [])
    with inventory_feed.all_specs(fleet.engine) as stored:
        [spec] = [spec for spec in stored.specs if spec.id == failing]
    board.place("", [(replace(spec, enabled=False), NOW)], stored.version)
    assert unwell.is_sound()
    assert failing not in (unwell.ids(1000) or [])
    board.place("", [(spec, NOW)], stored.version)
    assert failing in (unwell.ids(1000) or [])
    ages = [each.ok_ms for each in unwell.stalest(1000)]
    once_good = [ok_ms for ok_ms in ages if ok_ms]
    assert ages == [*sorted(once_good), *[0] * (len(ages) - len(once_good))]


def test_a_list_that_is_damaged_is_not_used_until_it_is_made_anew(fleet: Services) -> None:
    """A board of an earlier release has no list: targets are then found by walking."""
    unwell = UnwellTargets(fleet.board)
    wanted = target_filter.parse("state:failing")
    expected = all_targets(fleet, wanted, 5)
    fleet.redis.delete(fleet.keys.unwell)
    assert unwell.ids(1000) is None
    assert all_targets(fleet, wanted, 5) == expected
    Repair(fleet.board).recount()
    assert unwell.is_sound()
    assert all_targets(fleet, wanted, 5) == expected


def test_targets_that_are_not_on_the_board_yet_are_unknown(fleet: Services) -> None:
    """A new target is unknown before the leader has placed it."""
    devices.add(fleet.engine, DeviceDraft("new", "10.9.9.9"), [TargetDraft(collector="snmp")])
    wanted = target_filter.parse("state:unknown")
    whole = [target.id for target in target_selection.select_targets(fleet, wanted)]
    assert all_targets(fleet, wanted, 5) == whole
