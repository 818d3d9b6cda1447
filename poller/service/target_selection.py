"""The devices and targets that a filter selects, from SQL and, for states and codes, from Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poller.db.inventory import filter_conditions, lookup, sites
from poller.db.inventory.filter_conditions import SelectedDevice, SelectedTarget
from poller.domain.batched import batched
from poller.domain.inventory.did_you_mean import refuse_unknown
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.selection.state_check import StateCheck

if TYPE_CHECKING:
    from poller.bootstrap import Services

_PAGE = 1_000


def select_targets(services: Services, wanted: TargetFilter) -> list[SelectedTarget]:
    """Return the targets that match, by device and name.

    Raises UnknownName for a site or collector that does not exist, StoreError.
    """
    refuse_unknown_names(services, wanted)
    found = filter_conditions.matching_targets(services.engine, wanted)
    if wanted.needs_status:
        check = StateCheck(services.board, wanted)
        found = [target for page in batched(found, _PAGE) for target in check.matching(page)]
    return found


def select_devices(services: Services, wanted: TargetFilter) -> list[SelectedDevice]:
    """Return the devices that match, by name; one matching target is enough.

    Raises UnknownName for a site or collector that does not exist, StoreError.
    """
    if wanted.selects_targets:
        of_targets = select_targets(services, wanted)
        names = {target.device_id: target.device for target in of_targets}
        return [SelectedDevice(device_id, name) for device_id, name in names.items()]

    refuse_unknown_names(services, wanted)
    return filter_conditions.matching_devices(services.engine, wanted)


def refuse_unknown_names(services: Services, wanted: TargetFilter) -> None:
    """Raise UnknownName for the first site, collector or credential that does not exist."""
    with lookup.unknown_name("where"):
        for name in filter_conditions.unknown_sites(services.engine, wanted.sites):
            names = {"", *(site.name for site in sites.listing(services.engine))}
            refuse_unknown("site", name, names, "poller site list")

        for name in filter_conditions.unused_collectors(services.engine, wanted.collectors):
            in_use = filter_conditions.collectors_in_use(services.engine)
            collectors = {*services.registry.collectors, *in_use}
            refuse_unknown("collector", name, collectors, "poller collectors")

        for name in filter_conditions.unknown_credentials(services.engine, wanted.credentials):
            # No near name: it may be of a site that the reader does not see.
            refuse_unknown("credential", name, (), "poller credential list")
