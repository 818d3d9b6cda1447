"""What one round changes beside the places of its targets: dead letters in SQL, events, reports,
counters, and the last errors.

Pure functions of verdicts and ledger rows; writing them is the business of `batch_run`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from poller.domain.failures import error_codes, site_outage
from poller.domain.failures.dead_letter import Letter
from poller.domain.failures.error_codes import Reach
from poller.domain.inventory import duration
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import histogram, poll_totals, queue_times
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.domain.record.run import Run
from poller.domain.scheduling import queue_routing
from poller.state.board.board_values import Report
from poller.state.cluster import site_windows
from poller.workers.batch.verdict import Verdict

_GOOD_STATES = (State.OK, State.DEGRADED)


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


def reports(verdicts: Iterable[Verdict]) -> list[Report]:
    """Return a report for each target that fails, or did; a healthy round has none.

    Whether the device is down depends on its other targets, which only the board knows.
    """
    found = []
    for verdict in verdicts:
        if not verdict.after.failures:
            if verdict.before.state not in _GOOD_STATES:
                found.append(_good_report(verdict))
        else:
            found.append(_bad_report(verdict))
    return found


def _bad_report(verdict: Verdict) -> Report:
    target, after = verdict.target, verdict.after
    down = _device_down(verdict) if after.reach is Reach.SILENT else None
    # A silent target shows that its device responds if another target of it does.
    up = _device_up(verdict) if after.reach is not Reach.UNTOLD else None
    data = {**_failure(verdict), "address": target.address}
    message = f"{_name(target)} is failing: {after.code}: {after.message}"
    failing = _event(Kind.TARGET_FAILED, verdict, message, data)
    return Report(*_who(target), down, up, failing)


def _good_report(verdict: Verdict) -> Report:
    target, before = verdict.target, verdict.before
    up = _device_up(verdict)
    data = {"code": before.code, "failures": before.failures, "seconds": _seconds_bad(verdict)}
    message = f"{_name(target)} is well again{_length_of(verdict)}"
    recovered = _event(Kind.TARGET_RECOVERED, verdict, message, data)
    return Report(*_who(target), up=up, recovered=recovered)


def _who(target: PollTarget) -> tuple[int, int, str, tuple[int, ...]]:
    return target.id, target.device_id, target.site, target.siblings


def _device_down(verdict: Verdict) -> Event:
    target, after = verdict.target, verdict.after
    data = {
        **_failure(verdict),
        "address": target.address,
        "site": target.site,
        "targets": len(target.siblings) + 1,
    }
    message = f"{target.device} is down, no target of it responds: {after.message}"
    return _event(Kind.DEVICE_WENT_DOWN, verdict, message, data)


def _device_up(verdict: Verdict) -> Event:
    target = verdict.target
    data = {
        "address": target.address,
        "site": target.site,
        "failures": verdict.before.failures,
        "seconds": _seconds_bad(verdict),
    }
    message = f"{target.device} responds again{_length_of(verdict)}"
    return _event(Kind.DEVICE_RECOVERED, verdict, message, data)


def _failure(verdict: Verdict) -> dict[str, Any]:
    after = verdict.after
    category = error_codes.category_of(after.code)
    return {"code": after.code, "category": category, "failures": after.failures}


def _seconds_bad(verdict: Verdict) -> int:
    """How long the target had failed before this poll; 0 if that is not known."""
    before = verdict.before
    if not before.failures:
        return 0
    return max(0, verdict.after.finished_ms - before.since_ms) // 1000


def _length_of(verdict: Verdict) -> str:
    seconds = _seconds_bad(verdict)
    return f" after {duration.rounded_text(seconds * 1000)}" if seconds else ""


def events(verdicts: Iterable[Verdict]) -> list[Event]:
    """Return an event for each breaker that opened or closed and each dead letter made or
    cleared.
    """
    found: list[Event] = []
    for verdict in verdicts:
        if verdict.opened:
            found.append(_opened(verdict))
        elif verdict.closed:
            found.append(_closed(verdict))
        if verdict.reason and not verdict.before.parked_ms:
            found.append(_dead_letter_made(verdict))
        elif verdict.before.parked_ms and not verdict.reason:
            found.append(_dead_letter_cleared(verdict))
    return found


def _opened(verdict: Verdict) -> Event:
    target, after = verdict.target, verdict.after
    failures = _count_failures(after.failures)
    message = f"{_name(target)} is left alone after {failures} in a row: {after.code}"
    data = {
        "code": after.code,
        "failures": after.failures,
        "address": target.address,
        "probe_ms": verdict.move.next_ms,
    }
    return _event(Kind.BREAKER_OPENED, verdict, message, data)


def _closed(verdict: Verdict) -> Event:
    target, before = verdict.target, verdict.before
    open_ms = verdict.after.finished_ms - before.breaker.since_ms
    open_for = duration.rounded_text(max(0, open_ms))
    message = f"{_name(target)} is polled as usual again after {open_for}"
    return _event(Kind.BREAKER_CLOSED, verdict, message, {"failures": before.failures})


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
    queue: str, runs: Sequence[Run], verdicts: Sequence[Verdict], retries: int, slot_ms: int
) -> dict[str, int]:
    """Return what the round adds to the platform's counters; state/cluster/overview_reader.py reads
    them. `slot_ms` is the time that the round held a slot of its worker.
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
    collector, _ = queue_routing.parse(queue)
    by_collector = poll_totals.of_round(collector, runs, finished)
    changed.update(_marked(by_collector))
    changed.update(_times(queue, runs, slot_ms))
    return changed


def _times(queue: str, runs: Sequence[Run], slot_ms: int) -> dict[str, int]:
    """Mark times of the queue, see `count` in prelude.lua."""
    waits_ms = [run.queue_ms for run in runs if run.attempt == 1]
    counts = queue_times.of_round(queue, waits_ms, slot_ms)
    return {f"d:{name}": number for name, number in counts.items()}


def refusals(queue: str, results: Iterable[str]) -> dict[str, int]:
    """Return what refused runs add to the counters. A batch without a run of its own has no
    queue, and its collector is not known.
    """
    counts = Counter(results)
    collector, _ = queue_routing.parse(queue)
    collector = collector or "unknown"
    return {**counts, **_marked(poll_totals.of_outcomes(collector, counts))}


def _marked(by_collector: dict[str, int]) -> dict[str, int]:
    """Mark counters as totals of polls by collector, see `count` in prelude.lua."""
    return {f"p:{name}": number for name, number in by_collector.items()}


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
