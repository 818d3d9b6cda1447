"""Facts of devices that alert, as last read from SQL: kept until the inventory changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy.engine import Engine

from poller.db.alerts import alert_facts
from poller.db.inventory import inventory_feed
from poller.domain.alerts.flow.known_device import KnownDevice, common_parents
from poller.domain.failures.site_outage import Limits

#: Devices that are kept in memory at most; beyond that all are read again.
MOST_KEPT = 50_000


class DeviceFacts:
    """Reads what is not known yet. Every method raises StoreError."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self._engine = engine
        self._limits = limits
        self._version = -1
        self._devices: dict[int, KnownDevice] = {}
        self._device_of: dict[int, int] = {}
        self._of_site: dict[str, list[int]] = {}
        self._site_parents: dict[str, list[int]] = {}

    def refresh(self) -> None:
        """Forget all if the inventory was changed."""
        version = inventory_feed.version(self._engine)
        if version != self._version or len(self._devices) > MOST_KEPT:
            self._version = version
            self._devices.clear()
            self._device_of.clear()
            self._of_site.clear()
            self._site_parents.clear()

    @property
    def all(self) -> Mapping[int, KnownDevice]:
        """The devices that were asked for, with their parents."""
        return self._devices

    def read(self, device_ids: Collection[int]) -> Mapping[int, KnownDevice]:
        """Return all known devices, these and their parents among them; removed ones are not."""
        missing = [each for each in device_ids if each not in self._devices]
        if missing:
            self._devices |= alert_facts.known(self._engine, missing)
        return self._devices

    def devices_of(self, target_ids: Collection[int]) -> dict[int, int]:
        """Return the device of each target that exists."""
        missing = [each for each in target_ids if each not in self._device_of]
        if missing:
            self._device_of |= alert_facts.devices_of(self._engine, missing)
        return {each: self._device_of[each] for each in target_ids if each in self._device_of}

    def of_site(self, site: str) -> list[int]:
        """Return the enabled devices of a site."""
        if site not in self._of_site:
            self._of_site[site] = alert_facts.of_site(self._engine, site)
        return self._of_site[site]

    def site_parents(self, site: str) -> list[int]:
        """Return the devices through which most of a site is reached, the nearest first."""
        if site not in self._site_parents:
            device_ids = self.of_site(site)
            parents = alert_facts.parents(self._engine, device_ids)
            found = common_parents(device_ids, parents, self._limits.share)
            self.read(found)
            self._site_parents[site] = found
        return self._site_parents[site]

    def polled_targets(self, device_ids: Iterable[int]) -> list[int]:
        """Return the polled targets of known devices."""
        found: list[int] = []
        for device_id in device_ids:
            device = self._devices.get(device_id)
            if device is not None:
                found += device.polled_ids
        return found
