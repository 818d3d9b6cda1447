"""Filters leave of a table only the rows that fit."""

from __future__ import annotations

from collections.abc import Sequence

from poller.collectors.snmp.metrics import regex_extracts
from poller.collectors.snmp.modules import module_set as module_sets
from poller.collectors.snmp.modules.module_model import Filter, Module
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.wire.value_types import Value

UP: Sequence[tuple[str, Value]] = [("1.8.1", 1), ("1.8.2", 2), ("1.8.3", 1)]
NAMES: Sequence[tuple[str, Value]] = [("1.2.1", b"eth0"), ("1.2.2", b"eth1"), ("1.2.3", b"lo")]


def one(oid: str, values: Sequence[str], *targets: str) -> Filter:
    return Filter(oid, targets, tuple(regex_extracts.compile_anywhere(value) for value in values))


def test_a_filtered_column_is_not_walked_but_fetched_row_by_row() -> None:
    """Other columns are walked as before."""
    module = Module(
        "m", walk=("1.10", "1.11"), get=("1.1.0",), filters=(one("1.8", ["^1$"], "1.10"),)
    )
    assert module_sets.filtered(module, {"1.8": UP}) == (("1.11",), ("1.1.0", "1.10.1", "1.10.3"))


def test_an_expression_may_match_anywhere_and_one_of_several_is_enough() -> None:
    """Unlike those of regex_extracts, these are not anchored."""
    assert module_sets.matching_indexes(one("1.2", ["th1", "^l"]), NAMES) == ["2", "3"]
    assert module_sets.matching_indexes(one("1.2", []), NAMES) == []


def test_two_filters_of_one_column_must_agree() -> None:
    """As in today's snmp_exporter."""
    module = Module(
        "m", walk=("1.10",), filters=(one("1.8", ["^1$"], "1.10"), one("1.2", ["eth"], "1.10"))
    )
    assert module_sets.filtered(module, {"1.8": UP, "1.2": NAMES}) == ((), ("1.10.1",))


def test_a_filter_whose_column_cannot_be_read_filters_nothing() -> None:
    """Better all rows than none."""
    module = Module(
        "m", walk=("1.10",), filters=(one("1.8", ["^1$"], "1.10"), one("1.2", ["eth"], "1.10"))
    )
    assert module_sets.filtered(module, {"1.8": None, "1.2": None}) == (("1.10",), ())
    assert module_sets.filtered(module, {"1.8": None, "1.2": NAMES}) == ((), ("1.10.1", "1.10.2"))


def test_columns_with_a_common_beginning_are_not_mistaken_for_each_other() -> None:
    """Column 1 is not the beginning of column 10."""
    module = Module("m", walk=("1.10", "1.1"), filters=(one("1.8", ["^2$"], "1.10", "1.1"),))
    assert module_sets.filtered(module, {"1.8": UP}) == ((), ("1.10.2", "1.1.2"))


def test_a_row_is_known_by_the_last_number_of_its_index() -> None:
    """That is all snmp_exporter takes for an index."""
    assert module_sets.matching_indexes(one("1.8", ["1"]), [("1.8.4.7", 1)]) == ["7"]


def test_what_is_asked_for_depends_on_the_filters() -> None:
    """The module_set says which columns to read first, and what is left to read then."""
    module = Module("m", walk=("1.10", "1.11"), filters=(one("1.8", ["^2$"], "1.10"),))
    module_set = ModuleSet((module, Module("n", walk=("1.11",))))
    assert [part.walk for part in module_set.filter_parts] == ["1.8"]
    left = module_set.parts_left({"1.8": UP})
    assert [(part.walk, part.get) for part in left] == [("", ("1.10.2",)), ("1.11", ())]
    assert [part.walk for part in module_set.parts] == ["1.10", "1.11"]
