"""The meaning of gauges by their names and labels."""

from __future__ import annotations

import pytest

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.series import measurements
from poller.domain.series.measurements import Group, Measurement, Unit


def of(*readings: Reading) -> list[Measurement]:
    return measurements.of_poll(ReadingSet.of(readings))


@pytest.mark.parametrize(
    ("metric", "group", "unit", "value"),
    [
        ("ping_rtt_avg_seconds", Group.REACH, Unit.SECONDS, 2.0),
        ("ping_loss_ratio", Group.REACH, Unit.PERCENT, 200.0),
        ("http_tls_expiry_seconds", Group.CERTIFICATES, Unit.LEFT, 2.0),
        ("routeros_certificate_expiration_timestamp_seconds", Group.CERTIFICATES, Unit.INSTANT, 2),
        ("routeros_system_cpu_load", Group.CPU, Unit.PERCENT, 2.0),
        ("memAvailReal", Group.MEMORY, Unit.BYTES, 2048.0),
        ("routeros_system_free_memory", Group.MEMORY, Unit.BYTES, 2.0),
        ("mtxrHlTemperature", Group.SENSORS, Unit.CELSIUS, 0.2),
        ("routeros_interface_sfp_rx_power", Group.SENSORS, Unit.DBM, 2.0),
        ("upsBatteryStatus", Group.STATES, Unit.STATE, 2.0),
        ("sysUpTime", Group.OTHER, Unit.SECONDS, 0.02),
        ("ifMtu", Group.OTHER, Unit.NUMBER, 2.0),
    ],
)
def test_the_name_of_a_metric_says_group_unit_and_scale(
    metric: str, group: Group, unit: Unit, value: float
) -> None:
    """A metric without a rule is a plain number of the group `Other`, never left out."""
    [found] = of(Reading(metric, 2.0))
    assert (found.group, found.unit) == (group, unit)
    assert found.value == pytest.approx(value)


def test_a_sensor_has_the_unit_and_the_point_of_its_labels() -> None:
    """ENTITY-SENSOR-MIB has whole numbers; scale and precision are other columns."""
    labels = {
        "entPhysicalIndex": "7",
        "entPhysicalName": "PSU 1 in",
        "entPhySensorType": "voltsDC",
        "entPhySensorScale": "milli",
        "entPhySensorPrecision": "1",
    }
    [found] = of(Reading("entPhySensorValue", 120_500.0, labels))
    assert (found.name, found.unit) == ("PSU 1 in", Unit.VOLTS)
    assert found.value == pytest.approx(12.05)


def test_storage_is_in_bytes_of_its_size() -> None:
    """Used and size are counted in units, which are a series of their own."""
    labels = {"hrStorageIndex": "31", "hrStorageDescr": "/var"}
    found = of(
        Reading("hrStorageAllocationUnits", 4096.0, labels),
        Reading("hrStorageSize", 1000.0, labels),
        Reading("hrStorageUsed", 250.0, labels),
    )
    [used] = found
    assert (used.name, used.group, used.unit) == ("/var", Group.STORAGE, Unit.BYTES)
    assert (used.value, used.top) == (250 * 4096, 1000 * 4096)


def test_interfaces_counters_and_infos_are_not_among_measurements() -> None:
    """They have pages of their own, or no value."""
    labels = {"ifIndex": "1", "ifName": "eth0"}
    found = of(
        Reading("ifOperStatus", 1.0, labels),
        Reading("ifHighSpeed", 1000.0, labels),
        Reading("ssCpuRawIdle", 1.0, {}, Kind.COUNTER, 32),
        Reading("sysDescr", 1.0, {"sysDescr": "box"}, Kind.INFO),
        Reading("laLoadFloat", 0.5, {"laIndex": "1", "laNames": "Load-1"}),
    )
    assert [each.series.name for each in found] == ["laLoadFloat"]


def test_groups_come_in_the_order_of_the_page() -> None:
    """Reachability before sensors before the rest, whatever the order of the poll."""
    found = of(Reading("sysUpTime", 1.0), Reading("mtxrHlPower", 1.0), Reading("ping_up", 1.0))
    assert [each.group for each in found] == [Group.REACH, Group.SENSORS, Group.OTHER]
