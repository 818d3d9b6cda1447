"""Sinks as JSON, schema `poller.sinks/2`. Fields may be added, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from poller.domain.record import sink_report
from poller.domain.record.overview import Overview
from poller.domain.record.sink_report import SinkReport
from poller.presentation import running_workers
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

SCHEMA = "poller.sinks/2"
TEST_SCHEMA = "poller.sinks.test/1"
OPTIONS_SCHEMA = "poller.sinks.options/1"

#: Of a sink that the settings of this machine name, and no running worker has.
UNKNOWN = "unknown"
#: Of a sink that has a table in the settings of this machine, and is not in use.
UNUSED = "unused"

State = Literal["ok", "behind", "refusing", "down", "unknown", "unused"]


class SinkError(BaseModel):
    """The last error of a sink, also of an outage that is over."""

    text: str
    hint: str
    at: Instant | None


class SinkItem(BaseModel):
    """One sink by its name in the settings, added up over the running workers."""

    name: str
    kind: str = Field(description="The installed sink that it is made of.")
    state: State = Field(description="Of the worker with the worst one.")
    workers: dict[str, str] = Field(description="Its state in each running worker.")
    polls_per_second: float = Field(description="Stored, over the last minute.")
    samples_per_second: float
    last_stored: Instant | None = Field(description="When it last stored a poll; null: never.")
    polls: int = Field(description="Stored since the workers started.")
    samples: int
    lag_seconds: float = Field(description="Age of the oldest poll that is not stored yet.")
    oldest: Instant | None = Field(description="Instant of that poll; null if none waits.")
    spooled_polls: int = Field(description="On the disks of workers.")
    spooled_bytes: int
    last_error: SinkError | None
    retry_at: Instant | None = Field(description="Of the next attempt, while the store is down.")
    dropped_polls: int = Field(description="Lost for this sink since the workers started.")
    dropped: dict[str, int] = Field(
        description="The same by reason: full, refused, damaged, disk or invalid."
    )
    left_out_samples: int = Field(description="Single samples that the sink left out for good.")
    left_out_reason: str = Field(description="The newest reason; it names a series.")


class SinkSummary(BaseModel):
    """A sink in documents of the whole."""

    kind: str
    state: State = Field(description="Of the worker with the worst one.")
    workers: dict[str, int] = Field(description="Running workers, by state of the sink.")
    polls_per_second: float
    samples_per_second: float
    lag_seconds: float
    spooled_polls: int
    spooled_bytes: int
    dropped_polls: int
    left_out_samples: int
    error: str = Field(description="The last error, while the state is not ok.")


class SinkOption(BaseModel):
    """One option of a kind, a key of its table in poller.toml."""

    name: str
    type: str
    default: Any
    required: bool
    description: str


class InstalledSink(BaseModel):
    """A kind of sink that can be used on this machine."""

    name: str
    distribution: str
    version: str
    api_version: int
    used: bool = Field(description="Whether a sink of this machine's settings is of this kind.")
    state: str
    deprecated: str = Field(description="Why its version of the contract will end.")
    options: list[SinkOption]


class BrokenSink(BaseModel):
    """An installed package whose sink cannot be used."""

    name: str
    distribution: str
    reason: str
    hint: str
    state: str


class SinkTest(BaseModel):
    """The answer of the store to one marked sample, sent from the machine that was asked."""

    name: str
    kind: str
    ok: bool
    answer: str = Field(description="What the store said; empty after an error.")
    error: str
    hint: str = Field(description="What to do about the error.")
    seconds: float
    metric: str
    labels: dict[str, str]
    at: Instant | None = Field(description="Time of the sample.")


def items(
    overview: Overview | None, used: Iterable[str], kinds: Mapping[str, str]
) -> list[SinkItem]:
    """Return the sinks of the running workers, then the others of this machine's settings.

    `used` are the sinks that this machine's workers write to, `kinds` has the kind of every sink in
    the settings. The overview is None while Redis cannot be read.
    """
    states: dict[str, dict[str, str]] = {}
    reports: list[SinkReport] = []
    if overview is not None:
        for worker in running_workers.running(overview):
            reports += worker.sinks
            for report in worker.sinks:
                label = overview.labels[worker.key]
                states.setdefault(report.name, {})[label] = report.state.value
    now_ms = overview.as_of_ms if overview else 0
    found = [_item(each, states[each.name], now_ms) for each in sink_report.combine(reports)]

    listed = {item.name for item in found}
    in_use = set(used)
    for name, kind in kinds.items():
        if name not in listed:
            idle = _item(SinkReport(name, kind), {}, 0)
            state: State = "unknown" if name in in_use else "unused"
            found.append(idle.model_copy(update={"state": state}))
    return found


def summary(overview: Overview) -> dict[str, SinkSummary]:
    """Return the sinks of the running workers in short, by name, for documents of the whole."""
    return {item.name: _short(item) for item in items(overview, (), {})}


def _short(item: SinkItem) -> SinkSummary:
    error = item.last_error.text if item.last_error and item.state != "ok" else ""
    states = dict(Counter(item.workers.values()))
    shared = item.model_dump(include=set(SinkSummary.model_fields) - {"workers", "error"})
    return SinkSummary(**shared, workers=states, error=error)


def _item(report: SinkReport, workers: dict[str, str], now_ms: int) -> SinkItem:
    error = None
    if report.error:
        at = instants.of_ms(report.error_ms)
        error = SinkError(text=report.error, hint=report.hint, at=at)
    return SinkItem(
        name=report.name,
        kind=report.kind,
        state=report.state.value,
        workers=workers,
        polls_per_second=round(report.polls_per_s, 3),
        samples_per_second=round(report.samples_per_s, 3),
        last_stored=instants.of_ms(report.stored_ms),
        polls=report.polls,
        samples=report.samples,
        lag_seconds=report.lag_ms(now_ms) / 1000,
        oldest=instants.of_ms(report.oldest_ms),
        spooled_polls=report.spooled_polls,
        spooled_bytes=report.spooled_bytes,
        last_error=error,
        retry_at=instants.of_ms(report.retry_ms),
        dropped_polls=report.dropped_polls,
        dropped=dict(report.dropped),
        left_out_samples=report.left_out,
        left_out_reason=report.left_out_reason,
    )
