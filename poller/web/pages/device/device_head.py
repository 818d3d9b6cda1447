"""The head of every page of a device: its name, its address, and links to its other pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from poller.db.inventory.devices import Device
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting

#: The pages of a device: the last part of the address, and the title.
_TABS = (
    ("", "Why"),
    ("interfaces", "Interfaces"),
    ("gauges", "Gauges"),
    ("metrics", "All metrics"),
    ("events", "Events"),
    ("config", "Configuration"),
)


@dataclass(frozen=True, slots=True)
class Tab:
    """A link to a page of the device, below the root of the site."""

    title: str
    path: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class DeviceHead:
    """A device on any of its pages."""

    name: str
    address: str
    site: str
    enabled: bool
    as_of: str
    tab: str

    @property
    def base(self) -> str:
        """The address of the device below the root of the site."""
        return path_of(self.name)

    @property
    def alerts(self) -> str:
        """The list of all alerts of the device, also those that are over."""
        return f"alerts?{urlencode({'state': 'all', 'device': self.name, 'covered': 'yes'})}"

    @property
    def maintenance(self) -> str:
        """The form of a maintenance of the device."""
        where = target_filter.text(TargetFilter(names=(self.name,)))
        return f"maintenance?{urlencode({'where': where})}#add"

    @property
    def tabs(self) -> Sequence[Tab]:
        return [Tab(title, self.path(key), key == self.tab) for key, title in _TABS]

    def path(self, page: str = "", **parameters: object) -> str:
        """The address of a page of the device; empty parameters are left out."""
        given = {key: str(value) for key, value in parameters.items() if value not in ("", None)}
        query = f"?{urlencode(given)}" if given else ""
        return (f"{self.base}/{page}" if page else self.base) + query


def path_of(name: str) -> str:
    """Return the address of a device below the root of the site."""
    return f"devices/{quote(name, safe='')}"


def of_device(device: Device, tab: str, now_ms: int) -> DeviceHead:
    """Return the head of a page."""
    return DeviceHead(
        name=device.name,
        address=device.address,
        site=device.site,
        enabled=device.enabled,
        as_of=formatting.instant(now_ms),
        tab=tab,
    )
