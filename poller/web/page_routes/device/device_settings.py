"""Reads what the configuration page and the form of a target show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poller import errors
from poller.bootstrap import Services
from poller.collectors import descriptions
from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.service import site_actions
from poller.service.inventory import collector_checks, device_actions, target_actions
from poller.web.api.contract.needs import Call
from poller.web.pages.device import effective_config, target_form
from poller.web.pages.device.effective_config import CollectorFacts, ConfigRow, TargetConfig
from poller.web.pages.device.target_form import TargetForm

#: Targets of a page with all values of each.
WHOLE = 4


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """A device with the values of its targets."""

    device: Device
    rows: Sequence[ConfigRow]
    targets: Sequence[TargetConfig]


def of_device(call: Call, name: str, wanted: str = "") -> DeviceConfig:
    """Return the configuration of a device, or with one of its targets only.

    Of many targets the defaults are left out: they fill pages. Raises NotFound, StoreError.
    """
    device, targets = device_actions.show(call.services, call.actor, name)
    if wanted:
        targets = [target_actions.show(call.services, call.actor, name, wanted)]
    required = _required_by_site(call, device)
    facts = {each.collector: _facts(call.services, each.collector) for each in targets}
    found = [
        effective_config.of_target(each, device, facts[each.collector], required)
        for each in targets
    ]
    if len(found) > WHOLE:
        found = [each.without_defaults() for each in found]
    return DeviceConfig(device, effective_config.of_device(device), found)


def form_of(call: Call, device: str, target: str) -> tuple[Target, TargetForm]:
    """Return the form of a target. Raises NotFound, StoreError."""
    stored = target_actions.show(call.services, call.actor, device, target)
    return stored, target_form.build(stored, _facts(call.services, stored.collector).options)


def _facts(services: Services, collector: str) -> CollectorFacts:
    """The declarations of a collector; nothing of one that is not installed here."""
    try:
        found = services.registry.get(collector)
        defaults = collector_checks.defaults_of(services, collector)
    except errors.ConfigError:
        return CollectorFacts()
    return CollectorFacts(list(descriptions.options(found)), defaults)


def _required_by_site(call: Call, device: Device) -> Mapping[str, str]:
    if not device.site:
        return {}
    try:
        return site_actions.show(call.services, call.actor, device.site).requires
    except errors.NotFound:
        return {}
