"""Query words: tests push booleans, operations change the stack."""

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
        (["#!"], False),  # below the stack all values are true
        (["name=ether2", "mtu=1500", "#|!"], False),
        (["name=ether2", "#.!|"], True),  # a copy of the top, inverted, or the top
        (["name=ether2", "mtu=1500", "#0"], True),  # the stack becomes its top
        (["name=ether2", "mtu=1500", "#1"], False),  # the stack becomes the value below its top
        (["name=ether2", "mtu=1500", "#9"], True),  # far below is true
        (["mtu=1500", "name=ether2", "#0!&|"], True),  # a copy of the top, inverted
        (["name=ether2", "mtu=1500", "#1.!|&"], False),
        (["name=ether1", "name=ether2", "#1.|&"], True),
        (["name=ether2", "name=ether1", "#0.2&0"], False),
    ],
)
def test_query_language(words: list[str], kept: bool) -> None:
    """A row matches when no false value is left on the stack."""
    query.check(words)
    assert query.matches(words, ROW.get) is kept


@pytest.mark.parametrize("word", ["#x", "#1x", "#-", "#!²"])
def test_unknown_operations_are_refused(word: str) -> None:
    """An unknown operation is refused by `check` and by `matches`."""
    with pytest.raises(query.BadQuery):
        query.check([word])
    with pytest.raises(query.BadQuery):
        query.matches([word], ROW.get)
