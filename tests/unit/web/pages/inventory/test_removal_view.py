"""The removal of a device or a target: what is lost, and its command."""

from __future__ import annotations

from dataclasses import replace

import web_devices
import web_rates

from poller.web.pages.inventory import removal_view


def test_the_targets_that_go_with_a_device_are_named() -> None:
    """The first twenty of them, and how many more there are."""
    targets = [replace(web_rates.TARGET, id=number, name=f"t{number}") for number in range(22)]
    view = removal_view.of_device(web_devices.DEVICE, targets)
    assert "22 targets with schedule and options: t0, t1" in view.lost[1]
    assert view.lost[1].endswith("t19 and 2 more.")
    assert view.command == "poller device rm sw1"


def test_what_becomes_of_the_history_is_said() -> None:
    """It stays stored, but out of sight."""
    view = removal_view.of_target(web_rates.TARGET)
    assert view.subject == "target sw1/snmp"
    assert view.command == "poller target rm sw1/snmp"
    assert "until their retention ends" in view.kept[0]
