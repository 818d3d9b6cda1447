"""The removal of a device or a target: what is lost, what stays, and the command that does it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.presentation import formatting

#: Names of targets that are listed.
_NAMED = 20
_HISTORY = (
    "What was measured and the attempts stay in the database until their retention ends, but no"
    " page shows them any more."
)
_AGAIN = "One that is added under the same name later begins without a history."
_AUDIT = "The audit log keeps its fields and who removed it."


@dataclass(frozen=True, slots=True)
class RemovalView:
    """What is removed. `lost` and `kept` are sentences."""

    device: str
    subject: str  # `device sw1`, `target sw1/snmp`
    version: str
    lost: Sequence[str]
    kept: Sequence[str]
    instead: str  # a milder action
    command: str


def of_device(device: Device, targets: Sequence[Target]) -> RemovalView:
    """Return the removal of a device with its targets."""
    lost = ["Its address, site, tags and requirements."]
    if targets:
        names = ", ".join(each.name for each in targets[:_NAMED])
        more = len(targets) - _NAMED
        names += f" and {formatting.exact(more)} more" if more > 0 else ""
        counted = formatting.counted(len(targets), "target")
        lost.append(f"{counted} with schedule and options: {names}.")
    lost.append("Devices that are reached through it have no parent then.")
    return RemovalView(
        device.name,
        f"device {device.name}",
        device.tag,
        lost,
        [_HISTORY, _AGAIN, _AUDIT],
        "Disable the device to stop polling and keep all of it.",
        f"poller device rm {shlex.quote(device.name)}",
    )


def of_target(target: Target) -> RemovalView:
    """Return the removal of one target."""
    return RemovalView(
        target.device,
        f"target {target.full_name}",
        target.tag,
        [f"Its schedule, its options and its place in the queue of collector {target.collector}."],
        [_HISTORY, _AGAIN, _AUDIT],
        "Disable the target to stop polling and keep all of it.",
        f"poller target rm {shlex.quote(target.full_name)}",
    )
