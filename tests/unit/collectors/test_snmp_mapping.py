"""Plain {oid: value} dictionaries become the samples snmp_exporter would make of them."""

from __future__ import annotations

from typing import Any

import pytest

from poller.collectors.snmp.metrics import mapping
from poller.collectors.snmp.metrics.label_text import index_text, value_text
from poller.collectors.snmp.metrics.numeric_values import number
from poller.collectors.snmp.modules import module_parser
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.wire.value_types import Counter32, Counter64, Value
from poller.domain.metrics.reading import Kind

Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def module_set(*metrics: dict[str, Any]) -> ModuleSet:
    import yaml

    text = yaml.safe_dump({"modules": {"m": {"walk": ["1.1"], "metrics": list(metrics)}}})
    return ModuleSet(tuple(module_parser.parse(text, "test").values()))


def mapped(
    values: dict[str, Value], *metrics: dict[str, Any], label_values: dict[str, Value] | None = None
) -> Found:
    result = mapping.map_values(values, module_set(*metrics), label_values)
    return {(s.series.name, s.series.labels): s.value for s in result.samples}


def metric(kind: str = "gauge", oid: str = "1.1", **more: Any) -> dict[str, Any]:
    return {"name": "m", "oid": oid, "type": kind, "help": "h", **more}


def test_a_number_keeps_what_the_device_said() -> None:
    """Also a counter beyond what a float can hold: wrapping is the exposition's business."""
    assert mapped({"1.1.0": 2**64 - 1}, metric("counter")) == {("m", ()): 2**64 - 1}


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (5, 5),
        (-5, -5),
        (b"12", 0),
        ("42", 42),
        ("10.0.0.1", 0),
        (None, 0),
        (b"\x9fx\x04\x3f\xc0\x00\x00", 1.5),
        (b"\x9fy\x08\x40\x45\x00\x00\x00\x00\x00\x00", 42.0),
    ],
)
def test_what_counts_as_a_number(value: Value, meaning: float) -> None:
    """Octets and text count 0, except numeric text and floats packed in Opaque."""
    assert number(value) == meaning


@pytest.mark.parametrize(
    ("value", "scale", "offset", "result"),
    [(420, 0.1, 0, 42.0), (70, 0, -1, 69), (2, -1, 2, 0), (7, 0.1, 1, 1.7000000000000002)],
)
def test_scale_then_offset(value: int, scale: float, offset: float, result: float) -> None:
    """A scale of 0 means none, as in snmp_exporter."""
    assert mapped({"1.1.0": value}, metric(scale=scale, offset=offset)) == {("m", ()): result}


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (b"", "OctetString", ""),
        (b"\x01\x0a", "OctetString", "0x010A"),
        (b"\x02\x00", "Bits", "0x0200"),
        (b"eth0", "DisplayString", "eth0"),
        ("ž".encode(), "DisplayString", "ž"),
        (b"a\xff\xfe\x80b\xe2\x82", "DisplayString", "a�b�"),
        (b"\x02\xfc\x00\x00\x00\x01", "PhysAddress48", "02:FC:00:00:00:01"),
        (b"", "PhysAddress48", "00:00:00:00:00:00"),
        (b"\x02\xfc\x00\x00\x00\x01\x07", "PhysAddress48", "02:FC:00:00:00:01"),
        (b"\x0a\x00\x00\x01", "InetAddressIPv4", "10.0.0.1"),
        (b"", "InetAddressIPv4", "0.0.0.0"),
        (bytes(range(16)), "InetAddressIPv6", "0001:0203:0405:0607:0809:0A0B:0C0D:0E0F"),
        ("1.3.6.1", "OctetString", "1.3.6.1"),
        (4200, "DisplayString", "4200"),
        (None, "DisplayString", ""),
        (1.5, "DisplayString", "1.5"),
        (2.0, "DisplayString", "2"),
    ],
)
def test_values_as_label_texts(value: Value, kind: str, text: str) -> None:
    """Each type prints as snmp_exporter prints it."""
    assert value_text(value, kind) == text


def test_a_text_is_a_label_on_one() -> None:
    """The sample is 1 and its name is the label; scale and offset apply to that 1, as in snmp_exporter."""
    assert mapped({"1.1.0": b"box"}, metric("DisplayString")) == {("m", (("m", "box"),)): 1}
    assert mapped({"1.1.0": b"box"}, metric("DisplayString", scale=2, offset=1)) == {
        ("m", (("m", "box"),)): 3
    }


def test_a_text_that_is_already_an_index_is_not_repeated() -> None:
    """The index wins over the value."""
    found = mapped(
        {"1.1.7": b"x"}, metric("DisplayString", indexes=[{"labelname": "m", "type": "gauge"}])
    )
    assert found == {("m", (("m", "7"),)): 1}


