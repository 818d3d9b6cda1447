"""Interfaces as people know them, from the newest poll."""

from __future__ import annotations

from collections.abc import Mapping

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.series import device_interfaces
from poller.domain.series.device_interfaces import Counted, Interface


def snmp_port(index: int, name: str, **values: float) -> list[Reading]:
    labels = {"ifIndex": str(index), "ifName": name, "ifAlias": f"to {name}", "ifDescr": "port"}
    usual = {"ifOperStatus": 1.0, "ifAdminStatus": 1.0, "ifHighSpeed": 1000.0} | values
    gauges = [Reading(metric, value, labels) for metric, value in usual.items()]
    counters = ("ifHCInOctets", "ifInOctets", "ifHCOutOctets", "ifInErrors")
    return [*gauges, *(Reading(metric, 5.0, labels, Kind.COUNTER, 64) for metric in counters)]


def of(*readings: Reading) -> list[Interface]:
    return device_interfaces.of_poll(ReadingSet.of(readings))


def test_an_interface_has_the_name_and_alias_that_people_gave_it() -> None:
    """Name, alias, status and speed are those of the newest poll; order is that of the device."""
    first, second = of(*snmp_port(1, "eth0"), *snmp_port(2, "eth1", ifOperStatus=2.0))
    assert (first.name, first.alias, first.index, first.is_up) == ("eth0", "to eth0", 1, True)
    assert first.bits_per_s == 1e9
    assert (second.name, second.is_up, second.is_enabled) == ("eth1", False, True)


def test_a_64_bit_counter_is_taken_before_a_short_one() -> None:
    """The short counter wraps in seconds on a fast link."""
    [found] = of(*snmp_port(1, "eth0"))
    assert found.counters[Counted.IN_OCTETS] == "ifHCInOctets"
    assert found.counters[Counted.IN_ERRORS] == "ifInErrors"
    assert Counted.OUT_ERRORS not in found.counters


def test_an_interface_that_is_switched_off_is_not_merely_down() -> None:
    """Nobody looks for the fault of a port that an operator switched off."""
    [found] = of(*snmp_port(1, "eth0", ifOperStatus=2.0, ifAdminStatus=2.0))
    assert (found.is_up, found.is_enabled) == (False, False)


def test_a_speed_of_zero_is_unknown() -> None:
    """A virtual interface says 0; `ifSpeed` answers where `ifHighSpeed` does not."""
    [unknown] = of(*snmp_port(1, "lo", ifHighSpeed=0.0))
    assert unknown.bits_per_s is None
    [slow] = of(*snmp_port(1, "dsl", ifHighSpeed=0.0, ifSpeed=512_000.0))
    assert slow.bits_per_s == 512_000


def test_routeros_gives_the_comment_as_alias() -> None:
    """The comment is in the info of the interface, whose other series have only its name."""
    labels: Mapping[str, str] = {"name": "ether1"}
    info = {"name": "ether1", "default_name": "ether1", "type": "ether", "comment": "uplink"}
    [found] = of(
        Reading("routeros_interface_info", 1.0, info, Kind.INFO),
        Reading("routeros_interface_running", 1.0, labels),
        Reading("routeros_interface_disabled", 0.0, labels),
        Reading("routeros_interface_rate", 2500.0, labels),
        Reading("routeros_interface_rx_byte", 7.0, labels, Kind.COUNTER, 64),
    )
    assert (found.name, found.alias, found.is_up, found.is_enabled) == (
        "ether1",
        "uplink",
        True,
        True,
    )
    assert found.bits_per_s == 2.5e9


def test_a_row_without_octets_is_no_interface() -> None:
    """A status alone has no traffic to show."""
    assert of(Reading("ifOperStatus", 1.0, {"ifIndex": "1", "ifName": "eth0"})) == []


def test_a_search_finds_name_and_alias_in_any_case() -> None:
    """People remember one or the other."""
    [found] = of(*snmp_port(1, "Gi0/1"))
    assert found.matches("gi0")
    assert found.matches("TO GI")
    assert not found.matches("eth")
