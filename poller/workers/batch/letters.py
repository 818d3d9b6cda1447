"""Which targets of a round became dead letters, stayed ones, or are none any more? For SQL, and for people to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poller.domain.failures.dead_letter import Letter
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.event_kinds import Event, Kind
from poller.workers.batch.target_cache import Known
from poller.workers.batch.verdict import Verdict


def changes(verdicts: Sequence[Verdict]) -> list[Letter]:
    """One letter for each target that is parked, and for each that was; most rounds have none."""
    return [_letter(verdict) for verdict in verdicts if verdict.reason or verdict.before.parked_ms]


def news(verdicts: Sequence[Verdict], known: Mapping[int, Known]) -> list[Event]:
    """An event for each that was made or cleared; a slow retry that failed is no news."""
    return [
        _event(verdict, known[verdict.move.id].target)
        for verdict in verdicts
        if bool(verdict.before.parked_ms) != bool(verdict.reason)
    ]


def _letter(verdict: Verdict) -> Letter:
    after = verdict.after
    if not verdict.reason:
        return Letter(verdict.move.id, after.finished_ms)
    return Letter(
        target_id=verdict.move.id,
        last_ms=after.finished_ms,
        reason=verdict.reason,
        error_code=after.code,
        message=after.message,
        first_ms=after.since_ms,
        parked_ms=after.parked_ms,
        next_ms=verdict.move.next_ms,
        attempts=after.failures,
    )


def _event(verdict: Verdict, target: PollTarget) -> Event:
    before, after, whose = verdict.before, verdict.after, f"{target.device}/{target.name}"
    if verdict.reason:
        kind, message = (
            Kind.DEAD_LETTER_MADE,
            f"{whose} needs a person ({verdict.reason}): {after.message}",
        )
        data: dict[str, Any] = {
            "reason": verdict.reason.value,
            "code": after.code,
            "attempts": after.failures,
        }
    else:
        kind, message = Kind.DEAD_LETTER_CLEARED, f"{whose} answers again and needs nobody any more"
        parked_s = max(0, after.finished_ms - before.parked_ms) // 1000
        data = {
            "reason": str(before.reason or ""),
            "attempts": before.failures,
            "parked_seconds": parked_s,
        }
    return Event(
        after.finished_ms,
        kind,
        message,
        target.device,
        target.name,
        target.id,
        target.device_id,
        data,
    )
