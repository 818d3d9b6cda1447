"""Which alert explains that a device does not respond: the topmost one.

A device is explained by its dark site, or by a parent that is down or in a dark site. A site is
explained by a device through which most of it is reached. Explanations are followed upwards.
"""

from __future__ import annotations

from poller.domain.alerts.flow.known_device import LONGEST_CHAIN, is_its_own_parent
from poller.domain.alerts.flow.outage_scene import Scene, device_key, is_told, site_key


class RootCauses:
    """Looks upwards from a device or a site. Each question is answered once for a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._known: dict[str, str] = {}

    def above_device(self, device_id: int) -> str:
        """Return what explains that a device does not respond, itself apart, as `suppressed_by`
        shows it; "" for nothing.
        """
        return self._above_device(device_id, 0)

    def above_site(self, site: str) -> str:
        """Return the device that explains that a site is dark; "" for none."""
        return self._above_site(site, 0)

    def of_device(self, device_id: int) -> str:
        """Return the cause of all that goes wrong on a device; "" if it is not known to be down."""
        return self._of_device(device_id, 0)

    def _of_device(self, device_id: int, depth: int) -> str:
        scene = self._scene
        device = scene.devices.get(device_id)
        is_gone = scene.is_down(device_id) or (device is not None and scene.is_dark(device.site))
        if not is_gone or depth > LONGEST_CHAIN:
            return ""
        above = self._above_device(device_id, depth + 1)
        if above:
            return above
        own = scene.causes.get(device_key(device_id))
        return f"alert:{own.id}" if own is not None else ""

    def _above_device(self, device_id: int, depth: int) -> str:
        key = device_key(device_id)
        if key not in self._known:
            # The topmost parent first: each of the others then finds the answer of its parent, so
            # that a long chain has one cause, whichever of its devices is asked about first.
            for each in reversed(self._unknown_chain(device_id)):
                self._known[device_key(each)] = ""  # a circle of parents explains nothing
                self._known[device_key(each)] = self._look_above_device(each, depth)
        return self._known[key]

    def _unknown_chain(self, device_id: int) -> list[int]:
        """Return a device and its parents, as far as no answer is known for them."""
        found: dict[int, None] = {}
        at: int | None = device_id
        while at is not None and at not in found and device_key(at) not in self._known:
            found[at] = None
            device = self._scene.devices.get(at)
            at = device.parent_id if device is not None else None
        return list(found)

    def _look_above_device(self, device_id: int, depth: int) -> str:
        device = self._scene.devices.get(device_id)
        if device is None or depth > LONGEST_CHAIN:
            return ""
        site = device.site
        if self._scene.is_dark(site) and not self._leads(device_id, site):
            cause = self._of_site(site, depth + 1)
            if cause:
                return cause
        if device.parent_id is None or is_its_own_parent(device_id, self._scene.devices):
            return ""
        return self._of_device(device.parent_id, depth + 1)

    def _of_site(self, site: str, depth: int) -> str:
        above = self._above_site(site, depth)
        if above:
            return above
        return site_key(site) if site_key(site) in self._scene.causes else ""

    def _above_site(self, site: str, depth: int) -> str:
        if depth > LONGEST_CHAIN:
            return ""
        for device_id in self._scene.site_parents.get(site, ()):
            device = self._scene.devices.get(device_id)
            is_inside = device is not None and device.site == site
            if is_inside and not self._leads(device_id, site):
                continue
            cause = self._of_device(device_id, depth + 1)
            if cause:
                return cause
        return ""

    def _leads(self, device_id: int, site: str) -> bool:
        """Whether a device explains its own site, and not vice versa: it was told first."""
        is_common = device_id in self._scene.site_parents.get(site, ())
        return is_common and is_told(self._scene.causes.get(device_key(device_id)))
