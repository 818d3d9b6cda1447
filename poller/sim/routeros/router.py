"""A device as the RouterOS API sees it; its sessions share it."""

from __future__ import annotations

import collections

from poller.sim import device_traffic, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.routeros.menu_edits import Changes
from poller.sim.routeros.menu_tables import Scene


class Router:
    """`commands` counts what was asked, by command; only commands that exist have a name of their own."""

    __slots__ = ("changes", "chassis", "commands", "device", "life", "logins", "mac", "said")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.chassis = hardware.chassis(device.model, device.variant, device.software)
        _ = self.chassis.version  # a wrong one is refused now, not at the first command
        self.life = device_traffic.life(device.salt, device.fault is Fault.REBOOT)
        self.mac = hardware.first_mac(device.salt)
        self.changes = Changes()
        self.commands: collections.Counter[str] = collections.Counter()
        self.logins = 0
        self.said = 0  # sentences

    def scene(self, now: float) -> Scene:
        return Scene(self.device.name, self.mac, self.chassis, self.life.waves(now), now)

    def reboot(self, now: float) -> None:
        """Uptime and counters start over; what was added by clients is configuration and stays."""
        self.life = self.life._replace(installed_at=now)
