"""Ports that are down and columns that stand still are not asked for; no reading is untrue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from poller.collectors.snmp.wire.value_types import Value
from tests.unit.collectors.snmp_device import TABLE, X_TABLE, Device
from tests.unit.collectors.test_snmp_shortcut import Poller, cold

UP, DOWN, LOWER_LAYER_DOWN = 1, 2, 7
SPEED, MTU = f"{X_TABLE}.15", f"{TABLE}.4"
IN_OCTETS, IN_DISCARDS = f"{X_TABLE}.6", f"{TABLE}.13"
#: Columns of counters.
COUNTERS = [
    *(f"{TABLE}.{column}" for column in range(10, 21)),
    *(f"{X_TABLE}.{column}" for column in range(2, 14)),
]


@dataclass
class Switch(Device):
    """Counters move only on ports that are up. `own` overrides single values."""

    down: dict[int, int] = field(default_factory=dict)  # port to ifOperStatus
    changed_at: dict[int, int] = field(default_factory=dict)  # port to ifLastChange
    discontinuities: dict[int, int] = field(default_factory=dict)
    own: dict[str, Value] = field(default_factory=dict)

    def values(self) -> dict[str, Value]:
        rows = super().values()
        for port in self.interfaces:
            moving = int(self.clock * 100) if port not in self.down else 0
            for number, column in enumerate(COUNTERS):
                rows[f"{column}.{port}"] = moving * port + number
            rows |= {
                f"{MTU}.{port}": 1500,
                f"{TABLE}.5.{port}": 10**9,
                f"{TABLE}.7.{port}": UP,
                f"{TABLE}.8.{port}": self.down.get(port, UP),
                f"{TABLE}.9.{port}": self.changed_at.get(port, 0),
                f"{TABLE}.21.{port}": 0,
                f"{X_TABLE}.14.{port}": 1,
                f"{SPEED}.{port}": 1000,
                f"{X_TABLE}.16.{port}": 2,
                f"{X_TABLE}.17.{port}": 1,
                f"{X_TABLE}.19.{port}": self.discontinuities.get(port, 0),
            }
        return rows | self.own

    def turn(self, port: int, status: int) -> None:
        """Give a port another operational status."""
        self.down.pop(port, None)
        if status != UP:
            self.down[port] = status
        self.changed_at[port] = int((self.clock - self.booted) * 100)


def switch(ports: int = 48, down: int = 30) -> Switch:
    names = {index: f"Gi1/0/{index}" for index in range(1, ports + 1)}
    idle = {port: DOWN if port % 2 else LOWER_LAYER_DOWN for port in range(1, ports + 1)}
    spread = [port for port in idle if port % 8 not in (0, 3, 5)][:down]
    return Switch(names, down={port: idle[port] for port in spread}, clock=600.0)


def polls(poller: Poller, count: int) -> dict[Any, float]:
    for _ in range(count):
        found = poller.poll()
        poller.device.clock += 20
    return found


def lean(device: Switch) -> Poller:
    """A poller that leaves out what rests: after a full read, and a poll of all numbers."""
    poller = Poller(device, rests=True, link={"rows": 50, "oids": 50})
    polls(poller, 3)
    assert poller.memory.shortcut is not None
    assert poller.memory.shortcut.lane is not None
    return poller


def asked(poller: Poller, column: str, port: int) -> bool:
    return f"{column}.{port}" in poller.last.returned


def test_a_switch_with_thirty_ports_down_takes_sixty_percent_fewer_requests() -> None:
    """Requests and variables of a poll, before and after; the readings are the same."""
    whole, resting = Poller(switch(), link={"rows": 50, "oids": 50}), lean(switch())
    polls(whole, 3)
    resting.device.clock = whole.device.clock
    assert resting.poll() == whole.poll()
    before = (whole.last.requests, whole.last.varbinds)
    after = (resting.last.requests, resting.last.varbinds)
    assert (before, after) == ((36, 1780), (14, 657))


@pytest.mark.parametrize("status", [UP, DOWN])
def test_a_port_that_changes_is_fully_asked_in_the_same_poll(status: int) -> None:
    """The poll that finds another state reports what a first poll would."""
    poller = lean(switch())
    port = next(
        each for each in poller.device.interfaces if (each in poller.device.down) == (status == UP)
    )
    poller.device.turn(port, status)
    assert poller.poll() == cold(poller.device)
    assert asked(poller, IN_OCTETS, port)


def test_a_flap_between_two_polls_ends_the_rest() -> None:
    """ifLastChange shows that a port was up in between, and that its counters may have moved."""
    poller = lean(switch())
    port = next(iter(poller.device.down))
    poller.device.turn(port, poller.device.down[port])
    poller.device.own[f"{IN_OCTETS}.{port}"] = 77
    assert poller.poll() == cold(poller.device)


def test_cleared_counters_of_a_port_that_is_down_end_the_rest() -> None:
    """ifCounterDiscontinuityTime is a part of the state."""
    poller = lean(switch())
    port = next(iter(poller.device.down))
    poller.device.discontinuities[port] = 4711
    poller.device.own[f"{IN_DISCARDS}.{port}"] = 0
    assert poller.poll() == cold(poller.device)


def test_a_restart_ends_the_rest() -> None:
    """After a restart all counters are others."""
    poller = lean(switch())
    poller.device.reboot()
    poller.device.own[f"{IN_OCTETS}.{next(iter(poller.device.down))}"] = 0
    assert poller.poll() == cold(poller.device)


def test_a_port_that_counts_although_it_is_down_is_asked_for() -> None:
    """Some agents say down of interfaces that carry traffic."""
    device = switch()
    port = next(iter(device.down))
    poller = Poller(device, rests=True, link={"rows": 50, "oids": 50})
    for octets in (1, 2, 3, 4):
        device.own[f"{IN_OCTETS}.{port}"] = octets
        assert poller.poll() == cold(device)
        device.clock += 20


def test_a_new_speed_shows_at_the_next_refresh() -> None:
    """A speed without a change of state is as old as names may be."""
    poller = lean(switch())
    poller.device.own[f"{SPEED}.3"] = 2500
    before = poller.poll()
    assert not asked(poller, SPEED, 3)
    poller.device.clock += 600
    assert poller.poll() == cold(poller.device) != before


def test_nothing_rests_without_the_option() -> None:
    """Every poll asks for every number."""
    poller = Poller(switch(), link={"rows": 50, "oids": 50})
    polls(poller, 4)
    assert asked(poller, SPEED, 3)
    assert poller.memory.shortcut is not None
    assert poller.memory.shortcut.lane is None


def test_a_small_device_keeps_one_route() -> None:
    """Where the requests would be as many, nothing rests: every value is current."""
    poller = Poller(switch(ports=4, down=0), rests=True, link={"rows": 50, "oids": 50})
    polls(poller, 4)
    assert asked(poller, SPEED, 1)
