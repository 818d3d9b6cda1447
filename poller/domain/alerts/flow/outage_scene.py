"""What is known of outages at one instant: who is down, behind what, and since when it is back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow.known_device import KnownDevice


def device_key(device_id: int) -> str:
    """Return the key of a device as the cause of an outage."""
    return f"device:{device_id}"


def site_key(site: str) -> str:
    """Return the key of a site as the cause of an outage, as `suppressed_by` shows it."""
    return f"site:{site}"


@dataclass(frozen=True, slots=True)
class Reached:
    """The last polls of a device by all its targets. 0: none."""

    polled_ms: int = 0  # the end of the last poll
    answered_ms: int = 0  # the end of the last poll that the device answered
    is_silent: bool = False  # a target's last poll found nobody


@dataclass(frozen=True, slots=True)
class Scene:
    """The causes of an outage and their surroundings.

    `causes` has the open alerts that explain others, by key: devices that are down and sites that
    are dark, as far as their conditions are not known to be gone. `back` has the instant since
    which a cause is gone, for the last hour.
    """

    devices: Mapping[int, KnownDevice] = field(default_factory=dict)
    causes: Mapping[str, Alert] = field(default_factory=dict)
    back: Mapping[str, int] = field(default_factory=dict)
    down: Collection[int] = ()  # devices that the board has as down
    dark: Collection[str] = ()  # sites that the board has as dark
    suspects: Collection[str] = ()  # sites of which many polls fail, though they are not dark
    site_parents: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reached: Mapping[int, Reached] = field(default_factory=dict)
    #: Failing targets: target id -> the open alert that names the failure.
    failing: Mapping[int, Alert] = field(default_factory=dict)
    #: Identity of an alert -> id of the maintenance that covers it.
    maintenances: Mapping[str, int] = field(default_factory=dict)

    def is_down(self, device_id: int) -> bool:
        """Whether a device is known to be down, by its alert or by the board."""
        return device_key(device_id) in self.causes or device_id in self.down

    def is_dark(self, site: str) -> bool:
        """Whether a site is known to be dark, by its alert or by the board."""
        return bool(site) and (site_key(site) in self.causes or site in self.dark)


def is_told(alert: Alert | None) -> bool:
    """Whether an alert is one that people are told of."""
    if alert is None:
        return False
    return alert.state is AlertState.FIRING and not alert.suppressed_by
