"""Polls of devices that sent a notification, at the pace of `domain.scheduling.trap_pace`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.db.inventory.trap_senders import Sender
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling.trap_pace import TrapPace
from poller.traps.trap_message import Notification

#: Maximum interfaces that one event names.
_MAX_INTERFACES = 5


class TrapPolls:
    """Devices that wait for a poll, with their notifications. Used on one event loop."""

    def __init__(self, services: Services, pace: TrapPace) -> None:
        self._services = services
        self._pace = pace
        self._senders: dict[int, Sender] = {}
        self._notifications: dict[int, Counter[Notification]] = {}

    def add(self, senders: Iterable[Sender], notification: Notification, now_ms: int) -> bool:
        """Record an accepted notification. False if all its devices already wait for a poll."""
        added = False
        for sender in senders:
            device = sender.device_id
            self._senders[device] = sender
            self._notifications.setdefault(device, Counter())[notification] += 1
            if self._pace.request(device, now_ms):
                added = True
        return added

    @property
    def waiting(self) -> int:
        """Number of devices that wait for a poll."""
        return self._pace.waiting

    async def demand_due(self, now_ms: int) -> int:
        """Demand the polls that are due, and return the number of devices.

        Raises StoreError; the devices then wait as before.
        """
        due = self._pace.due(now_ms)
        if not due:
            return 0

        targets: list[int] = []
        for device in due:
            targets += self._senders[device].targets
        try:
            _, places = await asyncio.to_thread(self._services.board.demand, targets)
        except errors.StoreError:
            for device in due:
                self._pace.retry(device, now_ms)
            raise

        events = [self._event(device, places) for device in due]
        await asyncio.to_thread(event_publisher.emit, self._services, events)
        return len(due)

    def _event(self, device: int, places: dict[int, str]) -> Event:
        """The event for the poll of one device."""
        sender = self._senders.pop(device)
        notifications = self._notifications.pop(device, Counter())
        names = _count_names(notifications)
        interfaces = _interfaces(notifications)
        polled = sum(places[target] != "gone" for target in sender.targets)

        cause = _cause(names, interfaces)
        total = len(sender.targets)
        return Event(
            at_ms=event_publisher.now_ms(),
            kind=Kind.TRAP_RECEIVED,
            message=f"{sender.device} sent {cause}; polling {polled} of its {total} targets now",
            device=sender.device,
            device_id=sender.device_id,
            data={"traps": dict(names), "if_index": interfaces, "targets": polled},
        )


def _cause(names: Counter[str], interfaces: list[int]) -> str:
    """`linkUp, 3 x linkDown (interface 2, 7)`."""
    parts: list[str] = []
    for name, count in names.items():
        parts.append(name if count == 1 else f"{count} x {name}")
    text = ", ".join(parts)
    if not interfaces:
        return text
    return f"{text} (interface {', '.join(map(str, interfaces))})"


def _count_names(notifications: Counter[Notification]) -> Counter[str]:
    """Number of notifications by name."""
    names: Counter[str] = Counter()
    for notification, count in notifications.items():
        names[notification.name] += count
    return names


def _interfaces(notifications: Counter[Notification]) -> list[int]:
    """Indexes of the interfaces that the notifications are about."""
    indexes: set[int] = set()
    for notification in notifications:
        if notification.if_index is not None:
            indexes.add(notification.if_index)
    return sorted(indexes)[:_MAX_INTERFACES]
