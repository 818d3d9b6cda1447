"""The description of the fleet: deterministic, evenly spread, importable."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from collections import Counter

import pytest

from poller import errors
from poller.collectors import credentials
from poller.sim import fleet, hardware
from poller.sim.fleet import Fault, Protocol, SimDevice


def test_same_seed_same_fleet() -> None:
    """The same seed describes the same fleet, and another seed another one."""
    assert fleet.devices(50, seed=7) == fleet.devices(50, seed=7)
    assert fleet.devices(50, seed=7) != fleet.devices(50, seed=8)


def test_device_does_not_depend_on_the_size_of_the_fleet() -> None:
    """A larger fleet begins with the smaller one."""
    assert fleet.devices(500)[:40] == fleet.devices(40)


def test_a_tenth_is_faulty_in_every_way() -> None:
    """One in ten devices of each protocol has a fault, and all faults occur."""
    by_protocol = {p: [d for d in fleet.devices(1000) if d.protocol is p] for p in Protocol}
    assert {p: len(d) for p, d in by_protocol.items()} == {
        Protocol.SNMP: 800,
        Protocol.ROUTEROS: 200,
    }
    for devices in by_protocol.values():
        faults = Counter(device.fault for device in devices)
        assert faults.pop(Fault.NONE) == len(devices) * 0.9
        assert set(faults) == set(fleet.FAULTS)
        assert max(faults.values()) - min(faults.values()) <= 1


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.29, 29), (1.0, 100)])
def test_faulty_share_is_exact(share: float, expected: int) -> None:
    """The share of faulty devices is as requested."""
    devices = fleet.devices(100, snmp_share=1, faulty_share=share)
    assert sum(device.fault is not Fault.NONE for device in devices) == expected


def test_addresses_are_distinct_loopback_hosts() -> None:
    """Every address is in 127/8, used once, and ends in neither 0 nor 255."""
    addresses = [device.address for device in fleet.devices(2000)]
    assert addresses[0] == "127.20.0.1"
    assert len(set(addresses)) == 2000
    assert all(
        ipaddress.ip_address(a).is_loopback and a.split(".")[3] not in ("0", "255")
        for a in addresses
    )
    assert ipaddress.ip_address(fleet.address(fleet.MAX_DEVICES - 1)).is_loopback


def test_names_are_unique_and_say_site_and_role() -> None:
    """Names look like sw-ams-0012 and are unique."""
    devices = fleet.devices(500)
    assert len({device.name for device in devices}) == 500
    for device in devices:
        assert (
            device.name
            == f"{hardware.MODELS[device.model].prefix}-{device.site}-{device.index + 1:04d}"
        )
    assert {device.site for device in devices} == set(fleet.SITES)


def test_device_survives_json() -> None:
    """A device is equal after a conversion to JSON and back."""
    for device in fleet.devices(30):
        assert SimDevice.from_dict(json.loads(json.dumps(dataclasses.asdict(device)))) == device


def test_inventory_has_a_target_for_every_device() -> None:
    """The demo inventory names port, credential and interval of each device."""
    devices = fleet.devices(20)
    rows = fleet.inventory(devices, 1161, 8728, interval="30s")
    assert [row["address"] for row in rows] == [device.address for device in devices]
    snmp, routeros = rows[0], rows[4]
    assert snmp["credential"] == "demo-snmp"
    assert snmp["targets"] == [
        {
            "collector": "snmp",
            "options": {"port": 1161, "modules": ["system", "if_mib"]},
            "interval": "30s",
        }
    ]
    assert routeros["credential"] == "demo-routeros"
    assert routeros["targets"] == [
        {"collector": "routeros", "options": {"port": 8728, "tls": False}, "interval": "30s"}
    ]


def test_demo_credentials_are_valid_and_not_those_of_wrong_credentials() -> None:
    """The demo credentials are valid, and a device with wrong_credentials has others."""
    for name, fields in fleet.CREDENTIALS.items():
        assert credentials.from_json(json.dumps(dict(fields))), name
    right = fleet.devices(1)[0]
    wrong = dataclasses.replace(right, fault=Fault.WRONG_CREDENTIALS)
    assert (right.community, right.password) == (fleet.COMMUNITY, fleet.PASSWORD)
    assert wrong.community != fleet.COMMUNITY
    assert wrong.password != fleet.PASSWORD


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"count": -1}, "devices"),
        ({"count": fleet.MAX_DEVICES + 1}, "devices"),
        ({"count": 1, "faulty_share": 1.5}, "faulty share"),
        ({"count": 1, "snmp_share": -0.1}, "snmp share"),
        ({"count": 1, "slow_seconds": -1}, "slow seconds"),
    ],
)
def test_values_out_of_range_are_refused_by_name(arguments: dict[str, float], named: str) -> None:
    """A count or share out of range is refused with its name and the allowed range."""
    with pytest.raises(errors.InvalidInput, match=named) as refused:
        fleet.devices(**arguments)  # type: ignore[arg-type]
    assert refused.value.hint


def test_chassis_is_plausible() -> None:
    """Every chassis has a port that is up, and no port has more traffic than its speed."""
    for model in hardware.MODELS:
        for variant in range(hardware.VARIANTS):
            ports = hardware.chassis(model, variant).ports
            assert any(port.up for port in ports)
            assert len({port.name for port in ports}) == len(ports)
            for port in ports:
                busiest = max(port.rates.in_octets, port.rates.out_octets) * 8 * 1.5 * 1.55
                assert busiest <= port.speed_bps
                assert port.up or not any(port.rates)


@pytest.mark.parametrize("interfaces", [0, 39, 4001])
def test_a_laboratory_of_a_wrong_size_is_refused(interfaces: int) -> None:
    """A laboratory below the minimum or above the maximum size is refused."""
    with pytest.raises(errors.InvalidInput, match="lab") as refused:
        fleet.laboratory(interfaces)
    assert refused.value.hint == "give 40 to 4000"


def test_a_laboratory_has_the_requested_number_of_interfaces() -> None:
    """A laboratory has the requested number of interfaces, of every kind, in both versions."""
    for version in (6, 7):
        device = fleet.laboratory(300, version=version)
        chassis = hardware.chassis(device.model, device.variant)
        assert chassis.version[0] == version
        assert len({port.name for port in chassis.ports}) == 300
        young = (
            set()
            if version == 7
            else {hardware.Kind.WIFI, hardware.Kind.WIREGUARD, hardware.Kind.LOOPBACK}
        )
        assert {port.kind for port in chassis.ports} == set(hardware.Kind) - young


def test_an_unknown_model_is_refused_by_name() -> None:
    """An unknown model is refused, also one that resembles a laboratory."""
    for name in ("nosuch", "lab-12", "lab7-100"):
        with pytest.raises(errors.InvalidInput, match=name):
            hardware.chassis(name, 0)
