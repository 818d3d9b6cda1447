"""Drains of workers: they finish what they have and take nothing new, until resumed or the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors, event_publisher
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import did_you_mean, naming
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import Overview, Worker
from poller.domain.scheduling import worker_drain
from poller.domain.scheduling.worker_drain import Drain, QueueCover
from poller.presentation import formatting, running_workers
from poller.service import action_audit
from poller.state.cluster import overview_reader
from poller.state.requests import worker_drains

if TYPE_CHECKING:
    from poller.bootstrap import Services

SHORTEST_S = 60
LONGEST_S = 30 * 86_400
USUAL_S = 4 * 3_600
LONGEST_REASON = 200
#: Workers of one request.
MOST_WORKERS = 1_000


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The workers to be drained, and who serves their queues meanwhile."""

    names: Sequence[str]
    workers: Sequence[Worker]
    covers: Sequence[QueueCover]
    others: int  # running workers that are not to be drained

    @property
    def left(self) -> list[str]:
        """The queues that no other worker serves."""
        return [each.queue for each in self.covers if not each.others]

    @property
    def unfinished(self) -> int:
        """Batches and jobs that these workers have."""
        return sum(worker.unfinished for worker in self.workers)


@dataclass(frozen=True, slots=True)
class Drained:
    """Drains that were asked for. Workers follow within seconds."""

    plan: DrainPlan
    drain: Drain
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The workers whose drain was ended; the others had none."""

    names: Sequence[str]
    others: int
    note: str = ""


def plan(services: Services, names: Sequence[str]) -> DrainPlan:
    """Return what a drain of these workers means. Raises NotFound, InvalidInput, StoreError."""
    view = overview_reader.read(services.redis, services.keys)
    return of_overview(view, names)


def of_overview(view: Overview, names: Sequence[str]) -> DrainPlan:
    """Return what a drain of these workers means. Raises NotFound, InvalidInput."""
    wanted = list(dict.fromkeys(names))
    if not 0 < len(wanted) <= MOST_WORKERS:
        raise errors.InvalidInput(
            f"names: give 1 to {MOST_WORKERS:,} workers", hint="poller workers", field="names"
        )
    running = running_workers.running(view)
    known = {worker.name for worker in running}
    for name in wanted:
        did_you_mean.refuse_unknown("running worker", name, known, "poller workers")
    chosen = [worker for worker in running if worker.name in wanted]
    covers = worker_drain.cover(wanted, running)
    others = sum(worker.name not in wanted and worker.drain is None for worker in running)
    return DrainPlan(wanted, chosen, covers, others)


def drain(
    services: Services,
    actor: Actor,
    names: Sequence[str],
    length_s: float = USUAL_S,
    reason: str = "",
    is_forced: bool = False,
) -> Drained:
    """Have workers finish what they have and take nothing new.

    Raises NotFound, InvalidInput, and NotConfirmed if a queue would have no worker, unless forced.
    """
    checked = _checked_reason(reason)
    _check_length(length_s)
    planned = plan(services, names)
    if planned.left and not is_forced:
        raise errors.NotConfirmed(
            f"no other worker serves {_listed(planned.left)}; nothing was done",
            "nothing would be polled or run there meanwhile",
            "start another worker first, or force it",
        )
    now_ms = services.board.now_ms()
    asked = Drain(now_ms, now_ms + round(length_s * 1000), actor.name, checked)
    worker_drains.store(services.redis, services.keys, planned.names, asked)
    events = [_drained_event(name, asked) for name in planned.names]
    event_publisher.publish(services, events)

    until = formatting.instant(asked.until_ms)
    after = {"until": until, "reason": checked, "left": planned.left}
    note = _record(services, actor, "worker.drain", planned.names, after)
    return Drained(planned, asked, note)


def resume(services: Services, actor: Actor, names: Sequence[str]) -> Resumed:
    """End the drains of workers: they take work again. Raises NotFound if none of them has one."""
    now_ms = services.board.now_ms()
    found = worker_drains.listing(services.redis, services.keys, now_ms)
    wanted = list(dict.fromkeys(names))
    ended = [name for name in wanted if name in found]
    if not ended:
        raise errors.NotFound(f"no drain holds for {_listed(wanted)}", hint="poller workers")
    worker_drains.end(services.redis, services.keys, ended)
    events = [_resumed_event(name, actor.name, now_ms) for name in ended]
    event_publisher.publish(services, events)
    note = _record(services, actor, "worker.resume", ended, {})
    return Resumed(ended, len(wanted) - len(ended), note)


def unfinished(services: Services, names: Sequence[str]) -> list[Worker]:
    """Return those of these workers that have not left their queues, or still have work.

    A worker that stopped meanwhile is not among them. Raises StoreError.
    """
    view = overview_reader.read(services.redis, services.keys)
    running = running_workers.running(view)
    return [each for each in running if each.name in names and not worker_drain.is_drained(each)]


def _check_length(length_s: float) -> None:
    if not (math.isfinite(length_s) and SHORTEST_S <= length_s <= LONGEST_S):
        raise errors.InvalidInput(
            "for: a drain lasts 1m to 30d", hint="such as 4h; it can be ended before", field="for_s"
        )


def _checked_reason(text: str) -> str:
    if len(text) > LONGEST_REASON or text != naming.printable(text):
        raise errors.InvalidInput(
            f"reason: it is one line of {LONGEST_REASON} characters at most", field="reason"
        )
    return text.strip()


def _record(
    services: Services, actor: Actor, action: str, names: Sequence[str], after: Mapping[str, Any]
) -> str:
    if len(names) == 1:
        return action_audit.record(services, actor, AuditEntry(action, names[0], after=after))
    entry = action_audit.bulk_entry(action, f"{len(names):,} workers", names, **after)
    return action_audit.record(services, actor, entry)


def _listed(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`"""
    text = ", ".join(names[:3])
    more = len(names) - 3
    return f"{text} and {more:,} more" if more > 0 else text


def _drained_event(name: str, asked: Drain) -> Event:
    until = formatting.instant(asked.until_ms)
    why = f": {asked.reason}" if asked.reason else ""
    text = f"{name} takes nothing new until {until}: drained by {asked.by}{why}"
    data = {"worker": name, "by": asked.by, "until_ms": asked.until_ms}
    return Event(asked.since_ms, Kind.WORKER_DRAINED, text, data=data)


def _resumed_event(name: str, by: str, now_ms: int) -> Event:
    text = f"{name} takes work again: its drain was ended by {by}"
    return Event(now_ms, Kind.WORKER_RESUMED, text, data={"worker": name, "by": by})
