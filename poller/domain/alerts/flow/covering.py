"""One outage, one page: what holds an alert back, what covers it, and whom to poll to find out.

Nothing here stops a device from being polled, nor an alert from firing and ending.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow.known_device import KnownDevice, chain
from poller.domain.alerts.flow.outage_scene import Reached, Scene, device_key, site_key
from poller.domain.alerts.flow.root_cause import RootCauses
from poller.domain.alerts.rule import (
    Condition,
    DeviceUnreachable,
    NoData,
    PlatformTrouble,
    SiteDark,
    TargetFailing,
)

#: The longest wait for a poll of the parent. A parent that fails, but not for certain, has longer.
PARENT_MS = 60_000
FAILING_PARENT_MS = 120_000
#: The wait for a site of which many polls fail: it may turn out to be dark.
SUSPECT_MS = 30_000
#: The time that a network needs after its parent or its site is back. Polls before say nothing.
SETTLE_MS = 30_000
#: The longest wait for such a poll.
RETURN_MS = 180_000
#: The time in which the canaries of a dark site answer.
CANARY_MS = 15_000
PAUSED = "paused"
_NOBODY = Reached()


@dataclass(frozen=True, slots=True)
class Cover:
    """The decision for one alert. `by` is its `suppressed_by`; `ask` are devices to poll now."""

    by: str = ""
    held_until_ms: int = 0
    ask: tuple[int, ...] = ()


class Covering:
    """Decides on the alerts of one scene."""

    def __init__(self, scene: Scene, now_ms: int) -> None:
        self._scene = scene
        self._now_ms = now_ms
        self._roots = RootCauses(scene)

    def decide(self, alert: Alert, condition: Condition, *, holds: bool) -> Cover:
        """Return what covers an alert now. Nothing is uncovered of which it is not known whether
        the condition still holds: the next poll may show its end.
        """
        cover = self._decide(alert, condition)
        if alert.suppressed_by and not cover.by and not holds:
            return Cover(alert.suppressed_by, cover.held_until_ms, cover.ask)
        return cover

    def _decide(self, alert: Alert, condition: Condition) -> Cover:
        if isinstance(condition, PlatformTrouble):
            return Cover(self._maintenance(alert))
        if self._is_paused(alert):
            return Cover(PAUSED)
        root = self.root(alert, condition)
        if root:
            return Cover(root)
        held = self._wait_for_return(alert, condition) or self._wait_for_parent(alert, condition)
        by = self._maintenance(alert)
        if held is None:
            return Cover(by)
        return Cover(by or alert.suppressed_by, held.held_until_ms, held.ask)

    def root(self, alert: Alert, condition: Condition) -> str:
        """Return the outage that an alert is a part of; "" for none. No alert explains itself."""
        found = self._root(alert, condition)
        own = site_key(alert.subject.site) if isinstance(condition, SiteDark) else ""
        return "" if found in (own, f"alert:{alert.id}") else found

    def _root(self, alert: Alert, condition: Condition) -> str:
        subject = alert.subject
        if isinstance(condition, SiteDark):
            return self._roots.above_site(subject.site)
        if subject.device_id is None:
            return ""
        if isinstance(condition, DeviceUnreachable):
            return self._roots.above_device(subject.device_id)
        cause = self._roots.of_device(subject.device_id)
        if cause or not isinstance(condition, NoData):
            return cause
        failing = self._scene.failing.get(subject.target_id or 0)
        return f"alert:{failing.id}" if failing else ""

    def to_know(self, alert: Alert, condition: Condition) -> set[int]:
        """Return the devices whose last polls are needed to decide on an alert."""
        if self.root(alert, condition):
            return set()
        if isinstance(condition, SiteDark):
            return set(self._scene.site_parents.get(alert.subject.site, ()))
        device = self._device(alert)
        if device is None:
            return set()
        wanted = {device.id} if self._back_ms(alert, condition) else set()
        if isinstance(condition, DeviceUnreachable) and device.parent_id is not None:
            wanted.add(device.parent_id)
        return wanted

    def _is_paused(self, alert: Alert) -> bool:
        device = self._device(alert)
        if device is None:
            return False
        if alert.subject.target_id is not None:
            return alert.subject.target_id not in device.polled_ids
        return not device.polled_ids

    def _maintenance(self, alert: Alert) -> str:
        number = self._scene.maintenances.get(alert.subject.identity(alert.rule))
        return f"maintenance:{number}" if number else ""

    def _wait_for_return(self, alert: Alert, condition: Condition) -> Cover | None:
        """Wait for a poll after the cause of an outage is back: only such a poll says whether the
        device, or the site, is well.
        """
        back_ms = self._back_ms(alert, condition)
        polled_ms = self._polled_ms(alert, condition)
        settled_ms = back_ms + SETTLE_MS
        until_ms = back_ms + RETURN_MS
        if not back_ms or polled_ms >= settled_ms or self._now_ms >= until_ms:
            return None
        wants_poll = polled_ms < back_ms or self._now_ms >= settled_ms
        device = self._device(alert)
        return Cover("", until_ms, (device.id,) if device and wants_poll else ())

    def _polled_ms(self, alert: Alert, condition: Condition) -> int:
        """When a subject was last polled; a site when its canaries were and had time to answer."""
        if isinstance(condition, SiteDark):
            had_time = self._now_ms >= alert.seen_ms + CANARY_MS
            return alert.seen_ms if had_time else 0
        return self._scene.reached.get(alert.subject.device_id or 0, _NOBODY).polled_ms

    def _back_ms(self, alert: Alert, condition: Condition) -> int:
        """When the last cause above a subject came back, or a device itself for its targets; 0 for
        long ago.
        """
        back = self._scene.back
        last_ms = max((back.get(key, 0) for key in self._causes_of(alert, condition)), default=0)
        return last_ms if self._now_ms - last_ms < RETURN_MS else 0

    def _causes_of(self, alert: Alert, condition: Condition) -> Iterator[str]:
        if isinstance(condition, SiteDark):
            for parent_id in self._scene.site_parents.get(alert.subject.site, ()):
                yield device_key(parent_id)
        device = self._device(alert)
        if device is None:
            return
        if not isinstance(condition, DeviceUnreachable):
            yield device_key(device.id)
        yield site_key(device.site)
        for parent_id in chain(device.id, self._scene.devices):
            yield device_key(parent_id)
            parent = self._scene.devices.get(parent_id)
            if parent is not None:
                yield site_key(parent.site)

    def _wait_for_parent(self, alert: Alert, condition: Condition) -> Cover | None:
        """Wait until it is known whether the parent is down too, or the site is dark."""
        if alert.state is not AlertState.PENDING:
            return None  # people were told, or it was covered
        if isinstance(condition, SiteDark):
            return self._first_wait(alert, self._outside_parents(alert.subject.site))
        if not isinstance(condition, DeviceUnreachable):
            return None
        device = self._device(alert)
        if device is None:
            return None
        parents = () if device.parent_id is None else (device.parent_id,)
        return self._first_wait(alert, parents) or self._wait_for_site(alert, device)

    def _outside_parents(self, site: str) -> tuple[int, ...]:
        found = []
        for parent_id in self._scene.site_parents.get(site, ()):
            parent = self._scene.devices.get(parent_id)
            if parent is not None and parent.site != site:
                found.append(parent_id)
        return tuple(found)

    def _first_wait(self, alert: Alert, parents: tuple[int, ...]) -> Cover | None:
        for parent_id in parents:
            parent = self._scene.devices.get(parent_id)
            if parent is None or not parent.polled_ids:
                continue
            reached = self._scene.reached.get(parent_id, _NOBODY)
            if reached.answered_ms > alert.seen_ms:
                continue  # the parent is well
            until_ms = alert.seen_ms + (FAILING_PARENT_MS if reached.is_silent else PARENT_MS)
            if self._now_ms < until_ms:
                return Cover("", until_ms, (parent_id,))
        return None

    def _wait_for_site(self, alert: Alert, device: KnownDevice) -> Cover | None:
        until_ms = alert.seen_ms + SUSPECT_MS
        if device.site in self._scene.suspects and self._now_ms < until_ms:
            return Cover("", until_ms)
        return None

    def _device(self, alert: Alert) -> KnownDevice | None:
        if alert.subject.device_id is None:
            return None
        return self._scene.devices.get(alert.subject.device_id)


def explains(condition: Condition) -> bool:
    """Whether an alert of this condition explains others."""
    return isinstance(condition, DeviceUnreachable | SiteDark)


def names_failure(condition: Condition) -> bool:
    """Whether an alert of this condition names the failure of a target."""
    return isinstance(condition, TargetFailing)
