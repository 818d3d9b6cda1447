"""A repeat poll of the same shape gives new numbers on the same series object."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.metrics import mapping
from poller.collectors.snmp.metrics.reading_plan import Shapes
from poller.collectors.snmp.modules import module_catalog, module_parser
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.wire import value_types
from poller.collectors.snmp.wire.value_types import Value
from poller.presentation.exposition import prometheus_text

IF_MIB = module_catalog.select(("if_mib",))
TABLE, X_TABLE = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"


def rows(
    octets: Value = 1000, name: bytes = b"eth0", mac: bytes = b"\x02\0\0\0\0\1", index: int = 1
) -> list[Row]:
    return [
        ("1.3.6.1.2.1.2.1.0", 1),
        (f"{TABLE}.2.{index}", b"descr"),
        (f"{TABLE}.6.{index}", mac),
        (f"{TABLE}.8.{index}", 1),
        (f"{X_TABLE}.1.{index}", name),
        (f"{X_TABLE}.6.{index}", octets),
    ]


def values(shapes: Shapes, polled: list[Row], complete: bool = True) -> dict[str, float]:
    readings, _ = shapes.read(polled, IF_MIB, complete)
    return {reading.name: reading.value for reading in readings}


def test_new_numbers_keep_the_series_object() -> None:
    """A sink compares the identity of a shape, not its content."""
    shapes = Shapes()
    first, _ = shapes.read(rows(1000), IF_MIB, True)
    second, _ = shapes.read(rows(2000), IF_MIB, True)
    assert second.series is first.series
    assert (
        dict(zip([s.name for s in second.series.series], second.values, strict=True))[
            "ifHCInOctets"
        ]
        == 2000
    )


def test_a_plan_gives_what_the_mapping_gives() -> None:
    """A plan and a full mapping agree, sample by sample."""
    shapes = Shapes()
    shapes.read(rows(1), IF_MIB, True)
    quick, _ = shapes.read(rows(2), IF_MIB, True)
    slow = mapping.map_values(dict(rows(2)), IF_MIB).readings()
    assert sorted(quick, key=repr) == sorted(slow, key=repr)


def test_a_first_poll_has_exact_counters() -> None:
    """A first poll has all digits of a Counter64; the text format has it modulo 2**53."""
    counted = 2**63 + 4097
    readings, _ = Shapes().read(rows(counted), IF_MIB, True)
    exact = {
        series.name: value
        for series, value in zip(readings.series.series, readings.values, strict=True)
    }
    assert exact["ifHCInOctets"] == counted
    assert f"{counted % 2**53}" in "\n".join(prometheus_text.lines(readings, {}))


def test_a_changed_label_is_a_new_shape() -> None:
    """A renamed interface, a new MAC address and another index each start a new shape."""
    for changed in (rows(name=b"uplink"), rows(mac=b"\x02\0\0\0\0\2"), rows(index=7)):
        shapes = Shapes()
        first, _ = shapes.read(rows(), IF_MIB, True)
        second, _ = shapes.read(changed, IF_MIB, True)
        assert second.series.series != first.series.series


def test_a_shape_that_comes_back_after_a_partial_poll_is_the_same_object() -> None:
    """A lost table does not cause the whole shape to be stored again."""
    shapes = Shapes()
    first, _ = shapes.read(rows(), IF_MIB, True)
    shapes.read(rows()[:4], IF_MIB, False)
    again, _ = shapes.read(rows(5), IF_MIB, True)
    assert again.series is first.series


def test_a_lost_name_table_does_not_rename_rows() -> None:
    """Labels of the last complete poll are used while their table does not answer."""
    shapes = Shapes()
    shapes.read(rows(), IF_MIB, True)
    partial, _ = shapes.read(rows()[:4], IF_MIB, False)
    assert {
        reading.labels.get("ifName") for reading in partial if reading.name == "ifOperStatus"
    } == {"eth0"}


def test_a_number_that_turns_into_text_is_mapped_anew() -> None:
    """Text in place of a number is 0, and a later number counts again."""
    shapes = Shapes()
    assert values(shapes, rows(1000))["ifHCInOctets"] == 1000
    assert values(shapes, rows(b"odd"))["ifHCInOctets"] == 0
    assert values(shapes, rows(3000))["ifHCInOctets"] == 3000


def test_a_float_in_opaque_needs_no_new_shape() -> None:
    """A float in Opaque octets is converted at every poll."""
    shapes = Shapes()
    first, _ = shapes.read(rows(b"\x9fx\x04\x3f\xc0\x00\x00"), IF_MIB, True)
    second, _ = shapes.read(rows(b"\x9fx\x04\x40\x20\x00\x00"), IF_MIB, True)
    assert second.series is first.series
    assert 2.5 in second.values


@pytest.mark.parametrize(
    ("kind", "more", "values", "changes"),
    [
        (
            "DateAndTime",
            {},
            [bytes([7, 226, 8, 15, 8, 1, 15, 0]), bytes([7, 226, 8, 15, 8, 1, 16, 0])],
            False,
        ),
        ("DateAndTime", {}, [bytes([7, 226, 8, 15, 8, 1, 15, 0]), b""], True),
        ("DateAndTime", {}, [b"", bytes([7, 226, 8, 15, 8, 1, 15, 0])], True),
        (
            "DisplayString",
            {"regex_extracts": {"A": [{"regex": "(.*) C"}]}},
            [b"21 C", b"22 C"],
            False,
        ),
        (
            "DisplayString",
            {"regex_extracts": {"A": [{"regex": "(.*) C"}]}},
            [b"21 C", b"cold"],
            True,
        ),
        (
            "DisplayString",
            {"regex_extracts": {"A": [{"regex": "(.*) C"}]}},
            [b"cold", b"21 C"],
            True,
        ),
        ("EnumAsStateSet", {"enum_values": {1: "up", 2: "down"}}, [1, 2], False),
        ("EnumAsStateSet", {"enum_values": {1: "up", 2: "down"}}, [1, 7], True),
        ("EnumAsStateSet", {"enum_values": {1: "up", 2: "down"}}, [7, 1], True),
        ("Bits", {"enum_values": {0: "a", 9: "b"}}, [b"\x80", b"\x00\x40"], False),
        ("Bits", {"enum_values": {0: "a", 9: "b"}}, [b"\x80", 5], True),
        ("EnumAsInfo", {"enum_values": {1: "up", 2: "down"}}, [1, 2], True),
    ],
)
def test_conversions_follow_the_value_without_a_new_shape(
    kind: str, more: Any, values: list[Any], changes: bool
) -> None:
    """Dates, extracts, states and bits equal a full mapping; a lost number starts a new shape."""
    body = {"name": "m", "oid": "1.1", "type": kind, **more}
    text = yaml.safe_dump({"modules": {"m": {"walk": ["1.1"], "metrics": [body]}}})
    module_set = ModuleSet(tuple(module_parser.parse(text, "test").values()))
    shapes, plans = Shapes(), []
    for value in values:
        readings, plan = shapes.read([("1.1.0", value)], module_set, complete=True)
        plans.append(plan)
        fresh = mapping.map_values({"1.1.0": value}, module_set).readings()
        found = dict(zip(readings.series.series, readings.values, strict=True))
        assert found == dict(zip(fresh.series.series, fresh.values, strict=True))
    assert (plans[0] is not plans[1]) == changes


def test_a_later_row_has_the_counter_width_of_its_column() -> None:
    """Only a first poll has exact types; later rows of a column get the width learned then."""
    text = """
