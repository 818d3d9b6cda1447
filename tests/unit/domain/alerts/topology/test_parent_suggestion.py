"""Neighbours become links, and links become parents toward the core."""

from __future__ import annotations

import pytest

from poller.domain.alerts.topology import (
    neighbour_links,
    neighbour_readings,
    parent_chain,
    parent_suggestion,
)
from poller.domain.alerts.topology.neighbour_links import LinkedDevice, Sighting
from poller.domain.metrics.reading import Reading


def device(number: int, *neighbours: int) -> LinkedDevice:
    sightings = [Sighting(f"p{n}", chassis=f"4:0x{n:02x}", port=f"q{number}") for n in neighbours]
    return LinkedDevice(
        number, f"sw{number}", f"192.0.2.{number}", f"4:0x{number:02x}", sightings=sightings
    )


def suggested(
    devices: list[LinkedDevice], stored: dict[int, int] | None = None, cores: tuple[int, ...] = ()
) -> dict[int, tuple[int, list[int]]]:
    links = neighbour_links.link_map(devices)
    names = {each.id: each.name for each in devices}
    found = parent_suggestion.suggest(links, names, stored or {}, cores)
    return {each.device: (each.parent, list(each.others)) for each in found}


STAR = [device(1, 2, 3, 4), device(2), device(3), device(4, 5), device(5)]


def test_all_hang_on_the_device_with_the_most_links() -> None:
    """One end of a link is enough; a device two links away hangs on the one between."""
    assert suggested(STAR) == {2: (1, []), 3: (1, []), 4: (1, []), 5: (4, [])}


def test_a_named_core_turns_the_tree() -> None:
    """A person knows where the platform stands."""
    assert suggested(STAR, cores=(5,)) == {4: (5, []), 1: (4, []), 2: (1, []), 3: (1, [])}


def test_stored_parents_name_the_core() -> None:
    """What a person said by hand is continued."""
    assert suggested(STAR, stored={1: 4})[1] == (4, [])


def test_two_ways_up_are_for_a_person_to_choose() -> None:
    """A switch with two uplinks at the same distance has no parent that is right unseen."""
    ring = [device(1, 2, 3, 5), device(2, 4), device(3, 4), device(4), device(5)]
    assert suggested(ring)[4] == (2, [3])
    assert suggested(ring, stored={4: 3}, cores=(1,))[4] == (3, [])


def test_networks_without_a_link_have_cores_of_their_own() -> None:
    """Two islands are two trees."""
    islands = [device(1, 2), device(2), device(3, 4), device(4)]
    assert suggested(islands) == {2: (1, []), 4: (3, [])}


@pytest.mark.parametrize(
    ("sighting", "found"),
    [
        (Sighting(chassis="4:0x01"), 1),
        (Sighting(name="SW1.example.net"), 1),
        (Sighting(name="SW1(FOX0001)"), 1),
        (Sighting(name="sw2.other.net"), 2),
        (Sighting(address="192.0.2.2"), 2),
        (Sighting(name="printer"), None),
        (Sighting(chassis="7:0x01"), None),
        (Sighting(), None),
    ],
)
def test_a_neighbour_is_found_by_chassis_name_or_address(
    sighting: Sighting, found: int | None
) -> None:
    """Names are compared without domain, case and CDP's serial number."""
    known = [device(1), device(2), LinkedDevice(9, "seer", "192.0.2.9", sightings=[sighting])]
    links = neighbour_links.link_map(known)
    assert list(links.neighbours(9)) == ([] if found is None else [found])
    assert links.unknown == (found is None)


def test_a_name_of_two_devices_is_none() -> None:
    """A link to the wrong device would hide its outage."""
    twins = [
        LinkedDevice(1, "a.one", "192.0.2.1"),
        LinkedDevice(2, "a.two", "192.0.2.2"),
        LinkedDevice(3, "c", "192.0.2.3", sightings=[Sighting(name="a"), Sighting(name="a.two")]),
    ]
    assert list(neighbour_links.link_map(twins).neighbours(3)) == [2]


def test_readings_say_who_a_device_is_and_whom_it_sees() -> None:
    """LLDP and CDP in one poll; a chassis id counts with its kind."""
    readings = [
        Reading("lldpLocChassisIdSubtype", 4.0),
        Reading("lldpLocChassisId", 1.0, {"lldpLocChassisId": "0x02AB"}),
        Reading("lldpLocSysName", 1.0, {"lldpLocSysName": "sw1"}),
        Reading(
            "lldpRemChassisIdSubtype",
            4.0,
            {
                "lldpRemChassisId": "0x02CD",
                "lldpRemLocalPortNum": "7",
                "lldpLocPortDesc": "eth7",
                "lldpRemPortId": "1",
                "lldpRemPortDesc": "xe0",
                "lldpRemSysName": "core1",
            },
        ),
        Reading(
            "cdpCacheDeviceId",
            1.0,
            {
                "cdpCacheIfIndex": "3",
                "cdpCacheDeviceId": "CORE2",
                "cdpCacheDevicePort": "Gi1",
                "cdpCacheAddress": "192.0.2.7",
            },
        ),
        Reading("sysUpTime", 5.0),
    ]
    seen = neighbour_readings.read(readings)
    assert (seen.chassis, seen.system_name) == ("4:0x02ab", "sw1")
    assert seen.sightings == [
        Sighting("eth7", "4:0x02cd", "core1", "xe0"),
        Sighting("3", "", "CORE2", "Gi1", "192.0.2.7"),
    ]


def test_a_chain_of_parents_ends_or_goes_round() -> None:
    """A device is never above itself."""
    assert parent_chain.above({1: 2, 2: 3}, 1) == [2, 3]
    assert parent_chain.round_trip({1: 2, 2: 3}, 1) == ()
    assert parent_chain.round_trip({1: 2, 2: 1}, 1) == [1, 2, 1]
    assert parent_chain.round_trip({1: 1}, 1) == [1, 1]
    assert parent_chain.first_round_trip({1: 2, 2: 3, 3: 1}, [3]) == [3, 1, 2, 3]
    assert parent_chain.text(["a", "b", "a"]) == "a -> b -> a"


def test_a_chain_that_goes_round_is_found_however_long_it_is() -> None:
    """Of two hundred devices in a circle each is above itself; what hangs on it is not."""
    parents = {each: (each + 1) % 200 for each in range(200)}
    parents[500] = 7
    assert parent_chain.going_round(parents) == set(range(200))
    assert len(parent_chain.first_round_trip(parents, [500, 150])) == 201
    assert parent_chain.first_round_trip(parents, [500]) == ()
    assert parent_chain.round_trip(parents, 500) == ()


def test_the_text_of_a_long_chain_is_short() -> None:
    """It has the first ten names and the last one."""
    names = [f"sw{each}" for each in range(200)]
    parents = dict(zip(names, [*names[1:], names[0]], strict=True))
    shown = " -> ".join(names[:10]) + " -> ... -> sw0"
    assert parent_chain.round_text(parents, "sw0") == shown
    assert parent_chain.text([*names, "sw0"]) == shown
    assert parent_chain.round_text({"a": "b", "b": "a"}, "a") == "a -> b -> a"
    eleven = dict(zip(names[:11], [*names[1:11], "sw0"], strict=True))
    assert parent_chain.round_text(eleven, "sw0") == " -> ".join(names[:10]) + " -> ... -> sw0"
