"""What a round adds to the counters of the platform, and the errors that people see first. No poll depends on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from poller.domain.failures import site_outage
from poller.domain.metrics import histogram
from poller.domain.record.run import Run
from poller.state.cluster import site_windows
from poller.workers.batch.target_cache import Known
from poller.workers.batch.verdict import Verdict


def of_round(
    queue: str, rows: Sequence[Run], verdicts: Sequence[Verdict], retries: int
) -> dict[str, int]:
    """Counters of one round, for people and metrics; see state/cluster/overview_reader.py."""
    finished = {verdict.move.id for verdict in verdicts}
    late = [max(0, run.started_ms - run.plan_ms) for run in rows if run.attempt == 1]
    counts = Counter(run.outcome.value for run in rows if run.target_id in finished)
    counts.update(f"l{histogram.bucket(value)}" for value in late)
    counts["polls"] = counts[f"q:{queue}"] = len(verdicts)
    counts["samples"] = sum(run.samples for run in rows)
    counts["missed_slots"] = sum(
        verdict.after.missed - verdict.before.missed for verdict in verdicts
    )
    counts["retries"] = retries
    counts["breaker_skips"] = sum(verdict.skipped for verdict in verdicts)
    counts["breaker_opened"] = sum(verdict.opened for verdict in verdicts)
    counts["breaker_closed"] = sum(verdict.closed for verdict in verdicts)
    counted = {name: number for name, number in counts.items() if number}
    return {**counted, "lmax": max(late)} if late else counted


def by_site(verdicts: Sequence[Verdict], known: Mapping[int, Known]) -> dict[str, int]:
    """How many polls each site had, and how many of them found nobody."""
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        if name := known[verdict.move.id].target.site:
            polls, dark = site_windows.counted(name)
            counts[polls] += 1
            counts[dark] += verdict.after.code in site_outage.DARK and verdict.after.failures > 0
    return {field: number for field, number in counts.items() if number}


def error_texts(rows: Sequence[Run], known: dict[int, Known]) -> list[str]:
    return [
        json.dumps(
            [
                run.finished_ms,
                run.target_id,
                known[run.target_id].target.device,
                known[run.target_id].target.name,
                run.error_code,
                run.message,
            ],
            ensure_ascii=False,
        )
        for run in rows
        if run.error_code
    ]
