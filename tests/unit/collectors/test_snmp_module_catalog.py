"""The built-in modules are complete, and modules are found by name."""

from __future__ import annotations

import pytest

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.modules import module_catalog, module_model

BUILT_IN = module_catalog.built_in()
METRIC_TYPES = {*module_model.NUMERIC, *module_model.LASTING, *module_model.DATES}
METRIC_TYPES |= {"EnumAsStateSet", "Bits"}
LOOKUP_TYPES = {*module_model.NUMERIC, *module_model.LASTING, "Bits"}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_built_in_module_reads_every_oid_of_its_metrics(name: str) -> None:
    """Each metric and lookup lies under an OID the module reads, and each metric has help."""
    module = BUILT_IN[name]
    roots = [*module.walk, *module.get]
    for metric in module.metrics:
        assert metric.help, metric.name
        for needed in (metric.oid, *(lookup.oid for lookup in metric.lookups if lookup.labels)):
            assert any(oid.covers(root, needed) or oid.covers(needed, root) for root in roots), (
                needed
            )


def test_the_interface_module_has_the_names_of_snmp_exporter() -> None:
    """The module if_mib has metrics of both interface tables, and four labels."""
    module = BUILT_IN["if_mib"]
    names = {metric.name for metric in module.metrics}
    assert {
        "ifNumber",
        "ifMtu",
        "ifSpeed",
        "ifOperStatus",
        "ifAdminStatus",
        "ifType",
        "ifPhysAddress",
    } <= names
    assert {
        "ifHCInOctets",
        "ifHCOutOctets",
        "ifHighSpeed",
        "ifCounterDiscontinuityTime",
        "ifInOctets",
    } <= names
    octets = next(metric for metric in module.metrics if metric.name == "ifHCInOctets")
    labels = {index.labelname for index in octets.indexes} | {
        lookup.labelname for lookup in octets.lookups
    }
    assert labels == {"ifIndex", "ifName", "ifDescr", "ifAlias"}


def test_built_in_modules_use_known_types_only() -> None:
    """An unknown type counts as a text, so a typing error in a built-in file would go unnoticed."""
    metrics = [metric for module in BUILT_IN.values() for metric in module.metrics]
    assert {metric.type for metric in metrics} <= METRIC_TYPES
    assert {
        lookup.type for metric in metrics for lookup in metric.lookups if lookup.labels
    } <= LOOKUP_TYPES


def test_an_unknown_module_is_refused_with_a_suggestion() -> None:
    """The error names the most similar module."""
    with pytest.raises(errors.InvalidInput, match='unknown module "if_mbi"; did you mean if_mib'):
        module_catalog.select(("if_mbi",))
