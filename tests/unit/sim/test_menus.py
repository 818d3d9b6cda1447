"""All menus on all routers: each is a function of the router and the time."""

from __future__ import annotations

import functools

import pytest

from poller.sim import device_traffic, hardware, routerboards
from poller.sim.hardware_model import Chassis
from poller.sim.routeros import menu_plans, menus, sentence_framing
from poller.sim.routeros.menu_tables import Scene, Table, moment, short

NOW = device_traffic.EPOCH + 100 * device_traffic.DAY
MODELS = [*(model.name for model in routerboards.MODELS), "lab-100", "lab6-100"]
SOFTWARE = ["6.42.1", "6.49.18", "7.4.1", "7.14.3", "7.20.4"]
COUNTERS = (
    "bytes",
    "packets",
    "rx-byte",
    "tx-byte",
    "rx-packet",
    "tx-packet",
    "remote.bytes",
    "rx",
    "tx",
    "rx-bytes",
)


@functools.cache
def chassis(model: str, software: str = "") -> Chassis:
    return hardware.chassis(model, 0, software)


def scene(of: Chassis, now: float = NOW) -> Scene:
    return Scene("router", 0x0200_0000_0100, of, device_traffic.life(77).waves(now), now)


def printed(
    table: Table, of: Chassis, now: float = NOW, stats: bool = True
) -> list[dict[str, str]]:
    here = scene(of, now)
    said = b"".join(
        data for data, _ in menu_plans.of_table(table, of, "", stats).pieces(here, b"\0")
    )
    return [
        dict(word.decode()[1:].split("=", 1) for word in sentence[1:])
        for sentence in sentence_framing.Decoder().feed(said)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_every_menu_can_be_printed_on_every_router(model: str) -> None:
    """On every version, rows have properties and unique ids, and every item can be monitored."""
    for software in SOFTWARE:
        of = chassis(model, software)
        for table in (menus.find(path, of) for path in menus.TABLES):
            if table is None:
                continue
            found = printed(table, of)
            assert all(found), table.path
            ids = [row[".id"] for row in found if ".id" in row]
            assert len(set(ids)) == len(ids), table.path
            for watch in table.watches.values():
                items = tuple(range(len(found)))
                plan = menu_plans.of_watch(table, watch, of, items, "")
                assert sum(count for _, count in plan.pieces(scene(of), b"\0")) == len(found)


@pytest.mark.parametrize("model", ["lab-100", "lab6-100"])
def test_a_laboratory_router_has_rows_in_every_menu_of_its_version(model: str) -> None:
    """No menu of a laboratory router is empty, so that clients can be compared on all of them."""
    of = chassis(model)
    empty = [
        path for path in menus.TABLES if (table := menus.find(path, of)) and not printed(table, of)
    ]
    assert empty == []


def test_versions_have_their_menus() -> None:
    """A menu that moved has one path per version, and new menus are missing in old versions."""
    new, old = chassis("lab-100"), chassis("lab6-100")
    moved = {
        "/routing/bgp/session": "/routing/bgp/peer",
        "/routing/bfd/session": "/routing/bfd/neighbor",
    }
    for path_7, path_6 in moved.items():
        assert [bool(menus.find(path_7, of)) for of in (new, old)] == [True, False]
        assert [bool(menus.find(path_6, of)) for of in (new, old)] == [False, True]
    for path in ("/interface/wireguard/peers", "/interface/wifi/registration-table", "/container"):
        assert [bool(menus.find(path, of)) for of in (new, old)] == [True, False]
    lte = [menus.find("/interface/lte", of) for of in (new, old)]
    assert [list(table.watches) for table in lte if table] == [["monitor"], ["info"]]


def test_the_same_instant_is_the_same_answer() -> None:
    """A menu is a function of the router and the time."""
    of = chassis("lab-100")
    for path in menus.TABLES:
        table = menus.find(path, of)
        assert table is None or printed(table, of) == printed(table, of)


def test_counters_never_run_backwards() -> None:
    """A minute later no counter is smaller, and some have grown."""
    of = chassis("lab-100")
    grown = 0
    for path in menus.TABLES:
        table = menus.find(path, of)
        if table is None or "registration" in path:
            continue
        for before, after in zip(printed(table, of), printed(table, of, NOW + 60), strict=True):
            for name in COUNTERS:
                if before.get(name, "").isdigit():
                    assert int(after[name]) >= int(before[name]), (path, name)
                    grown += int(after[name]) > int(before[name])
    assert grown > 100


def test_connections_come_and_go() -> None:
    """Some connections exist at any time, and they change."""
    of = chassis("lab-100")
    table = menus.find("/ip/firewall/connection", of)
    assert table is not None
    counts = {
        menu_plans.count(table, here, menu_plans.picker(table, here, [], []))
        for here in (scene(of, NOW + n * 60) for n in range(20))
    }
    assert len(counts) > 3
    assert 50 < min(counts) <= max(counts) < len(menu_plans.rows(table, of))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.000_25, "250us"), (0.2, "200ms"), (1.02, "1s20ms"), (61.5, "1m1s500ms")],
)
def test_short_durations_have_fractions(seconds: float, text: str) -> None:
    """A short duration is written with milliseconds and microseconds."""
    assert short(seconds) == text


def test_dates_changed_their_form() -> None:
    """Dates have the ISO form since version 7.10."""
    assert moment(device_traffic.EPOCH, (7, 10)) == "2026-01-01 00:00:00"
    assert moment(device_traffic.EPOCH, (6, 49)) == "jan/01/2026 00:00:00"
