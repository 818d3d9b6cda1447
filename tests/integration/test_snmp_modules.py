"""The built-in modules on a real snmpd: what it has of them arrives whole, next to what net-snmp's tools say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.collectors.snmp import SnmpCollector, oid
from poller.collectors.snmp.modules import module_catalog
from poller.domain.failures.outcome import Result
from tests.integration.test_collector_snmp import (
    PUBLIC,
    Snmpd,
    free_udp_port,
    net_snmp,
    running_snmpd,
)
from tests.unit.collectors.polls import by_series, outcome


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    with running_snmpd(tmp_path_factory.mktemp("snmpd"), free_udp_port()) as running:
        yield running


@pytest.mark.parametrize("name", ["host_resources", "ucd", "ip_mib"])
def test_what_the_agent_has_arrives_and_nothing_else(snmpd: Snmpd, name: str) -> None:
    """Metric by metric as many samples as net-snmp's tools see rows, and constants with the same value."""
    module = module_catalog.built_in()[name]
    seen: dict[str, str] = {}
    for root in dict.fromkeys((*module.walk, *(item.rpartition(".")[0] for item in module.get))):
        walked = net_snmp("snmpbulkwalk", snmpd.port, root)
        seen |= {item: text for item, text in walked.items() if not text.startswith("No Such ")}
    rows = {
        metric.name: [item for item in seen if oid.covers(metric.oid, item)]
        for metric in module.metrics
    }
    expected = {metric: len(found) for metric, found in rows.items() if found}
    result = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, modules=name)
    assert result.result is Result.OK, result.message
    samples = by_series(result)
    assert Counter(metric for metric, _ in samples) == expected
    for (metric, _), value in samples.items():
        if metric in CONSTANT:
            assert str(int(value)) in {seen[item].rpartition(" ")[2] for item in rows[metric]}, (
                metric
            )


CONSTANT = {
    "hrMemorySize",
    "hrStorageAllocationUnits",
    "memTotalReal",
    "ipForwarding",
    "ipDefaultTTL",
    "ssCpuNumCpus",
}


def test_a_target_that_names_no_modules_gets_those_of_its_device(
    snmpd: Snmpd, tmp_path: Path
) -> None:
    """By our table, and by one of one's own."""
    table = tmp_path / "own.yml"
    table.write_text(
        "base: [system]\nmatch: [{sysObjectID: 1.3.6.1.4.1.8072.3.*, modules: [ip_mib]}]"
    )
    ours = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port)
    own = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, match=str(table))
    names = [{name for name, _ in by_series(result)} for result in (ours, own)]
    assert {"sysUpTime", "ifInOctets", "hrMemorySize", "memTotalReal"} <= names[0]
    assert "ipForwarding" not in names[0]
    # 8072.3.2.* of ours is longer than 8072.3.* of one's own.
    assert names[1] & {"ipForwarding", "ifInOctets"} == set()
    assert {"sysUpTime", "memTotalReal"} <= names[1]
    table.write_text(
        "base: [system]\nmatch: [{sysObjectID: 1.3.6.1.4.1.8072.3.2.*, modules: [ip_mib]}]"
    )
    exact = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, match=str(table))
    assert {"sysUpTime", "ipForwarding"} <= {name for name, _ in by_series(exact)}
    table.write_text("match: [{sysObjectID: 1.3.6.1.4.1.8072.3.2.*, modules: [nosuch]}]")
    broken = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, match=str(table))
    assert (broken.result, broken.error_code) == (Result.FAILED, "options_invalid")
