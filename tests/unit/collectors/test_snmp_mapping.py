"""{oid: value} dictionaries become the samples that snmp_exporter makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from poller.collectors.snmp.metrics import mapping
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


def test_a_number_stays_as_the_device_sent_it() -> None:
    """A counter beyond float64 stays exact; only the text format takes it modulo 2**53."""
    assert mapped({"1.1.0": 2**64 - 1}, metric("counter")) == {("m", ()): 2**64 - 1}


@pytest.mark.parametrize(
    ("value", "scale", "offset", "result"),
    [(420, 0.1, 0, 42.0), (70, 0, -1, 69), (2, -1, 2, 0), (7, 0.1, 1, 1.7000000000000002)],
)
def test_scale_then_offset(value: int, scale: float, offset: float, result: float) -> None:
    """A scale of 0 means no scaling, as in snmp_exporter."""
    assert mapped({"1.1.0": value}, metric(scale=scale, offset=offset)) == {("m", ()): result}


def test_a_text_is_a_label_on_one() -> None:
    """The sample is 1 and the metric's name is the label; scale and offset apply to the 1."""
    assert mapped({"1.1.0": b"box"}, metric("DisplayString")) == {("m", (("m", "box"),)): 1}
    assert mapped({"1.1.0": b"box"}, metric("DisplayString", scale=2, offset=1)) == {
        ("m", (("m", "box"),)): 3
    }


def test_a_text_that_is_already_an_index_is_not_repeated() -> None:
    """The text of the index wins over the value."""
    found = mapped(
        {"1.1.7": b"x"}, metric("DisplayString", indexes=[{"labelname": "m", "type": "gauge"}])
    )
    assert found == {("m", (("m", "7"),)): 1}


def test_enum_as_info() -> None:
    """A named state is shown by name, another one by number."""
    enum = {"enum_values": {1: "up", 2: "down"}}
    assert mapped({"1.1.0": 2}, metric("EnumAsInfo", **enum)) == {("m_info", (("m", "down"),)): 1}
    assert mapped({"1.1.0": 9}, metric("EnumAsInfo", **enum)) == {("m_info", (("m", "9"),)): 1}


def test_enum_as_state_set() -> None:
    """Each named state has a series, and a current state without a name has one, too."""
    enum = {"enum_values": {1: "up", 2: "down"}}
    known = mapped({"1.1.0": 2}, metric("EnumAsStateSet", **enum))
    assert known == {("m", (("m", "up"),)): 0, ("m", (("m", "down"),)): 1}
    assert mapped({"1.1.0": 9}, metric("EnumAsStateSet", **enum))[("m", (("m", "9"),))] == 1


@pytest.mark.parametrize(("kind", "value"), [("EnumAsStateSet", 3), ("Bits", b"\x10")])
def test_states_of_one_name_are_one_sample(kind: str, value: Value) -> None:
    """The sample is 1 when either state holds. snmp_exporter fails the scrape."""
    enum = {"enum_values": {1: "other", 2: "up", 3: "other"}}
    expected = {("m", (("m", "other"),)): 1, ("m", (("m", "up"),)): 0}
    assert mapped({"1.1.0": value}, metric(kind, **enum)) == expected


def test_bits() -> None:
    """Bit 0 is the highest bit of the first octet, missing octets are zeros, numbers have none."""
    enum = {"enum_values": {0: "a", 7: "b", 9: "c"}}
    found = mapped({"1.1.0": b"\x81"}, metric("Bits", **enum))
    assert found == {("m", (("m", "a"),)): 1, ("m", (("m", "b"),)): 1, ("m", (("m", "c"),)): 0}
    assert mapped({"1.1.0": 5}, metric("Bits", **enum)) == {}


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


def test_earlier_label_values_replace_a_table_that_was_not_read() -> None:
    """A time-out of the name table starts no new series."""
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
    """Newer modules of snmp_exporter have such lookups."""
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
def test_the_column_before_decides_a_combined_type(subtype: int | None, text: str) -> None:
    """InetAddress prints by the type in the column before, in hexadecimal without a known one."""
    values: dict[str, Value] = {"1.1.5.1": b"\x04\x05\x06\x07"}
    if subtype is not None:
        values["1.1.4.1"] = subtype
    found = mapped(values, {"name": "m", "oid": "1.1.5", "type": "InetAddress"})
    assert found == {("m", (("m", text),)): 1}


def test_the_shortest_metric_oid_wins() -> None:
    """snmp_exporter's metric tree finds the shortest OID first."""
    short, long = metric(oid="1.1"), {"name": "n", "oid": "1.1.2", "type": "gauge"}
    assert set(mapped({"1.1.2.1": 1}, long, short)) == {("m", ())}


def test_rows_with_equal_labels_are_reported_and_the_first_stays() -> None:
    """snmp_exporter fails the scrape; this collector drops and reports the second row."""
    result = mapping.map_values({"1.1.1": 1, "1.1.2": 2}, module_set(metric()))
    assert [sample.value for sample in result.samples] == [1]
    assert [series.name for series in result.duplicates] == ["m"]


def test_one_row_in_two_modules_is_no_conflict() -> None:
    """sysUpTime in two modules is one reading."""
    module = module_set(metric()).modules[0]
    result = mapping.map_values({"1.1.0": 7}, ModuleSet((module, module)))
    assert len(result.samples) == 1
    assert result.duplicates == []


def test_kinds() -> None:
    """The metric type decides the kind of the series."""
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
        (Counter32(5), metric("counter", scale=8), 0),  # a scaled counter wraps nowhere
        (Counter64(5), metric("counter", offset=1), 0),
        (
            Counter32(5),
            metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6"),
            32,
        ),  # the type of the value wins
        (5, metric("counter"), 0),
        (5, metric("counter", oid="1.3.6.1.2.1.2.2.1.10"), 32),  # ifInOctets
        (5, metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6"), 64),  # ifHCInOctets
        (5, metric("counter", oid="1.3.6.1.2.1.31.1.1.1.6", scale=8), 0),
    ],
)
def test_the_width_of_a_counter(value: Value, declared: dict[str, Any], width: int) -> None:
    """The SNMP type decides, else the IF-MIB; a scaled counter has no width."""
    [sample] = mapping.map_values({f"{declared['oid']}.1": value}, module_set(declared)).samples
    assert sample.series.width == width
