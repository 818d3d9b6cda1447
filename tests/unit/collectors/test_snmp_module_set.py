"""Module sets: the parts to read, row filters and walk parameters of several modules."""

from __future__ import annotations

from collections.abc import Sequence

from poller.collectors.snmp.metrics import regex_extracts
from poller.collectors.snmp.modules.module_model import Filter, Module, WalkParams
from poller.collectors.snmp.modules.module_set import (
    ModuleSet,
    Selection,
    filtered,
    matching_indexes,
)
from poller.collectors.snmp.wire.value_types import Value

UP: Sequence[tuple[str, Value]] = [("1.8.1", 1), ("1.8.2", 2), ("1.8.3", 1)]
NAMES: Sequence[tuple[str, Value]] = [("1.2.1", b"eth0"), ("1.2.2", b"eth1"), ("1.2.3", b"lo")]


def row_filter(oid: str, values: Sequence[str], *targets: str) -> Filter:
    return Filter(oid, targets, tuple(regex_extracts.compile_anywhere(value) for value in values))


def test_a_filtered_column_is_not_walked_but_fetched_row_by_row() -> None:
    """Columns without a filter are still walked."""
    module = Module(
        "m", walk=("1.10", "1.11"), get=("1.1.0",), filters=(row_filter("1.8", ["^1$"], "1.10"),)
    )
    assert filtered(module, {"1.8": UP}) == Selection(("1.11",), ("1.1.0", "1.10.1", "1.10.3"))


def test_one_expression_that_matches_anywhere_is_enough() -> None:
    """Filter expressions are not anchored; expressions of regex_extracts are."""
    assert matching_indexes(row_filter("1.2", ["th1", "^l"]), NAMES) == ["2", "3"]
    assert matching_indexes(row_filter("1.2", []), NAMES) == []


def test_two_filters_of_one_column_must_both_match() -> None:
    """Current versions of snmp_exporter do the same."""
    module = Module(
        "m",
        walk=("1.10",),
        filters=(row_filter("1.8", ["^1$"], "1.10"), row_filter("1.2", ["eth"], "1.10")),
    )
    assert filtered(module, {"1.8": UP, "1.2": NAMES}) == Selection((), ("1.10.1",))


def test_a_filter_whose_column_cannot_be_read_filters_nothing() -> None:
    """Reading all rows is better than reading none."""
    module = Module(
        "m",
        walk=("1.10",),
        filters=(row_filter("1.8", ["^1$"], "1.10"), row_filter("1.2", ["eth"], "1.10")),
    )
    assert filtered(module, {"1.8": None, "1.2": None}) == Selection(("1.10",), ())
    assert filtered(module, {"1.8": None, "1.2": NAMES}) == Selection((), ("1.10.1", "1.10.2"))


def test_columns_with_a_common_prefix_are_told_apart() -> None:
    """Column 1 does not cover column 10."""
    module = Module("m", walk=("1.10", "1.1"), filters=(row_filter("1.8", ["^2$"], "1.10", "1.1"),))
    assert filtered(module, {"1.8": UP}) == Selection((), ("1.10.2", "1.1.2"))


def test_the_last_number_of_an_oid_is_the_index_of_its_row() -> None:
    """snmp_exporter uses the last number only."""
    assert matching_indexes(row_filter("1.8", ["1"]), [("1.8.4.7", 1)]) == ["7"]


def test_filter_columns_are_read_first_and_decide_the_other_parts() -> None:
    """`filter_parts` come first; `parts_after_filters` replaces filtered columns by their rows."""
    module = Module("m", walk=("1.10", "1.11"), filters=(row_filter("1.8", ["^2$"], "1.10"),))
    module_set = ModuleSet((module, Module("n", walk=("1.11",))))
    assert [part.walk for part in module_set.filter_parts] == ["1.8"]
    parts = module_set.parts_after_filters({"1.8": UP})
    assert [(part.walk, part.get) for part in parts] == [("", ("1.10.2",)), ("1.11", ())]
    assert [part.walk for part in module_set.parts] == ["1.10", "1.11"]


def test_a_part_is_read_once() -> None:
    """A subtree inside another and a scalar in two modules cost one request."""
    module_set = ModuleSet(
        (
            Module("a", walk=("1.3.6", "1.3.6.1"), get=("1.3.1.0",)),
            Module("b", walk=("1.3.6",), get=("1.3.1.0",)),
        )
    )
    assert [(part.walk, part.get) for part in module_set.parts] == [
        ("", ("1.3.1.0",)),
        ("1.3.6", ()),
    ]


def test_the_most_careful_walk_parameters_win() -> None:
    """All modules of a set read the same device."""
    careful = Module("a", walk_params=WalkParams(max_repetitions=4, timeout_s=2.0))
    patient = Module("b", walk_params=WalkParams(10, 5, 9.0, allow_nonincreasing_oids=True))
    assert ModuleSet((careful, patient, Module("c"))).walk_params == WalkParams(
        4, 5, 9.0, allow_nonincreasing_oids=True
    )