def test_enum_as_info() -> None:
    """A known state by name, an unknown one by number."""
    enum = {"enum_values": {1: "up", 2: "down"}}
    assert mapped({"1.1.0": 2}, metric("EnumAsInfo", **enum)) == {("m_info", (("m", "down"),)): 1}
    assert mapped({"1.1.0": 9}, metric("EnumAsInfo", **enum)) == {("m_info", (("m", "9"),)): 1}


def test_enum_as_state_set() -> None:
    """One series per state, and one more for a state nobody has heard of."""
    enum = {"enum_values": {1: "up", 2: "down"}}
    known = mapped({"1.1.0": 2}, metric("EnumAsStateSet", **enum))
    assert known == {("m", (("m", "up"),)): 0, ("m", (("m", "down"),)): 1}
    assert mapped({"1.1.0": 9}, metric("EnumAsStateSet", **enum))[("m", (("m", "9"),))] == 1


@pytest.mark.parametrize(("kind", "value"), [("EnumAsStateSet", 3), ("Bits", b"\x10")])
def test_states_of_one_name_are_one_sample(kind: str, value: Value) -> None:
    """It is 1 when either holds. The exporter fails the scrape."""
    enum = {"enum_values": {1: "other", 2: "up", 3: "other"}}
    expected = {("m", (("m", "other"),)): 1, ("m", (("m", "up"),)): 0}
    assert mapped({"1.1.0": value}, metric(kind, **enum)) == expected


def test_bits() -> None:
    """Bit 0 is the highest of the first octet; missing octets are zeros; a non-octet value gives nothing."""
    enum = {"enum_values": {0: "a", 7: "b", 9: "c"}}
    found = mapped({"1.1.0": b"\x81"}, metric("Bits", **enum))
    assert found == {("m", (("m", "a"),)): 1, ("m", (("m", "b"),)): 1, ("m", (("m", "c"),)): 0}
    assert mapped({"1.1.0": 5}, metric("Bits", **enum)) == {}


@pytest.mark.parametrize(
    ("parts", "kind", "text", "rest"),
    [
        ((4, 5), "gauge", "4", (5,)),
        ((), "gauge", "0", ()),
        ((3, 65, 66, 67, 9), "DisplayString", "ABC", (9,)),
        ((2, 1, 255), "OctetString", "0x01FF", ()),
        ((0, 7), "OctetString", "", (7,)),
        ((1, 2, 3), "PhysAddress48", "01:02:03:00:00:00", ()),
        ((10, 0, 0, 1, 5), "InetAddressIPv4", "10.0.0.1", (5,)),
        ((1, 4, 192, 168, 1, 2, 5), "InetAddress", "192.168.1.2", (5,)),
        ((3, 5, 192, 168, 1, 2, 5), "InetAddress", "0x0305C0A8010205", ()),
        ((1, 192, 168, 1, 2), "InetAddressMissingSize", "192.168.1.2", ()),
        ((9, 1, 2), "InetAddressMissingSize", "0x090102", ()),
        ((3, 6, 1, 2, 3, 4, 5, 6), "LldpPortId", "01:02:03:04:05:06", ()),
        ((8, 2, 104, 105), "LldpPortId", "0x08026869", ()),
    ],
)
def test_indexes(parts: tuple[int, ...], kind: str, text: str, rest: tuple[int, ...]) -> None:
    """Taken from the left; short ones are filled with zeros; the rest is left for the next index."""
    got, _, left = index_text(parts, kind)
    assert (got, left) == (text, rest)


def test_fixed_and_implied_strings_have_no_length() -> None:
    """A fixed size comes from the module, an implied one is all the rest."""
    assert index_text((65, 66, 7), "DisplayString", fixed_size=2) == ("AB", (65, 66), (7,))
    assert index_text((65, 66, 67), "DisplayString", implied=True) == ("ABC", (65, 66, 67), ())


def test_a_lying_length_costs_no_memory() -> None:
    """An index that claims four billion octets is cut off."""
    text, _, _ = index_text((4_294_967_295, 65), "DisplayString")
    assert len(text) <= 512


INTERFACE = {
    "indexes": [{"labelname": "ifIndex", "type": "gauge"}],
    "lookups": [
        {"labels": ["ifIndex"], "labelname": "ifName", "oid": "1.2", "type": "DisplayString"}
    ],
}


def test_lookups_name_the_row() -> None:
    """The label is the text of another column; a row that column lacks gets an empty label."""
    found = mapped({"1.1.1": 10, "1.1.2": 20, "1.2.1": b"eth0"}, metric(**INTERFACE))
    assert found == {
        ("m", (("ifIndex", "1"), ("ifName", "eth0"))): 10,
        ("m", (("ifIndex", "2"), ("ifName", ""))): 20,
    }


def test_known_labels_stand_in_for_a_table_that_was_not_read() -> None:
    """So that a time-out of the name table does not start new series."""
    found = mapped({"1.1.1": 10}, metric(**INTERFACE), label_values={"1.2.1": b"eth0"})
    assert found == {("m", (("ifIndex", "1"), ("ifName", "eth0"))): 10}


