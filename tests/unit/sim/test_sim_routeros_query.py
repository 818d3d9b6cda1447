"""Query words: tests push truth, operations work on the stack."""

from __future__ import annotations

import pytest

from poller.sim.routeros import query

ROW = {"name": "ether1", "mtu": "1500", "running": "true"}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["name=ether1"], True),
        (["=name=ether1"], True),
        (["name=ether2"], False),
        (["comment"], False),
        (["-comment"], True),
        ([">mtu=1000"], True),
        (["<mtu=1000"], False),
        ([">name=a"], True),
        (["<nosuch=1"], False),
        (["running=yes"], True),
        (["running=true"], True),
        (["running=no"], False),
        (["name=ether2", "#!"], True),
        (["name=ether2", "mtu=1500", "#|"], True),
        (["name=ether2", "mtu=1500", "#&"], False),
        (["name=ether2", "mtu=1500"], False),
        (["#&"], True),
        (["#!"], False),  # the endless supply below the stack is true
        (["name=ether2", "mtu=1500", "#|!"], False),
        (["name=ether2", "#.!|"], True),  # a copy of the top, inverted, or the top
        (["name=ether2", "mtu=1500", "#0"], True),  # everything becomes the top
        (["name=ether2", "mtu=1500", "#1"], False),  # everything becomes the one below
        (["name=ether2", "mtu=1500", "#9"], True),  # far below is true
        (["mtu=1500", "name=ether2", "#0!&|"], True),  # a copy of the top, inverted
        (["name=ether2", "mtu=1500", "#1.!|&"], False),
        (["name=ether1", "name=ether2", "#1.|&"], True),
        (["name=ether2", "name=ether1", "#0.2&0"], False),
    ],
)
def test_query_language(words: list[str], kept: bool) -> None:
    """A row stays when nothing false is left."""
    query.check(words)
    assert query.matches(words, ROW.get) is kept


@pytest.mark.parametrize("word", ["#x", "#1x", "#-", "#!²"])
def test_unknown_operations_are_refused(word: str) -> None:
    """Before a row is looked at, and when one is."""
    with pytest.raises(query.BadQuery):
        query.check([word])
    with pytest.raises(query.BadQuery):
        query.matches([word], ROW.get)
