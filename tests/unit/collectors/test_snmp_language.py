"""Modules are read strictly, and the built-in ones are complete."""

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
def test_every_metric_of_a_built_in_module_is_asked_for(name: str) -> None:
    """Each metric and each lookup lies under something the module walks or gets, and says what it means."""
    module = BUILT_IN[name]
    asked = [*module.walk, *module.get]
    for metric in module.metrics:
        assert metric.help, metric.name
        for wanted in (metric.oid, *(lookup.oid for lookup in metric.lookups if lookup.labels)):
            assert any(oid.covers(root, wanted) or oid.covers(wanted, root) for root in asked), (
                wanted
            )


def test_interfaces_have_the_names_people_know() -> None:
    """The exporter's if_mib, in substance: both tables, four labels."""
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


def test_built_in_modules_use_only_types_that_mean_something() -> None:
    """In files of others an unknown type is a text, as in snmp_exporter; in ours it would be a slip."""
    metrics = [metric for module in BUILT_IN.values() for metric in module.metrics]
    assert {metric.type for metric in metrics} <= METRIC_TYPES
    assert {
        lookup.type for metric in metrics for lookup in metric.lookups if lookup.labels
    } <= LOOKUP_TYPES


def test_the_unknown_module_is_named_with_its_neighbour() -> None:
    """A typing error costs one look."""
    with pytest.raises(errors.InvalidInput, match='unknown module "if_mbi"; did you mean if_mib'):
        module_catalog.select(("if_mbi",))


def test_parts_are_asked_for_once() -> None:
    """A subtree inside another and a scalar in two modules cost one request."""
    from poller.collectors.snmp.modules.module_model import Module
    from poller.collectors.snmp.modules.module_set import ModuleSet

    module_set = ModuleSet(
        (
            Module("a", walk=("1.3.6", "1.3.6.1"), get=("1.3.1.0",)),
            Module("b", walk=("1.3.6",), get=("1.3.1.0",)),
        )
    )
    assert [(part.walk, part.get) for part in module_set.parts] == [
        ("", ("1.3.1.0",)),
        ("1.3.6", ()),
    ]
