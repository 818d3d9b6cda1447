"""RouterOS texts to numbers, rows to readings."""

from __future__ import annotations

import pytest

from poller import errors
from poller.collectors import registry
from poller.collectors.routeros import RouterOsCollector, families, values
from poller.collectors.routeros.families import INTERFACES, RESOURCE
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.routeros.shapes import Shapes
from poller.domain.readings import Kind

REGISTRY = registry.Registry({"routeros": RouterOsCollector()})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("-3", -3),
        ("1.5", 1.5),
        ("18446744073709551615", 2**64 - 1),
        ("", None),
        ("4GiB", None),
        ("٣", None),
        ("007", 7),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    assert values.number(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1w2d3h4m5s", 788645),
        ("5s", 5),
        ("1h", 3600),
        ("250ms", 0.25),
        ("4d05:06:07", 363967),
        ("05:06:07.250", 18367.25),
        ("", None),
        ("never", None),
        ("5", None),
        ("1h junk", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    got = values.seconds(text)
    assert got == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(("text", "truth"), [("true", 1), ("yes", 1), ("false", 0), ("no", 0), ("maybe", None)])
def test_truth(text: str, truth: float | None) -> None:
    assert values.truth(text) == truth


ETHER = {"name": "ether1", "type": "ether", "running": "true", "rx-byte": "100", "comment": "007", "mac-address": "AA"}


def test_rows_become_readings_and_text_stays_text() -> None:
    """A comment of `007` or an interface called `yes` is not a number and not a truth."""
    readings = Shapes().read([(INTERFACES, [ETHER, {"name": "yes", "rx-byte": "5"}])])
    assert readings is not None
    found = {(reading.name, reading.labels["name"]): reading for reading in readings}
    assert found["routeros_interface_rx_byte", "ether1"].value == 100
    assert found["routeros_interface_rx_byte", "ether1"].kind is Kind.COUNTER
    assert found["routeros_interface_rx_byte", "ether1"].labels == {"name": "ether1"}
    assert found["routeros_interface_running", "ether1"].value == 1
    assert found["routeros_interface_info", "ether1"].labels["comment"] == "007"
    assert found["routeros_interface_rx_byte", "yes"].value == 5
    assert ("routeros_interface_running", "yes") not in found


def test_new_numbers_keep_the_series_object() -> None:
    shapes = Shapes()
    first = shapes.read([(INTERFACES, [ETHER])])
    second = shapes.read([(INTERFACES, [{**ETHER, "rx-byte": "200"}])])
    renamed = shapes.read([(INTERFACES, [{**ETHER, "comment": "new"}])])
    assert first is not None
    assert second is not None
    assert renamed is not None
    assert second.series is first.series
    assert 200 in second.values
    assert renamed.series is not second.series


def test_a_second_row_of_the_same_name_is_not_the_same_series_twice() -> None:
    readings = Shapes().read([(INTERFACES, [ETHER, {**ETHER, "type": "vlan"}])])
    assert readings is not None
    assert len({(s.name, s.labels) for s in readings.series.series}) == len(readings.values)


def test_no_rows_no_readings() -> None:
    assert Shapes().read([(INTERFACES, [])]) is None


@pytest.mark.parametrize("family", [RESOURCE, INTERFACES])
def test_families_ask_for_what_they_need_and_explain_it(family: families.Family) -> None:
    asked = family.proplist().split(",")
    assert len(asked) == len(set(asked))
    assert {item.name for item in family.properties} <= set(asked)
    assert all(families.help_texts(family).values())
    assert all(name.startswith("routeros_") for name in families.help_texts(family))


def test_the_port_follows_tls() -> None:
    assert RouterOsOptions().effective_port == 8728
    assert RouterOsOptions(tls=True).effective_port == 8729
    assert RouterOsOptions(tls=True, port=1).effective_port == 1


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"families": "interface"}, 'unknown family "interface"; did you mean interfaces?'),
        ({"families": ""}, "name at least one family"),
        ({"insecure": True}, "insecure needs tls=true"),
        ({"tls": True, "insecure": True, "ca_file": "x"}, "contradict each other"),
        ({"tls": "perhaps"}, 'option "tls"'),
        ({"timeout": 3}, 'unknown option "timeout"'),
    ],
)
def test_refused_options(raw: dict[str, object], text: str) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        REGISTRY.options("routeros", raw)
    assert text in str(raised.value)
