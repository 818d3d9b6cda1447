"""Targets with equal options share them."""

from __future__ import annotations

import pytest
from pydantic import PrivateAttr

from poller import errors
from poller.collectors import registry
from poller.collectors.api import Options
from poller.collectors.memory import shared_options
from poller.collectors.memory.shared_options import SharedOptions


def test_equal_options_are_validated_once() -> None:
    """Options of one text are one object, as stored and as validated."""
    shared = SharedOptions(registry.load())
    first = shared.validate("snmp", {"port": 1161, "modules": ["if_mib"]})
    again = shared.validate("snmp", {"port": 1161, "modules": ["if_mib"]})
    other = shared.validate("snmp", {"port": 161, "modules": ["if_mib"]})
    assert again is first
    assert (first.options.port, other.options.port) == (1161, 161)


def test_options_that_cannot_be_used_are_refused_each_time() -> None:
    """A refusal is not remembered: the files behind the options may appear."""
    shared = SharedOptions(registry.load())
    for _ in range(2):
        with pytest.raises(errors.InvalidInput, match="port"):
            shared.validate("snmp", {"port": 0})


def test_options_that_could_hold_something_of_a_target_are_not_shared() -> None:
    """A plugin may keep private attributes in its options."""

    class Holding(Options):
        _seen: int = PrivateAttr(0)

    assert not shared_options._is_immutable(Holding())
    assert shared_options._is_immutable(Options())
