"""The port in an address of a device, and the target that it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.domain.inventory import address_port
from poller.domain.inventory.address_port import Taker


def test_the_one_target_that_takes_a_port_owns_it() -> None:
    """The owner is found by its place among all targets."""
    assert address_port.owner(1161, [Taker(2, "snmp")]).place == 2


@pytest.mark.parametrize(
    ("names", "message", "hint"),
    [
        ([], "no target of the device takes a port", "--collector snmp"),
        (["snmp", "api"], "the targets snmp and api have a port each", "-o port=1161"),
    ],
)
def test_a_port_without_one_owner_is_refused(names: list[str], message: str, hint: str) -> None:
    """The hint says what to write instead."""
    takers = [Taker(place, name) for place, name in enumerate(names)]
    with pytest.raises(errors.InvalidInput) as caught:
        address_port.owner(1161, takers)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("given", [{}, {"port": 1161}, {"port": "1161"}, {"port": None}])
def test_the_port_becomes_an_option(given: dict[str, Any]) -> None:
    """The same port may be given twice, also as a text."""
    placed = address_port.with_port({"a": 1, **given}, 1161, "port", "snmp")
    assert placed == {"a": 1, "port": 1161}


def test_an_address_without_a_port_changes_no_options() -> None:
    """A collector that takes no port is polled at an address without one."""
    assert address_port.with_port({"count": 1}, None, "", "ping") == {"count": 1}


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        ("", {}, "collector ping takes no port from it"),
        ("port", {"port": 161}, "the address has the port 1161, and the option port is 161"),
    ],
)
def test_a_port_that_contradicts_is_refused(
    option: str, given: dict[str, Any], message: str
) -> None:
    """Nothing guesses which of two ports is meant."""
    with pytest.raises(errors.InvalidInput) as caught:
        address_port.with_port(given, 1161, option, "ping")
    assert message in caught.value.message
