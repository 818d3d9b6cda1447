"""The built-in modules on a real snmpd give the values that net-snmp's own tools print."""

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
def test_a_module_gives_exactly_the_rows_of_the_agent(snmpd: Snmpd, name: str) -> None:
    """Each metric has as many samples as snmpbulkwalk has rows, and constants are equal."""
    module = module_catalog.built_in()[name]
    values: dict[str, str] = {}
    for root in dict.fromkeys((*module.walk, *(item.rpartition(".")[0] for item in module.get))):
        walked = net_snmp("snmpbulkwalk", snmpd.port, root)
        values |= {item: text for item, text in walked.items() if not text.startswith("No Such ")}
    rows = {
        metric.name: [item for item in values if oid.covers(metric.oid, item)]
        for metric in module.metrics
    }
    expected = {metric: len(found) for metric, found in rows.items() if found}
    result = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, modules=name)
    assert result.result is Result.OK, result.message
    samples = by_series(result)
    assert Counter(metric for metric, _ in samples) == expected
    for (metric, _), value in samples.items():
        if metric in CONSTANT:
            assert str(int(value)) in {values[item].rpartition(" ")[2] for item in rows[metric]}, (
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


def test_a_target_without_modules_gets_those_of_its_device(snmpd: Snmpd, tmp_path: Path) -> None:
    """The built-in table decides, or a table of the operator."""
    table = tmp_path / "own.yml"
    table.write_text(
        "base: [system]\nmatch: [{sysObjectID: 1.3.6.1.4.1.8072.3.*, modules: [ip_mib]}]"
    )
    ours = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port)
    own = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=snmpd.port, match=str(table))
    names = [{name for name, _ in by_series(result)} for result in (ours, own)]
    assert {"sysUpTime", "ifInOctets", "hrMemorySize", "memTotalReal"} <= names[0]
    assert "ipForwarding" not in names[0]
    # The built-in pattern 8072.3.2.* is longer than the operator's 8072.3.*.
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
