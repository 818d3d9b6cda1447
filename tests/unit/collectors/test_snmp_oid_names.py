"""Names of OIDs and OIDs of names, from the loaded modules."""

from __future__ import annotations

import pytest

from poller import errors
from poller.cli.output import snmp_values
from poller.collectors.snmp.modules import module_catalog
from poller.collectors.snmp.modules.oid_names import OidNames, OidScope
from poller.collectors.snmp.wire import value_types
from poller.collectors.snmp.wire.value_types import Value

NAMES = OidNames(module_catalog.built_in())
IF = "1.3.6.1.2.1.2.2.1"


@pytest.mark.parametrize(
    ("oid", "name"),
    [
        (f"{IF}.10.3", "ifInOctets.3"),
        (f"{IF}.2.3", "ifDescr.3"),
        ("1.3.6.1.2.1.31.1.1.1.18.7", "ifAlias.7"),
        ("1.3.6.1.2.1.1.1.0", "sysDescr.0"),
        ("1.3.6.1.2.1.4.20.1.2.192.0.2.7", "ipAdEntIfIndex.192.0.2.7"),
        ("1.3.6.1.4.1.99999.1", "1.3.6.1.4.1.99999.1"),
        (f"{IF}.100.3", f"{IF}.100.3"),
    ],
)
def test_an_oid_gets_the_name_of_the_longest_part_that_has_one(oid: str, name: str) -> None:
    """Columns that are only labels have names, too; an unknown OID stays a number."""
    assert NAMES.name_of(oid)[0] == name


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("1.3.6.1.2.1.2", (OidScope("1.3.6.1.2.1.2"),)),
        (".1.3.6.1", (OidScope("1.3.6.1"),)),
        ("ifInOctets", (OidScope(f"{IF}.10"),)),
        ("ifInOctets.3", (OidScope(f"{IF}.10.3"),)),
        ("mib-2", (OidScope("1.3.6.1.2.1"),)),
        ("entity_sensor", (OidScope("1.3.6.1.2.1.99.1.1.1"), OidScope("1.3.6.1.2.1.47.1.1.1.1.7"))),
    ],
)
def test_a_text_names_one_or_more_scopes(text: str, scopes: tuple[OidScope, ...]) -> None:
    """A text is an OID, a name, a branch or a whole module."""
    assert NAMES.scopes(text) == scopes


def test_a_module_of_scalars_is_read_by_getting_them() -> None:
    """The scopes are single values, not subtrees."""
    assert NAMES.scopes("system")[0] == OidScope("1.3.6.1.2.1.1.1.0", exact=True)


@pytest.mark.parametrize("text", ["ifInOctet", "ifInOctets.x", "hello", "1.3.x", ""])
def test_an_unknown_name_is_refused_with_a_suggestion(text: str) -> None:
    """The hint shows a valid form and, if there is one, a similar name."""
    with pytest.raises(errors.InvalidInput) as caught:
        NAMES.scopes(text)
    assert "1.3.6.1.2.1.2.2" in caught.value.hint
    if text == "ifInOctet":
        assert "did you mean ifInOctets?" in caught.value.hint


def test_a_scalar_needs_no_zero_and_a_column_needs_a_row() -> None:
    """`get sysDescr` works; `get ifInOctets` is refused because a row is missing."""
    assert NAMES.instance("sysDescr") == "1.3.6.1.2.1.1.1.0"
    assert NAMES.instance("ifInOctets.3") == f"{IF}.10.3"
    assert NAMES.instance("1.3.6.1.2.1.1.1.0") == "1.3.6.1.2.1.1.1.0"
    with pytest.raises(errors.InvalidInput, match="one value per row"):
        NAMES.instance("ifInOctets")


@pytest.mark.parametrize(
    ("oid", "value", "line"),
    [
        (f"{IF}.10.3", value_types.Counter32(12), "ifInOctets.3 = Counter32: 12"),
        (f"{IF}.8.3", 2, "ifOperStatus.3 = Integer32: down (2)"),
        (f"{IF}.8.3", 99, "ifOperStatus.3 = Integer32: 99"),
        (
            f"{IF}.6.3",
            b"\x02\xfc\x00\x00\x00\x01",
            "ifPhysAddress.3 = OctetString: 02:FC:00:00:00:01",
        ),
        (
            "1.3.6.1.2.1.1.3.0",
            value_types.TimeTicks(8_640_123),
            "sysUpTime.0 = TimeTicks: 8640123 (1d 0:00:01.23)",
        ),
        ("1.3.6.1.2.1.1.1.0", b"Linux\nbox", "sysDescr.0 = OctetString: Linux box"),
        ("1.3.6.1.2.1.1.1.0", b"\x00\xff", "sysDescr.0 = OctetString: 0x00FF"),
        ("1.3.6.1.2.1.1.1.0", b"", "sysDescr.0 = OctetString: "),
        ("1.3.6.1.2.1.1.2.0", value_types.Oid("1.3.6.1.2.1.1.1"), "sysObjectID.0 = Oid: sysDescr"),
        (
            "1.3.6.1.2.1.25.1.2.0",
            b"\x07\xe2\x08\x0f\x08\x01\x0f\x00",
            "hrSystemDate.0 = OctetString: 2018-08-15T08:01:15Z",
        ),
        ("1.3.9", value_types.IpAddress("10.0.0.1"), "1.3.9 = IpAddress: 10.0.0.1"),
        ("1.3.9", 1.5, "1.3.9 = Float: 1.5"),
        ("1.3.9", None, "1.3.9 = Null: "),
        ("1.3.9", b"\x1b[31mred", "1.3.9 = OctetString: 0x1B5B33316D726564"),
    ],
)
def test_a_value_is_shown_with_its_name_and_type(oid: str, value: Value, line: str) -> None:
    """Enumerations show names, addresses and dates are readable, control characters are hidden."""
    assert snmp_values.line(oid, value, NAMES).for_people() == line


def test_numbers_only_when_asked_for() -> None:
    """Nothing is translated."""
    assert (
        snmp_values.line(f"{IF}.8.3", 2, NAMES, numeric=True).for_people()
        == f"{IF}.8.3 = Integer32: 2"
    )
