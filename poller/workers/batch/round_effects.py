"""What one round changes beside the board: dead letters in SQL, events, counters, and the last
errors.

Pure functions of verdicts and ledger rows; writing them is the business of `batch_run`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from poller.domain.failures import site_outage
from poller.domain.failures.dead_letter import Letter
from poller.domain.inventory import duration
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import histogram
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.run import Run
from poller.state.cluster import site_windows
from poller.workers.batch.verdict import Verdict


def dead_letters(verdicts: Sequence[Verdict]) -> list[Letter]:
    """Return one letter for each target that is parked or was parked; most rounds have none."""
    letters = []
    for verdict in verdicts:
        if verdict.reason:
            letters.append(_letter(verdict))
        elif verdict.before.parked_ms:
            letters.append(Letter(verdict.target.id, verdict.after.finished_ms))
    return letters


def _letter(verdict: Verdict) -> Letter:
    after = verdict.after
    return Letter(
        target_id=verdict.target.id,
        last_ms=after.finished_ms,
        reason=verdict.reason,
        error_code=after.code,
        message=after.message,
        first_ms=after.since_ms,
        parked_ms=after.parked_ms,
        next_ms=verdict.move.next_ms,
        attempts=after.failures,
    )


def events(verdicts: Iterable[Verdict]) -> list[Event]:
    """Return an event for each breaker that opened or closed and each dead letter made or
    cleared.
    """
    found: list[Event] = []
    for verdict in verdicts:
        if verdict.opened:
            found.extend(_opened(verdict))
        elif verdict.closed:
            found.extend(_closed(verdict))
        if verdict.reason and not verdict.before.parked_ms:
            found.append(_dead_letter_made(verdict))
        elif verdict.before.parked_ms and not verdict.reason:
            found.append(_dead_letter_cleared(verdict))
    return found


def _opened(verdict: Verdict) -> Iterator[Event]:
    target, after = verdict.target, verdict.after
    if after.code in site_outage.DARK:
        yield _event(Kind.DEVICE_WENT_DOWN, verdict, f"{target.device} is down: {after.message}")

    is_waiting = after.breaker.probe_ms > after.finished_ms
    next_step = "is left alone" if is_waiting else "is asked again at its next slot"
    failures = _count_failures(after.failures)
    message = f"{_name(target)} {next_step} after {failures} in a row: {after.code}"
    data = {"code": after.code, "failures": after.failures}
    yield _event(Kind.BREAKER_OPENED, verdict, message, data)


def _closed(verdict: Verdict) -> Iterator[Event]:
    target, before = verdict.target, verdict.before
    open_ms = verdict.after.finished_ms - before.breaker.since_ms
    open_for = duration.rounded_text(max(0, open_ms))
    data = {"failures": before.failures}
    if before.code in site_outage.DARK:
        failures = _count_failures(before.failures)
        message = f"{target.device} answers again after {open_for} and {failures}"
        yield _event(Kind.DEVICE_RECOVERED, verdict, message, data)

    message = f"{_name(target)} is polled as usual again after {open_for}"
    yield _event(Kind.BREAKER_CLOSED, verdict, message, data)


def _dead_letter_made(verdict: Verdict) -> Event:
    after, reason = verdict.after, verdict.reason
    message = f"{_name(verdict.target)} needs a person ({reason}): {after.message}"
    data = {"reason": str(reason or ""), "code": after.code, "attempts": after.failures}
    return _event(Kind.DEAD_LETTER_MADE, verdict, message, data)


def _dead_letter_cleared(verdict: Verdict) -> Event:
    before = verdict.before
    message = f"{_name(verdict.target)} answers again and needs no person any more"
    parked_ms = max(0, verdict.after.finished_ms - before.parked_ms)
    data = {
        "reason": str(before.reason or ""),
        "attempts": before.failures,
        "parked_seconds": parked_ms // 1000,
    }
    return _event(Kind.DEAD_LETTER_CLEARED, verdict, message, data)


def _event(kind: Kind, verdict: Verdict, message: str, data: dict[str, Any] | None = None) -> Event:
    target = verdict.target
    return Event(
        at_ms=verdict.after.finished_ms,
        kind=kind,
        message=message,
        device=target.device,
        target=target.name,
        target_id=target.id,
        device_id=target.device_id,
        data=data or {},
    )


def _name(target: PollTarget) -> str:
    return f"{target.device}/{target.name}"


def _count_failures(number: int) -> str:
    return "1 failure" if number == 1 else f"{number} failures"


def counters(
    queue: str, runs: Sequence[Run], verdicts: Sequence[Verdict], retries: int
) -> dict[str, int]:
    """Return what the round adds to the platform's counters; state/cluster/overview_reader.py reads
    them.
    """
    finished = {verdict.target.id for verdict in verdicts}
    counts: Counter[str] = Counter()
    latest_ms = -1
    for run in runs:
        counts["samples"] += run.samples
        if run.target_id in finished:
            counts[run.outcome.value] += 1
        if run.attempt == 1:
            late_ms = max(0, run.started_ms - run.plan_ms)
            latest_ms = max(latest_ms, late_ms)
            counts[f"l{histogram.bucket(late_ms)}"] += 1
    for verdict in verdicts:
        counts["missed_slots"] += verdict.after.missed - verdict.before.missed
        counts["breaker_skips"] += verdict.skipped
        counts["breaker_opened"] += verdict.opened
        counts["breaker_closed"] += verdict.closed
        _count_site(counts, verdict)
    counts["polls"] = len(verdicts)
    counts[f"q:{queue}"] = len(verdicts)
    counts["retries"] = retries

    changed = {name: number for name, number in counts.items() if number}
    if latest_ms >= 0:
        changed["lmax"] = latest_ms
    return changed


def _count_site(counts: Counter[str], verdict: Verdict) -> None:
    """Count the polls of each site, and those that no device answered."""
    site = verdict.target.site
    if site:
        polls_field, dark_field = site_windows.counter_names(site)
        counts[polls_field] += 1
        is_dark = verdict.after.code in site_outage.DARK and verdict.after.failures > 0
        counts[dark_field] += is_dark


def error_texts(runs: Iterable[Run], targets: dict[int, PollTarget]) -> list[str]:
    """Return the entries for the list of last errors."""
    texts = []
    for run in runs:
        if run.error_code:
            target = targets[run.target_id]
            entry = [
                run.finished_ms,
                run.target_id,
                target.device,
                target.name,
                run.error_code,
                run.message,
            ]
            texts.append(json.dumps(entry, ensure_ascii=False))
    return texts
