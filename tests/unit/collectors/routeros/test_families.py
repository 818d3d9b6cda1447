"""The families: their menus, the readings of their rows, and the options that select them."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.collectors import registry
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.routeros.families import DEFAULT, FAMILIES, PRESENT, row_transforms
from poller.collectors.routeros.families.addresses import KID_CONTROL
from poller.collectors.routeros.families.family import PREFIX, Family, Menu, Rows
from poller.collectors.routeros.families.firewall import CONNECTIONS, FIREWALL
from poller.collectors.routeros.families.interfaces import INTERFACES
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.routeros.row_readings import SeriesCache, TableRows
from poller.domain.metrics.reading import Kind, Reading, ReadingSet

REGISTRY = registry.Registry({"routeros": RouterOsCollector()})
ETHER = {
    "name": "ether1",
    "type": "ether",
    "running": "true",
    "rx-byte": "100",
    "comment": "007",
    "mac-address": "AA",
}


def tables(family: Family, rows: Rows) -> list[TableRows]:
    return [TableRows(family.name, table, rows) for table in family.menus[0].tables]


def readings_of(
    table_rows: Sequence[TableRows],
    cache: SeriesCache | None = None,
    present: Mapping[str, bool] | None = None,
) -> ReadingSet:
    return asyncio.run((cache or SeriesCache()).readings(table_rows, present or {}))


def interfaces(cache: SeriesCache, *rows: dict[str, str]) -> ReadingSet:
    return readings_of(tables(INTERFACES, rows), cache)


def by_name(readings: ReadingSet, label: str) -> dict[tuple[str, str], Reading]:
    return {
        (reading.name.removeprefix(PREFIX), reading.labels.get(label, "")): reading
        for reading in readings
    }


def test_rows_become_readings_and_text_stays_text() -> None:
    """A comment of `007` or an interface called `yes` is not a number and not a truth."""
    found = by_name(
        interfaces(SeriesCache(), ETHER, {"name": "yes", "rx-byte": "5", "actual-mtu": "auto"}),
        "name",
    )
    assert found["interface_rx_byte", "ether1"].value == 100
    assert (
        found["interface_rx_byte", "ether1"].kind,
        found["interface_rx_byte", "ether1"].width,
    ) == (Kind.COUNTER, 64)
    assert found["interface_rx_byte", "ether1"].labels == {"name": "ether1"}
    assert found["interface_running", "ether1"].value == 1
    assert found["interface_info", "ether1"].labels["comment"] == "007"
    assert found["interface_info", "ether1"].kind is Kind.INFO
    assert found["interface_rx_byte", "yes"].value == 5
    assert ("interface_actual_mtu", "yes") not in found


def test_what_a_router_leaves_out_is_no_where_that_is_meant() -> None:
    """A missing flag is 0; a missing number is no reading."""
    found = by_name(interfaces(SeriesCache(), {"name": "ether1"}), "name")
    assert found["interface_running", "ether1"].value == 0
    assert ("interface_rx_byte", "ether1") not in found


def test_new_numbers_keep_the_series_object() -> None:
    cache = SeriesCache()
    first = interfaces(cache, ETHER)
    second = interfaces(cache, {**ETHER, "rx-byte": "200"})
    renamed = interfaces(cache, {**ETHER, "comment": "new"})
    assert second.series is first.series
    assert 200 in second.values
    assert renamed.series is not second.series


def test_the_shape_of_a_poll_without_the_slow_families_is_cached_too() -> None:
    cache = SeriesCache()
    both = [
        *tables(INTERFACES, [ETHER]),
        *tables(FAMILIES["packages"], [{"name": "routeros", "version": "7"}]),
    ]
    whole = readings_of(both, cache)
    part = interfaces(cache, ETHER)
    assert readings_of(both, cache).series is whole.series
    assert interfaces(cache, ETHER).series is part.series


def test_of_two_rows_with_the_same_name_the_last_one_counts() -> None:
    readings = interfaces(SeriesCache(), ETHER, {**ETHER, "rx-byte": "7"})
    assert len({(s.name, s.labels) for s in readings.series.series}) == len(readings.values)
    assert by_name(readings, "name")["interface_rx_byte", "ether1"].value == 7


def test_rules_that_look_alike_are_added_up() -> None:
    rule = {"chain": "forward", "action": "accept", "bytes": "10", "packets": "1"}
    found = by_name(
        readings_of(tables(FIREWALL, [rule, rule, {**rule, "action": "drop"}])), "action"
    )
    assert found["firewall_filter", "accept"].value == 20
    assert found["firewall_filter", "drop"].value == 10


def test_counts_of_both_ip_versions_are_added_up() -> None:
    rows_of_tables = [
        TableRows("connections", table, [{"ret": count}])
        for menu, count in zip(CONNECTIONS.menus, ("5", "7"), strict=True)
        for table in menu.tables
    ]
    found = by_name(readings_of(rows_of_tables), "")
    assert found["ip_connections_total", ""].value == 12
    assert found["ipv6_connections_total", ""].value == 7


def test_a_target_sees_which_families_its_router_has() -> None:
    found = readings_of([], present={"health": True, "lte": False})
    assert {reading.labels["family"]: reading.value for reading in found} == {"health": 1, "lte": 0}
    assert {reading.name for reading in found} == {PRESENT}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_a_family_is_well_declared(family: Family) -> None:
    texts = family.help_texts()
    assert all(texts.values())
    assert all(re.fullmatch(r"routeros_[a-z0-9_]+", name) for name in texts)
    for menu in family.menus:
        assert all(command.startswith("/") for command in menu.commands())
        assert len(set(menu.proplist())) == len(menu.proplist())
        for table in menu.tables:
            assert table.info or table.metrics
            assert not set(table.labels) & set(table.info.labels if table.info else ())
    if family.every_s:
        assert family.name not in DEFAULT


def test_one_name_has_one_meaning() -> None:
    """The same metric from menus of different versions has the same help, kind and labels."""
    seen: dict[str, tuple[str, Kind, tuple[str, ...]]] = {}
    for family in FAMILIES.values():
        for table in family.tables():
            for metric in table.metrics:
                meaning = (metric.help, metric.kind, tuple(table.labels))
                assert seen.setdefault(metric.name, meaning) == meaning


TEXTS = st.text(max_size=8) | st.sampled_from(
    ["", "true", "1,2", "3/4", "9" * 70, "1Gbps", "-52@6Mbps", "10.0.0.1-9", "::/0"]
)
MENUS = [menu for family in FAMILIES.values() for menu in family.menus]


@given(st.sampled_from(MENUS), st.data())
def test_whatever_a_router_answers_becomes_readings_or_nothing(
    menu: Menu, data: st.DataObject
) -> None:
    """No series occurs twice.

    Properties may be missing or garbled, rows may repeat, and the second command may describe other
    rows.
    """
    row = st.dictionaries(st.sampled_from([*menu.proplist(), "name", "ret"]), TEXTS, max_size=12)
    rows: Rows = data.draw(st.lists(row, max_size=4))
    if menu.follow_up:
        rows = menu.follow_up.join(rows, data.draw(st.lists(row, max_size=4)))
    rows_of_tables = [
        TableRows("some", table, table.transform(rows) if table.transform else rows)
        for table in menu.tables
    ]
    readings = readings_of(rows_of_tables)
    assert len({(series.name, series.labels) for series in readings.series.series}) == len(
        readings.values
    )
    assert all(math.isfinite(value) for value in readings.values)


# Rows that are made of other rows


def test_sensors_of_both_versions_are_one_row() -> None:
    v7 = [
        {"name": "voltage", "value": "24.1", "type": "V"},
        {"name": "temperature", "value": "41", "type": "C"},
    ]
    assert row_transforms.one_sensor_row(v7) == [{"voltage": "24.1", "temperature": "41"}]
    assert row_transforms.one_sensor_row([{"voltage": "24.1"}]) == [{"voltage": "24.1"}]
    assert row_transforms.one_sensor_row([]) == []


@pytest.mark.parametrize(
    ("ranges", "size"),
    [
        ("10.0.0.10-10.0.0.19", 10),
        ("10.0.0.0/24,10.1.0.1", 257),
        ("2001:db8::/64", 2**64),
        ("10.0.0.9-10.0.0.1", 0),
        ("rubbish,10.0.0.1", 0),
        ("", 0),
    ],
)
def test_the_size_of_a_pool(ranges: str, size: int) -> None:
    assert row_transforms.add_pool_size([{"ranges": ranges}]) == [
        {"ranges": ranges, "total": str(size)}
    ]


@pytest.mark.parametrize(
    ("prefix", "length", "size"),
    [
        ("2001:db8::/48", "64", 65536),
        ("2001:db8::/64", "56", 1),
        ("2001:db8::/120", "999999999999", 256),
        ("2001:db8::/48", "many", 0),
        ("?", "64", 0),
    ],
)
def test_the_size_of_an_ipv6_pool(prefix: str, length: str, size: int) -> None:
    """An IPv6 pool delegates prefixes, not addresses."""
    assert row_transforms.add_pool_size([{"prefix": prefix, "prefix-length": length}])[0][
        "total"
    ] == str(size)


def test_a_pool_with_nothing_taken_is_empty() -> None:
    pools = row_transforms.add_pool_usage(
        [{"name": "a"}, {"name": "b"}], [{"pool": "a"}, {"pool": "a"}, {}]
    )
    assert [pool["used"] for pool in pools] == ["2", "0"]


@pytest.mark.parametrize(
    ("address", "host"),
    [("10.0.0.1:443", "10.0.0.1"), ("[fe80::1]:53", "fe80::1"), ("fe80::1", "fe80::1"), ("", "")],
)
def test_an_address_without_its_port(address: str, host: str) -> None:
    assert row_transforms.without_port(address) == host


def test_a_second_command_speaks_of_the_same_names() -> None:
    ports = [{"name": "a"}, {"name": "b"}]
    assert row_transforms.join_by_name(ports, [{"name": "b", "rate": "1"}]) == [
        {"name": "a"},
        {"name": "b", "rate": "1"},
    ]
    assert row_transforms.join_by_name(ports, [{"rate": "1"}, {"rate": "2"}])[1] == {
        "name": "b",
        "rate": "2",
    }
    assert row_transforms.join_by_name(ports, [{"rate": "1"}]) == ports


# Options


def test_families_are_read_in_one_order_whatever_is_written() -> None:
    assert RouterOsOptions(families="interfaces, resource").families == ("resource", "interfaces")
    assert RouterOsOptions(families=["all"]).families == tuple(FAMILIES)
    assert RouterOsOptions().families == RouterOsOptions(families="basic").families == DEFAULT
    assert RouterOsOptions(families="basic,lte").families == (*DEFAULT, "lte")


def test_the_port_follows_tls() -> None:
    assert RouterOsOptions().effective_port == 8729
    assert RouterOsOptions(tls=False).effective_port == 8728
    assert RouterOsOptions(port=1).effective_port == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "the router's certificate is not checked: give ca_file, fingerprint or tls=true"),
        ({"tls": False}, "tls=false sends the password in clear"),
        ({"port": 8728, "insecure": True}, "8728 is the port of the plain API"),
        ({"insecure": True}, ""),
        ({"tls": True}, ""),
        ({"server_name": "core"}, ""),
        ({"fingerprint": "ab" * 32}, ""),
        ({"ca_file": "/ca.pem"}, ""),
    ],
)
def test_a_risk_is_named_with_the_option_that_ends_it(options: dict[str, Any], text: str) -> None:
    """Only a checked certificate, or the word that none is wanted, is without a caution."""
    found = list(RouterOsCollector().cautions(RouterOsOptions(**options)))
    assert [text in each for each in found] == ([True] if text else [])


@pytest.mark.parametrize("every", [{"routes": "5m", "packages": 3600}, "routes=5m, packages=1h"])
def test_a_family_may_have_its_own_interval(every: object) -> None:
    assert RouterOsOptions(families="all", every=every).every == {"routes": 300, "packages": 3600}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"families": "interface"}, 'unknown family "interface"; did you mean interfaces?'),
        ({"families": ""}, "name at least one family"),
        ({"families": 5}, 'option "families"'),
        ({"every": "routes"}, "write routes=5m"),
        ({"every": {"route": 5}}, "did you mean routes?"),
        ({"every": {"routes": "soon"}, "families": "routes"}, "routes: "),
        ({"every": {"routes": 60}}, 'option "every": the family routes is not read'),
        ({"every": [1]}, 'option "every"'),
        ({"every": {"health": "99d"}}, "31d"),
        (
            {"address_lists": "blocked"},
            'option "address_lists": the family address_lists is not read',
        ),
        ({"tls": False, "insecure": True}, "collector routeros: insecure needs TLS"),
        ({"tls": True, "insecure": True, "ca_file": "x"}, "contradict each other"),
        ({"tls": "perhaps"}, 'option "tls"'),
        ({"timeout": 3}, 'unknown option "timeout"'),
    ],
)
def test_refused_options(raw: dict[str, object], text: str) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        REGISTRY.options("routeros", raw)
    assert text in str(raised.value)


def test_a_device_under_kid_control_is_known_by_its_lease() -> None:
    table = KID_CONTROL.menus[0].tables[0]
    assert "dhcp-name" not in KID_CONTROL.menus[0].proplist()
    assert table.info is not None
    assert "dhcp_name" in table.info.labels
