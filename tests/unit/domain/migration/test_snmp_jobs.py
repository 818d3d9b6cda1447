"""Jobs of a `prometheus.yml`: mistakes in it are named, whatever their form."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.domain.migration import exporter_plan, snmp_jobs
from poller.domain.migration.exporter_plan import AuthUse, Labelling, Plan

COPY = {"source_labels": ["__address__"], "target_label": "__param_target"}
EXPORTER = {"target_label": "__address__", "replacement": "127.0.0.1:9116"}


def job(**fields: Any) -> dict[str, Any]:
    return {
        "job_name": "snmp",
        "metrics_path": "/snmp",
        "static_configs": [{"targets": ["192.0.2.1"]}],
        "relabel_configs": [COPY],
        **fields,
    }


def found(*jobs: dict[str, Any], **config: Any) -> snmp_jobs.FoundJobs:
    return snmp_jobs.find({"scrape_configs": list(jobs), **config}, lambda _: ([], []))


def planned(*jobs: dict[str, Any]) -> Plan:
    targets = found(*jobs).targets
    options = {target.modules: {} for target in targets}
    auths = {snmp_jobs.DEFAULT_AUTH: AuthUse(snmp_jobs.DEFAULT_AUTH)}
    return exporter_plan.make(targets, auths, options, Labelling())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"params": ["module"]}, "job snmp: params"),
        ({"static_configs": ["192.0.2.1"]}, "job snmp: a group of targets"),
        ({"static_configs": [{"targets": [], "labels": ["a"]}]}, "job snmp: labels of a group"),
        ({"relabel_configs": ["keep"]}, "job snmp"),
        ({"scrape_interval": "-5s"}, "job snmp: .*-5s"),
    ],
)
def test_a_job_of_another_form_is_named(fields: dict[str, Any], text: str) -> None:
    """A file of another program is never a reason for an unexpected error."""
    with pytest.raises(errors.InvalidInput, match=text):
        found(job(**fields))


def test_defaults_of_another_form_are_named() -> None:
    """The part `global` is a mapping."""
    with pytest.raises(errors.InvalidInput, match="global"):
        found(job(), **{"global": "x"})


def test_a_device_is_not_named_after_the_exporter() -> None:
    """Without a rule for `instance` that label has the address of the exporter."""
    plan = planned(job(relabel_configs=[COPY, EXPORTER]))
    assert list(plan.devices) == ["192.0.2.1"]


def test_a_target_never_joins_a_device_with_another_address() -> None:
    """Names that meet are made different until the address fits, too."""

    def named(instance: str, address: str) -> dict[str, Any]:
        group = {"targets": [address], "labels": {"instance": instance}}
        return job(static_configs=[group])

    plan = planned(
        named("192.0.2.3", "192.0.2.9"), named("sw", "192.0.2.2"), named("sw", "192.0.2.3")
    )
    addresses = {name: device.address for name, device in plan.devices.items()}
    assert addresses == {"192.0.2.3": "192.0.2.9", "sw": "192.0.2.2", "192.0.2.3-2": "192.0.2.3"}