modules:
  own:
    walk: [1.3.6.1.4.1.9.1]
    metrics:
      - name: served
        oid: 1.3.6.1.4.1.9.1.2
        type: counter
        indexes: [{labelname: row, type: gauge}]
"""
    own = ModuleSet(tuple(module_parser.parse(text, "own.yml").values()))
    shapes = Shapes()
    shapes.read([("1.3.6.1.4.1.9.1.2.1", value_types.Counter64(5))], own, True)
    later, _ = shapes.read([("1.3.6.1.4.1.9.1.2.1", 6), ("1.3.6.1.4.1.9.1.2.2", 7)], own, True)
    assert [series.width for series in later.series.series] == [64, 64]


@pytest.mark.parametrize(("before", "after"), [(-1, -2), (-2, -1), (0, b""), (b"", 0)])
def test_a_label_changes_between_values_of_the_same_hash(before: Value, after: Value) -> None:
    """In Python hash(-1) equals hash(-2), and hash(b"") equals hash(0)."""
    text = {
        "modules": {
            "m": {"metrics": [{"name": "level", "oid": "1.3.6.1.4.1.9.1", "type": "DisplayString"}]}
        }
    }
    module_set = ModuleSet(tuple(module_parser.parse(yaml.safe_dump(text), "test").values()))
    shapes = Shapes()
    for value in (before, after):
        readings, _ = shapes.read([("1.3.6.1.4.1.9.1.0", value)], module_set, True)
        assert readings.series.series[0].labels == (("level", str(value) if value != b"" else ""),)
