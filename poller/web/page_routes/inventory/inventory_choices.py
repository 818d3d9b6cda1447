"""The names that the forms of devices and targets offer to their reader."""

from __future__ import annotations

from poller.collectors import api
from poller.service import site_actions
from poller.service.inventory import credential_actions
from poller.web.api.contract.needs import Call
from poller.web.pages.inventory.device_form import Choices
from poller.web.pages.inventory.new_device_commands import Takes


def names(call: Call) -> Choices:
    """Return the credentials and sites that the reader may use. Raises StoreError."""
    sites = site_actions.listing(call.services, call.actor)
    return Choices(credentials(call), [each.name for each in sites if each.name])


def takes(call: Call) -> dict[str, Takes]:
    """Return what each collector takes, with the credentials that the reader may use."""
    stored = credential_actions.listing(call.services, call.actor)
    found = {}
    for name, collector in call.services.registry.collectors.items():
        kinds = {model.kind for model in collector.credentials}
        fitting = {each.name for each in stored if each.kind in kinds}
        found[name] = Takes(fitting, api.port_option(collector.Options))
    return found


def credentials(call: Call) -> list[str]:
    """Return the names of the credentials that the reader may use. Raises StoreError."""
    return [each.name for each in credential_actions.listing(call.services, call.actor)]
