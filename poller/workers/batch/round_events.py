"""What of a round's verdicts is news? A device that went down or came back; one event each time, not one per poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from poller.domain.failures import site_outage
from poller.domain.inventory import duration
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.event_kinds import Event, Kind
from poller.workers.batch.target_cache import Known
from poller.workers.batch.verdict import Verdict


def of(verdicts: Iterable[Verdict], known: Mapping[int, Known]) -> list[Event]:
    """A breaker that opens or closes is news; while a whole site is dark its targets' breakers hardly ever do."""
    return [event for verdict in verdicts for event in _of(verdict, known[verdict.move.id].target)]


def _of(verdict: Verdict, target: PollTarget) -> Iterator[Event]:
    if verdict.opened:
        code, failures = verdict.after.code, verdict.after.failures
        if code in site_outage.DARK:
            yield _event(
                Kind.DEVICE_WENT_DOWN,
                verdict,
                target,
                f"{target.device} is down: {verdict.after.message}",
            )
        waits = verdict.after.breaker.probe_ms > verdict.after.finished_ms
        what = "is left alone" if waits else "is asked again at its next slot"
        said = f"{target.device}/{target.name} {what} after {_failures(failures)} in a row: {code}"
        yield _event(Kind.BREAKER_OPENED, verdict, target, said, code=code, failures=failures)
    elif verdict.closed:
        failures, open_ms = (
            verdict.before.failures,
            verdict.after.finished_ms - verdict.before.breaker.since_ms,
        )
        spoken = duration.spoken(max(0, open_ms))
        if verdict.before.code in site_outage.DARK:
            said = f"{target.device} answers again after {spoken} and {_failures(failures)}"
            yield _event(Kind.DEVICE_RECOVERED, verdict, target, said, failures=failures)
        said = f"{target.device}/{target.name} is polled as usual again after {spoken}"
        yield _event(Kind.BREAKER_CLOSED, verdict, target, said, failures=failures)


def _event(kind: Kind, verdict: Verdict, target: PollTarget, message: str, **data: Any) -> Event:
    at_ms = verdict.after.finished_ms
    return Event(
        at_ms, kind, message, target.device, target.name, target.id, target.device_id, data
    )


def _failures(number: int) -> str:
    return "1 failure" if number == 1 else f"{number} failures"
