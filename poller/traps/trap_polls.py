"""Have devices polled because of what they announced, at the pace the domain allows, and tell everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from poller import errors, event_publisher
from poller.bootstrap import Services
from poller.db.inventory.trap_senders import Sender
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling.trap_pace import TrapPace
from poller.traps.trap_message import Notice

#: Longest list of interfaces in one event.
_NAMED = 5


class Asker:
    """Keeps who waits for a poll, and why. All of it on one loop; the stores are asked from threads."""

    def __init__(self, services: Services, pace: TrapPace) -> None:
        self._services = services
        self._pace = pace
        self._senders: dict[int, Sender] = {}
        self._why: dict[int, Counter[Notice]] = {}

    def note(self, senders: Iterable[Sender], notice: Notice, now_ms: int) -> bool:
        """A notification was accepted. False when each of its polls waits already."""
        fresh = False
        for sender in senders:
            self._senders[sender.device_id] = sender
            self._why.setdefault(sender.device_id, Counter())[notice] += 1
            fresh |= self._pace.request(sender.device_id, now_ms)
        return fresh

    @property
    def waiting(self) -> int:
        return self._pace.waiting

    async def ask(self, now_ms: int) -> int:
        """Demand the polls that are due; how many devices. Raises StoreError, and then they wait as before."""
        due = self._pace.due(now_ms)
        if not due:
            return 0
        ids = [target for device in due for target in self._senders[device].targets]
        try:
            _, places = await asyncio.to_thread(self._services.board.demand, ids)
        except errors.StoreError:
            for device in due:
                self._pace.retry(device, now_ms)
            raise
        told = [self._event(device, places) for device in due]
        await asyncio.to_thread(event_publisher.emit, self._services, told)
        return len(due)

    def _event(self, device: int, places: dict[int, str]) -> Event:
        sender, why = self._senders.pop(device), self._why.pop(device, Counter())
        polled = sum(places[target] != "gone" for target in sender.targets)
        return Event(
            at_ms=event_publisher.now_ms(),
            kind=Kind.TRAP_RECEIVED,
            message=f"{sender.device} sent {_told(why)}; polling {polled} of its {len(sender.targets)} targets now",
            device=sender.device,
            device_id=sender.device_id,
            data={"traps": dict(_by_name(why)), "if_index": _interfaces(why), "targets": polled},
        )


def _told(why: Counter[Notice]) -> str:
    words = [
        name if number == 1 else f"{number} x {name}" for name, number in _by_name(why).items()
    ]
    places = _interfaces(why)
    return ", ".join(words) + (f" (interface {', '.join(map(str, places))})" if places else "")


def _by_name(why: Counter[Notice]) -> Counter[str]:
    names: Counter[str] = Counter()
    for notice, number in why.items():
        names[notice.name] += number
    return names


def _interfaces(why: Counter[Notice]) -> list[int]:
    return sorted({notice.if_index for notice in why if notice.if_index is not None})[:_NAMED]
