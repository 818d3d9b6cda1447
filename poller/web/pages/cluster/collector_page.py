"""The page of one collector as texts: its figures, errors, slowest targets, origin and options."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from poller import errors
from poller.collectors import api
from poller.db.record.slow_targets import NEWEST, SlowTarget
from poller.domain.failures import error_codes
from poller.domain.inventory import did_you_mean
from poller.presentation import formatting
from poller.service.cluster.collector_figures import SlowTargets
from poller.web.pages.cluster import collectors_page
from poller.web.pages.cluster.collectors_page import (
    CodeCount,
    CollectorRow,
    CollectorsStatus,
    HeldRow,
    PollFigures,
    Told,
)

#: Error codes of the table, more than any collector has.
MOST_CODES = 100


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Failed attempts with one code, and what to do about it."""

    count: CodeCount
    meaning: str
    hint: str


@dataclass(frozen=True, slots=True)
class SlowRow:
    """One of the slowest targets."""

    name: str
    path: str
    polls: str
    p50: str
    p95: str
    longest: str


@dataclass(frozen=True, slots=True)
class CollectorView:
    """One collector."""

    as_of: str
    row: CollectorRow
    span: str
    figures: PollFigures
    held: Sequence[HeldRow]
    facts: Sequence[tuple[str, str]]
    codes: Sequence[CodeRow]
    slow: Sequence[SlowRow]
    slow_of: str  # which polls were looked at
    has_percentiles: bool  # of the slowest targets
    options: Sequence[Mapping[str, Any]]
    command: str
    told: Told | None


def build_view(
    name: str, status: CollectorsStatus, slow: SlowTargets, now_ms: int, told: Told | None = None
) -> CollectorView:
    """Build the view of one collector. Raises NotFound with the nearest name."""
    item = collectors_page.item_of(name, status)
    known = {*status.registry.collectors, *status.figures.by_collector}
    known.update(each for worker in status.workers for each in worker.collectors)
    if item is None and name not in known:
        near = did_you_mean.nearest(name, known)
        hint = f"did you mean {near}? (or: poller collectors)" if near else "poller collectors"
        raise errors.NotFound(f'no collector named "{name}"', hint=hint)
    figures = collectors_page.figures_of(name, status.figures, MOST_CODES)
    return CollectorView(
        as_of=formatting.instant(now_ms),
        row=collectors_page.row_of(name, item, status),
        span=collectors_page.span_text(status.figures),
        figures=figures,
        held=collectors_page.held_rows(status, name),
        facts=list(_facts(item)) if item else (),
        codes=[_code(each) for each in figures.codes],
        slow=[_slow(each) for each in slow.rows],
        slow_of=_slow_of(slow),
        has_percentiles=slow.day_ms is not None,
        options=_options(item),
        command=f"poller collectors stats {shlex.quote(name)}",
        told=told,
    )


def _facts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    served = "–".join(dict.fromkeys(map(str, item["api_versions"])))
    ours = "–".join(dict.fromkeys(map(str, sorted(api.SERVED))))
    yield "package", f"{item['distribution']} {item['version']}"
    yield "plugin API", f"{served} (this poller serves {ours})"
    yield "credential", " or ".join(item["credentials"]) or "none"
    yield "abilities", ", ".join(item["abilities"]) or "none beside polling"
    yield "cost", f"{item['cost']:g} times a usual poll"


def _options(item: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    found = []
    for option in item["options"] if item else ():
        found.append({**option, "default_text": collectors_page.default_text(option)})
    return found


def _code(count: CodeCount) -> CodeRow:
    known = error_codes.TABLE.get(count.code)
    return CodeRow(count, known.meaning if known else "", known.hint if known else "")


def _slow(of: SlowTarget) -> SlowRow:
    return SlowRow(
        name=f"{of.device}/{of.target}",
        path=f"devices/{quote(of.device, safe='')}",
        polls=formatting.exact(of.polls),
        p50=_length(of.p50_ms),
        p95=_length(of.p95_ms),
        longest=_length(of.max_ms),
    )


def _slow_of(slow: SlowTargets) -> str:
    if slow.day_ms is not None:
        return f"of {formatting.instant(slow.day_ms)[:10]}, by the 95th percentile"
    return f"among the newest {formatting.exact(NEWEST)} polls of each outcome, of the whole fleet"


def _length(ms: int | None) -> str:
    return formatting.NOT_MEASURED if ms is None else formatting.duration(ms)