def test_lookups_chain_through_integers_and_drop_labels() -> None:
    """A looked-up number is the index of the next lookup; a lookup without labels removes one."""
    chained = {
        "indexes": [{"labelname": "a", "type": "gauge"}],
        "lookups": [
            {"labels": ["a"], "labelname": "b", "oid": "1.2", "type": "gauge"},
            {"labels": ["b"], "labelname": "c", "oid": "1.3", "type": "DisplayString"},
            {"labelname": "a"},
        ],
    }
    found = mapped({"1.1.1": 5, "1.2.1": 44, "1.3.44": b"x"}, metric(**chained))
    assert found == {("m", (("b", "44"), ("c", "x"))): 5}


def test_an_enum_lookup_gives_the_name() -> None:
    """As in newer snmp_exporter modules."""
    lookup = {
        "labels": ["a"],
        "labelname": "b",
        "oid": "1.2",
        "type": "EnumAsInfo",
        "enum_values": {1: "one"},
    }
    indexed = {"indexes": [{"labelname": "a", "type": "gauge"}], "lookups": [lookup]}
    assert mapped({"1.1.1": 5, "1.2.1": 1}, metric(**indexed)) == {
        ("m", (("a", "1"), ("b", "one"))): 5
    }


@pytest.mark.parametrize(
    ("subtype", "text"),
    [
        (1, "4.5.6.7"),
        (2, "0405:0607:0000:0000:0000:0000:0000:0000"),
        (3, "0x04050607"),
        (None, "0x04050607"),
    ],
)
def test_a_combined_type_asks_the_column_before(subtype: int | None, text: str) -> None:
    """InetAddress prints by the type beside it, and as hex when there is none or an unknown one."""
    values: dict[str, Value] = {"1.1.5.1": b"\x04\x05\x06\x07"}
    if subtype is not None:
        values["1.1.4.1"] = subtype
    found = mapped(values, {"name": "m", "oid": "1.1.5", "type": "InetAddress"})
    assert found == {("m", (("m", text),)): 1}


def test_the_shortest_metric_oid_wins() -> None:
    """As in snmp_exporter's tree."""
    short, long = metric(oid="1.1"), {"name": "n", "oid": "1.1.2", "type": "gauge"}
    assert set(mapped({"1.1.2.1": 1}, long, short)) == {("m", ())}


def test_rows_with_equal_labels_are_reported_and_the_first_stays() -> None:
    """snmp_exporter fails the scrape here; we keep what can be kept and say so."""
    result = mapping.map_values({"1.1.1": 1, "1.1.2": 2}, module_set(metric()))
    assert [sample.value for sample in result.samples] == [1]
    assert [series.name for series in result.duplicates] == ["m"]


def test_one_row_seen_by_two_modules_is_no_conflict() -> None:
    """sysUpTime in two modules is one reading."""
    module = module_set(metric()).modules[0]
    result = mapping.map_values({"1.1.0": 7}, ModuleSet((module, module)))
    assert len(result.samples) == 1
    assert result.duplicates == []


def test_kinds() -> None:
    """Counters grow, gauges move, texts inform."""
    kinds = {}
    for kind in ("counter", "gauge", "Float", "DisplayString", "EnumAsInfo", "EnumAsStateSet"):
        made = mapping.map_values(
            {"1.1.0": 1}, module_set(metric(kind, enum_values={1: "a"}))
        ).samples
        kinds[kind] = made[0].series.kind
    assert kinds == {
        "counter": Kind.COUNTER,
        "gauge": Kind.GAUGE,
        "Float": Kind.GAUGE,
        "DisplayString": Kind.INFO,
        "EnumAsInfo": Kind.INFO,
        "EnumAsStateSet": Kind.GAUGE,
    }


@pytest.mark.parametrize(
    ("value", "declared", "width"),
    [
        (Counter32(5), metric("counter"), 32),
        (Counter64(5), metric("counter"), 64),
        (Counter32(5), metric("gauge"), 0),
        (Counter32(5), metric("counter", scale=8), 0),  # no power of two any more
        (Counter64(5), metric("counter", offset=1), 0),
        (Counter32(5), metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6"), 32),  # what it says counts
        (5, metric("counter"), 0),
        (
            5,
            metric("counter", oid="1.3.6.1.2.1.2.2.1.10"),
            32,
        ),  # ifInOctets, whatever an engine tells
        (5, metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6"), 64),  # ifHCInOctets
        (5, metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6", scale=8), 0),
    ],
)
def test_a_counter_knows_where_it_starts_over(
    value: Value, declared: dict[str, Any], width: int
) -> None:
    """By its type, or by the standard for interfaces."""
    [sample] = mapping.map_values({f"{declared['oid']}.1": value}, module_set(declared)).samples
    assert sample.series.width == width
