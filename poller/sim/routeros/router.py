"""The state of a simulated router, shared by its sessions."""

from __future__ import annotations

import collections

from poller.sim import device_traffic, hardware
from poller.sim.fleet import Fault, SimDevice
from poller.sim.routeros.menu_edits import Changes
from poller.sim.routeros.menu_tables import Scene


class Router:
    """A router. `commands` counts commands by name; unknown commands are counted as `unknown`."""

    __slots__ = ("changes", "chassis", "commands", "device", "life", "logins", "mac", "said")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.chassis = hardware.chassis(device.model, device.variant, device.software)
        _ = self.chassis.version  # a wrong version is refused here, not at the first command
        self.life = device_traffic.life(device.salt, device.fault is Fault.REBOOT)
        self.mac = hardware.first_mac(device.salt)
        self.changes = Changes()
        self.commands: collections.Counter[str] = collections.Counter()
        self.logins = 0
        self.said = 0  # number of sentences

    def scene(self, now: float) -> Scene:
        return Scene(self.device.name, self.mac, self.chassis, self.life.waves(now), now)

    def reboot(self, now: float) -> None:
        """Restart uptime and counters. Rows that clients added are configuration and remain."""
        self.life = self.life._replace(installed_at=now)
