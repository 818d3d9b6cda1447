"""A position in the order of keys has one text."""

from __future__ import annotations

import pytest

from poller.domain.inventory import key_position
from poller.domain.inventory.key_position import Position


@pytest.mark.parametrize("position", [Position("sw1"), Position("sw1", "snmp"), Position("a", "")])
def test_a_position_is_read_from_its_text(position: Position) -> None:
    """Names have no slash: a text stands for one position only."""
    assert key_position.parse(position.text) == position
