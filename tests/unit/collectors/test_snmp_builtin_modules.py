"""The built-in modules turn small walks into samples with the names of the MIBs."""

from __future__ import annotations

import pytest

from poller.collectors.snmp.metrics import mapping
from poller.collectors.snmp.modules import module_catalog
from poller.collectors.snmp.wire.value_types import Value

Found = dict[str, float]

HR, UCD, SENSOR, MTXR = (
    "1.3.6.1.2.1.25",
    "1.3.6.1.4.1.2021",
    "1.3.6.1.2.1.99.1.1.1",
    "1.3.6.1.4.1.14988.1.1",
)
UPS, PRT, IP = "1.3.6.1.2.1.33.1", "1.3.6.1.2.1.43", "1.3.6.1.2.1.4"


def samples(module: str, walk: dict[str, Value]) -> Found:
    """Return samples in the text format, without labels that have no text."""
    module_set = module_catalog.select((module,))
    result = mapping.map_values(walk, module_set)
    assert not result.duplicates
    found = {}
    for sample in result.samples:
        labels = ",".join(f'{key}="{text}"' for key, text in sample.series.labels if text)
        found[sample.series.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


@pytest.mark.parametrize(
    ("module", "walk", "expected"),
    [
        (
            "host_resources",
            {
                f"{HR}.1.1.0": 4200,
                f"{HR}.1.6.0": 87,
                f"{HR}.2.2.0": 1048576,
                f"{HR}.2.3.1.3.31": b"/",
                f"{HR}.2.3.1.4.31": 4096,
                f"{HR}.2.3.1.5.31": 1000,
                f"{HR}.2.3.1.6.31": 250,
                f"{HR}.3.2.1.3.196608": b"CPU",
                f"{HR}.3.2.1.5.196608": 2,
                f"{HR}.3.3.1.2.196608": 13,
            },
            {
                "hrSystemUptime": 4200,
                "hrSystemProcesses": 87,
                "hrMemorySize": 1048576,
                'hrStorageAllocationUnits{hrStorageIndex="31",hrStorageDescr="/"}': 4096,
                'hrStorageSize{hrStorageIndex="31",hrStorageDescr="/"}': 1000,
                'hrStorageUsed{hrStorageIndex="31",hrStorageDescr="/"}': 250,
                'hrDeviceStatus{hrDeviceIndex="196608",hrDeviceDescr="CPU"}': 2,
                'hrProcessorLoad{hrDeviceIndex="196608",hrDeviceDescr="CPU"}': 13,
            },
        ),
        (
            "ucd",
            {
                f"{UCD}.4.5.0": 2048,
                f"{UCD}.11.50.0": 77,
                f"{UCD}.10.1.2.1": b"Load-1",
                f"{UCD}.10.1.3.1": b"0.42",
                f"{UCD}.10.1.5.1": 42,
                f"{UCD}.10.1.6.1": b"\x9fx\x04\x3e\xd7\x0a\x3d",
                f"{UCD}.9.1.2.1": b"/var",
                f"{UCD}.9.1.3.1": b"/dev/sda2",
                f"{UCD}.9.1.9.1": 61,
            },
            {
                "memTotalReal": 2048,
                "ssCpuRawUser": 77,
                'laLoad{laNames="Load-1"}': 0.42,
                'laLoadInt{laNames="Load-1"}': 42,
                'laLoadFloat{laNames="Load-1"}': pytest.approx(0.42),
                'dskPercent{dskIndex="1",dskPath="/var",dskDevice="/dev/sda2"}': 61,
            },
        ),
        (
            "entity_sensor",
            {
                f"{SENSOR}.1.1006": 8,
                f"{SENSOR}.2.1006": 9,
                f"{SENSOR}.3.1006": 1,
                f"{SENSOR}.4.1006": 415,
                f"{SENSOR}.5.1006": 1,
                "1.3.6.1.2.1.47.1.1.1.1.7.1006": b"Inlet",
            },
            {
                f'{name}{{entPhysicalIndex="1006",entPhysicalName="Inlet",entPhySensorType="celsius",'
                f'entPhySensorScale="units",entPhySensorPrecision="1"}}': value
                for name, value in (("entPhySensorValue", 415), ("entPhySensorOperStatus", 1))
            },
        ),
        (
            "mikrotik",
            {
                f"{MTXR}.3.8.0": 241,
                f"{MTXR}.6.1.0": 12,
                f"{MTXR}.7.8.0": b"RB5009",
                f"{MTXR}.3.100.1.2.17": b"temperature",
                f"{MTXR}.3.100.1.3.17": 38,
                f"{MTXR}.3.100.1.4.17": 1,
                f"{MTXR}.19.1.1.2.1": b"sfp-sfpplus1",
                f"{MTXR}.19.1.1.10.1": -5610,
            },
            {
                "mtxrHlVoltage": 241,
                "mtxrDHCPLeaseCount": 12,
                'mtxrBoardName{mtxrBoardName="RB5009"}': 1,
                'mtxrGaugeValue{mtxrGaugeIndex="17",mtxrGaugeName="temperature",'
                'mtxrGaugeUnit="celsius"}': 38,
                'mtxrOpticalRxPower{mtxrOpticalIndex="1",mtxrOpticalName="sfp-sfpplus1"}': -5610,
            },
        ),
        (
            "ups_mib",
            {
                f"{UPS}.1.2.0": b"Model 7",
                f"{UPS}.2.1.0": 2,
                f"{UPS}.2.4.0": 98,
                f"{UPS}.3.3.1.3.1": 231,
                f"{UPS}.4.1.0": 3,
                f"{UPS}.4.4.1.5.1": 40,
                f"{UPS}.5.3.1.2.2": 230,
            },
            {
                'upsIdentModel{upsIdentModel="Model 7"}': 1,
                "upsBatteryStatus": 2,
                "upsEstimatedChargeRemaining": 98,
                'upsInputVoltage{upsInputLineIndex="1"}': 231,
                "upsOutputSource": 3,
                'upsOutputPercentLoad{upsOutputLineIndex="1"}': 40,
                'upsBypassVoltage{upsBypassLineIndex="2"}': 230,
            },
        ),
        (
            "printer_mib",
            {
                f"{HR}.3.5.1.1.1": 3,
                f"{PRT}.5.1.1.17.1": b"SN1",
                f"{PRT}.10.2.1.3.1.1": 7,
                f"{PRT}.10.2.1.4.1.1": 90210,
                f"{PRT}.11.1.1.3.1.2": 4,
                f"{PRT}.11.1.1.5.1.2": 3,
                f"{PRT}.11.1.1.6.1.2": b"Black Cartridge",
                f"{PRT}.11.1.1.7.1.2": 19,
                f"{PRT}.11.1.1.8.1.2": 100,
                f"{PRT}.11.1.1.9.1.2": 35,
                f"{PRT}.12.1.1.4.1.4": b"black",
            },
            {
                'hrPrinterStatus{hrDeviceIndex="1"}': 3,
                'prtGeneralSerialNumber{hrDeviceIndex="1",prtGeneralSerialNumber="SN1"}': 1,
                'prtMarkerLifeCount{hrDeviceIndex="1",prtMarkerIndex="1",'
                'prtMarkerCounterUnit="impressions"}': 90210,
                **{
                    f'{name}{{hrDeviceIndex="1",prtMarkerSuppliesIndex="2",'
                    'prtMarkerSuppliesDescription="Black Cartridge",prtMarkerSuppliesType="toner",'
                    f'prtMarkerSuppliesSupplyUnit="percent",prtMarkerColorantValue="black"}}': value
                    for name, value in (
                        ("prtMarkerSuppliesMaxCapacity", 100),
                        ("prtMarkerSuppliesLevel", 35),
                    )
                },
            },
        ),
        (
            "ip_mib",
            {
                f"{IP}.1.0": 1,
                f"{IP}.31.1.1.4.2": 900,
                f"{IP}.20.1.2.192.0.2.7": 3,
                f"{IP}.34.1.3.1.4.192.0.2.7": 3,
                f"{IP}.34.1.7.1.4.192.0.2.7": 1,
                "1.3.6.1.2.1.5.29.1.2.1": 55,
                "1.3.6.1.2.1.6.9.0": 14,
                "1.3.6.1.2.1.7.1.0": 8,
            },
            {
                "ipForwarding": 1,
                'ipSystemStatsHCInReceives{ipSystemStatsIPVersion="ipv6"}': 900,
                'ipAdEntIfIndex{ipAdEntAddr="192.0.2.7"}': 3,
                'ipAddressIfIndex{ipAddressAddr="192.0.2.7"}': 3,
                'ipAddressStatus{ipAddressAddr="192.0.2.7"}': 1,
                'icmpStatsInMsgs{icmpStatsIPVersion="ipv4"}': 55,
                "tcpCurrEstab": 14,
                "udpInDatagrams": 8,
            },
        ),
    ],
)
def test_a_walk_becomes_named_samples(module: str, walk: dict[str, Value], expected: Found) -> None:
    """Metric names are those of the MIB, and labels identify the row."""
    assert samples(module, walk) == {_sorted(name): value for name, value in expected.items()}


def _sorted(name: str) -> str:
    """Return a series with its labels sorted by name."""
    head, brace, labels = name.partition("{")
    return (
        head
        + brace
        + ",".join(sorted(labels.removesuffix("}").split(",")))
        + ("}" if brace else "")
    )


def test_error_states_of_a_printer_are_named_bits() -> None:
    """Bit 0 is the highest bit of the first octet."""
    found = samples("printer_mib", {f"{HR}.3.5.1.2.1": b"\x40\x80"})
    name = 'hrPrinterDetectedErrorState{{hrDeviceIndex="1",hrPrinterDetectedErrorState="{}"}}'
    assert found[name.format("noPaper")] == 1
    assert found[name.format("inputTrayMissing")] == 1
    assert found[name.format("jammed")] == 0
