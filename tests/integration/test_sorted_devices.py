"""The orders of the list of devices: each device that matches comes once, at its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.db.inventory.devices import Device
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.fleet.device_sort import DeviceSort, SortKey
from poller.domain.inventory import target_filter
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.record import target_status
from poller.service import target_selection
from poller.service.fleet import devices_by_site, fleet_picture, sorted_devices
from poller.service.selection import target_page
from tests.integration import test_target_pages as inventory

fleet = inventory.fleet
ACTOR = Actor("test", ActorKind.LOCAL, "127.0.0.1")


def every(services: Services, wanted: TargetFilter, sort: DeviceSort, limit: int) -> list[Device]:
    """The devices of all pages."""
    found: list[Device] = []
    after: SortKey | None = None
    for _ in range(200):
        page = sorted_devices.page(services, ACTOR, wanted, sort, limit, after)
        assert len(page.devices) <= limit
        assert page.note == ""
        found += page.devices
        if page.last is None:
            return found
        assert page.last != after
        after = page.last
    raise AssertionError("the pages do not end")


def expected(services: Services, wanted: TargetFilter, sort: DeviceSort) -> list[str]:
    """All devices that match, sorted without any list of the board."""
    names = [each.name for each in target_selection.select_devices(services, wanted)]
    sites = {row.name: row.site for row in devices.listing(services.engine, limit=None)}
    if sort is DeviceSort.NAME:
        return names
    if sort is DeviceSort.SITE:
        return sorted(names, key=lambda name: (not sites[name], sites[name], name))
    keys = _keys(services, wanted, failing_only=sort is DeviceSort.WORST)
    last: tuple[int, int, str] = (2, 0, "")
    return sorted(
        names, key=lambda name: (*keys.get(name, last)[:2], keys.get(name, last)[2], name)
    )


def _keys(
    services: Services, wanted: TargetFilter, failing_only: bool
) -> dict[str, tuple[int, int, str]]:
    texts = services.redis.hgetall(services.keys.status)
    keys: dict[str, tuple[int, int, str]] = {}
    for target in target_selection.select_targets(services, wanted):
        text = texts.get(str(target.id))
        if text is None or not target.enabled or text.startswith("o"):
            continue
        if failing_only and not text.startswith("f"):
            continue
        ok_ms = target_status.unpack(text).ok_ms
        key = (int(ok_ms == 0), ok_ms, str(target.id))
        keys[target.device] = min(key, keys.get(target.device, key))
    return keys


def names(found: Sequence[Device]) -> list[str]:
    return [device.name for device in found]


@pytest.mark.parametrize("sort", DeviceSort)
def test_every_order_has_each_device_once_at_its_place(
    fleet: Services, sort: DeviceSort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every filter, with small pages, large ones, and bounds of a few rows."""
    for text in inventory.FILTERS:
        wanted = target_filter.parse(text)
        assert names(every(fleet, wanted, sort, 7)) == expected(fleet, wanted, sort), text
    monkeypatch.setattr(target_page, "SCAN_LIMIT", 9)
    monkeypatch.setattr(devices_by_site, "_TOGETHER", 6)
    monkeypatch.setattr(devices_by_site, "_ROUNDS", 2)
    for text in ("", "state:failing", "site:fra,ber", "tag:core", "code:timeout"):
        wanted = target_filter.parse(text)
        assert names(every(fleet, wanted, sort, 3)) == expected(fleet, wanted, sort), text


def test_the_worst_device_is_the_first(fleet: Services) -> None:
    """Failing ones that once answered, the longest without an answer first; the well ones last."""
    wanted = target_filter.parse("")
    page = sorted_devices.page(fleet, ACTOR, wanted, DeviceSort.WORST, 5)
    whole = expected(fleet, wanted, DeviceSort.WORST)
    assert names(page.devices) == whole[:5]
    failing = {
        each.name
        for each in target_selection.select_devices(fleet, target_filter.parse("state:failing"))
    }
    assert set(whole[: len(failing)]) == failing


def test_a_reader_goes_on_though_the_last_device_recovered(fleet: Services) -> None:
    """The key is a place in the order, not a row: what has left the list is not missed."""
    wanted = target_filter.parse("")
    whole = expected(fleet, wanted, DeviceSort.WORST)
    page = sorted_devices.page(fleet, ACTOR, wanted, DeviceSort.WORST, 2)
    assert page.last is not None
    well = inventory.STATUSES[0].pack()
    fleet.redis.hset(fleet.keys.status, page.last.text, well)
    fleet.board.scripts.run("recount", [])
    following = sorted_devices.page(fleet, ACTOR, wanted, DeviceSort.WORST, 2, page.last)
    assert names(following.devices) == whole[2:4]


def test_a_board_without_its_list_is_sorted_by_name_and_says_so(fleet: Services) -> None:
    """The leader makes a damaged list anew; until then the order cannot be had."""
    fleet.redis.delete(fleet.keys.unwell)
    page = sorted_devices.page(fleet, ACTOR, TargetFilter(), DeviceSort.WORST, 5)
    assert names(page.devices) == expected(fleet, TargetFilter(), DeviceSort.NAME)[:5]
    assert page.note.startswith("Sorted by name")


def test_an_actor_of_one_site_sees_that_site_in_every_order(fleet: Services) -> None:
    """The limit is part of the filter."""
    limited = Actor("one", ActorKind.LOCAL, "127.0.0.1", site="fra")
    for sort in DeviceSort:
        page = sorted_devices.page(fleet, limited, TargetFilter(), sort, 100)
        assert {device.site for device in page.devices} == {"fra"}
        assert len(page.devices) == 20


def test_sites_of_the_inventory_are_known_at_once(fleet: Services) -> None:
    """A site that was made after the last picture is in the order."""
    fleet_picture.picture(fleet)
    devices.add(fleet.engine, DeviceDraft("new", "10.0.0.9", site="aaa"), [])
    page = sorted_devices.page(fleet, ACTOR, TargetFilter(), DeviceSort.SITE, 1)
    assert names(page.devices) == ["new"]
