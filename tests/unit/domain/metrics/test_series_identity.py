"""The identity of a series: its name, where the name is unique."""

from __future__ import annotations

import pytest

from poller.domain.metrics import series_identity
from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity

ETH0 = {"ifIndex": "2", "ifName": "eth0", "ifDescr": "Ethernet 0", "ifAlias": "to core"}
ETH1 = {"ifIndex": "3", "ifName": "eth1", "ifDescr": "Ethernet 1", "ifAlias": ""}


def shape(*rows: dict[str, str], metric: str = "octets") -> SeriesSet:
    return SeriesSet(
        tuple(Series(metric, tuple(sorted(row.items())), Kind.COUNTER) for row in rows)
    )


def identities(*rows: dict[str, str], by: Identity = Identity.IF_NAME) -> list[dict[str, str]]:
    return [dict(labels) for _, labels in series_identity.series_keys(shape(*rows), by)]


def test_an_interface_keeps_its_name_when_it_is_numbered_anew() -> None:
    """An edited description does not start a new series either."""
    moved = [
        {**ETH0, "ifIndex": "7", "ifAlias": "to the other core"},
        {**ETH1, "ifIndex": "2", "ifDescr": "E1"},
    ]
    assert identities(*moved) == identities(ETH0, ETH1) == [{"ifName": "eth0"}, {"ifName": "eth1"}]


@pytest.mark.parametrize(
    ("by", "found"),
    [
        (Identity.IF_DESCR, [{"ifDescr": "Ethernet 0"}, {"ifDescr": "Ethernet 1"}]),
        (Identity.IF_ALIAS, [{"ifAlias": "to core"}, {"ifIndex": "3"}]),
        (Identity.IF_INDEX, [{"ifIndex": "2"}, {"ifIndex": "3"}]),
    ],
)
def test_an_option_selects_the_identity_of_interfaces(
    by: Identity, found: list[dict[str, str]]
) -> None:
    """An empty alias falls back to the index."""
    assert identities(ETH0, ETH1, by=by) == found


@pytest.mark.parametrize("name", ["", " "])
def test_without_a_name_the_index_identifies(name: str) -> None:
    """One row without a name is identified by its index."""
    assert identities({**ETH0, "ifName": name}, ETH1) == [{"ifIndex": "2"}, {"ifName": "eth1"}]


def test_a_name_of_two_rows_identifies_neither() -> None:
    """Both rows are identified by index; the third keeps its name."""
    twins = [{**ETH0, "ifIndex": "5"}, {**ETH0, "ifIndex": "6"}]
    assert identities(*twins, ETH1) == [{"ifIndex": "5"}, {"ifIndex": "6"}, {"ifName": "eth1"}]


def test_a_name_is_judged_over_the_whole_poll() -> None:
    """All columns of a row have the same identity."""
    twins = SeriesSet(
        tuple(
            Series(metric, tuple(sorted({**ETH0, "ifIndex": index}.items())), Kind.COUNTER)
            for metric, index in [("in", "5"), ("in", "6"), ("out", "5")]
        )
    )
    assert [dict(labels) for _, labels in series_identity.series_keys(twins)] == [
        {"ifIndex": "5"},
        {"ifIndex": "6"},
        {"ifIndex": "5"},
    ]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (
            {"entPhysicalIndex": "9", "entPhysicalName": "fan", "entPhysicalDescr": "x"},
            {"entPhysicalName": "fan"},
        ),
        ({"hrStorageIndex": "1", "hrStorageDescr": "/var"}, {"hrStorageDescr": "/var"}),
        ({"ifIndex": "2", "ifName": "eth0", "vlan": "7"}, {"ifName": "eth0", "vlan": "7"}),
        ({"ifIndex": "2"}, {"ifIndex": "2"}),
        ({"ifName": "eth0", "ifAlias": "x"}, {"ifName": "eth0", "ifAlias": "x"}),
        ({"interface": "ether1"}, {"interface": "ether1"}),
        ({"Index": "1"}, {"Index": "1"}),
        ({}, {}),
    ],
)
def test_any_table_with_an_index_and_a_name(labels: dict[str, str], found: dict[str, str]) -> None:
    """A series without index and name is identified by all its labels."""
    assert identities(labels) == [found]


def test_two_series_of_one_poll_are_never_the_same() -> None:
    """Where the rule would merge two series, all labels identify them."""
    rows = [
        {"aIndex": "1", "aDescr": "x", "aAlias": "p"},
        {"aIndex": "1", "aDescr": "x", "aAlias": "q"},
    ]
    assert identities(*rows) == rows


@pytest.mark.parametrize(
    ("options", "by"),
    [
        ({}, Identity.IF_NAME),
        ({"identity": "ifAlias"}, Identity.IF_ALIAS),
        ({"identity": 7}, Identity.IF_NAME),
    ],
)
def test_the_options_of_a_target_choose(options: dict[str, object], by: Identity) -> None:
    """Another collector may use the word for something else."""
    assert series_identity.identity_option(options) is by


def test_series_of_some_identities_are_found_in_every_shape() -> None:
    """One that was numbered anew or described otherwise is found, and no other of its metric."""
    before, *others = shape(
        ETH0, ETH1, {**ETH0, "ifName": "eth2"}, {"ifName": "eth0", "other": "x"}
    ).series
    after = shape({**ETH0, "ifIndex": "7", "ifAlias": "moved"})
    may_have = series_identity.with_keys(series_identity.series_keys(after))
    assert may_have(before)
    assert [may_have(each) for each in others] == [False, False, True]
    assert not may_have(Series("errors", before.labels, Kind.COUNTER))
    assert not may_have(Series("octets", before.labels, Kind.INFO))
