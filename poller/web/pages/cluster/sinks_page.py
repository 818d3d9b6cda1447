"""Sinks as texts: where readings go, what waits, what was lost, and the answer to a test."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation import formatting
from poller.presentation.cluster import sink_sentences
from poller.presentation.cluster.sinks_json import InstalledSink, SinkItem, SinkTest
from poller.presentation.health import Tone
from poller.presentation.record import instants
from poller.service.cluster.sink_listing import SinkListing

#: Sinks of the page; `poller sinks` has all.
ROWS = 100
#: Workers that the row of a sink names.
NAMED = 8
#: The states, the worst first, and how each is said.
_STATES = {
    "down": Tone.FAILING,
    "refusing": Tone.FAILING,
    "behind": Tone.LATE,
    "unknown": Tone.LATE,
    "ok": Tone.OK,
    "unused": Tone.UNKNOWN,
}
_NOTES = {
    "unknown": "no running worker has it",
    "unused": "sinks does not name it",
}


@dataclass(frozen=True, slots=True)
class SinkRow:
    """The texts of a sink. Numbers are sums over the running workers."""

    name: str
    kind: str
    tone: str
    state: str
    note: str
    workers: Sequence[tuple[str, str]]  # in trouble, while others are not: name and state
    more_workers: str
    polls: str
    samples: str
    lag: str
    spooled: str
    spooled_size: str
    lost: str
    lost_why: str
    stored_at: str  # an instant, or "" for never
    stored: str
    error: str
    error_at: str
    hint: str
    retry: str
    command: str


@dataclass(frozen=True, slots=True)
class KindRow:
    """An installed kind of sink, or one that cannot be used."""

    name: str
    origin: str
    tone: str
    state: str
    note: str
    options: str
    used: str


@dataclass(frozen=True, slots=True)
class SampleNote:
    """The answer of a store to one marked sample, or why none was sent."""

    tone: str
    text: str
    detail: str
    hint: str
    note: str  # what went wrong beside the test


@dataclass(frozen=True, slots=True)
class SinksView:
    """The page of sinks."""

    as_of: str
    rows: Sequence[SinkRow]
    more: str
    troubles: Sequence[tuple[str, str]]  # tone and sentence
    kinds: Sequence[KindRow]
    counts: Sequence[tuple[str, str]]  # tone and text
    redis_error: str
    test: SampleNote | None


def build_view(
    found: SinkListing,
    overview: Overview | None,
    now_ms: int,
    redis_error: str = "",
    test: SampleNote | None = None,
) -> SinksView:
    """Build the view. The overview is None while Redis cannot be read."""
    order = list(_STATES)
    sinks = sorted(found.sinks, key=lambda item: order.index(item.state))
    sentences = sink_sentences.by_name(overview) if overview else {}
    hidden = len(sinks) - ROWS
    return SinksView(
        as_of=formatting.instant(now_ms),
        rows=[_row(item, now_ms) for item in sinks[:ROWS]],
        more=f"{formatting.exact(hidden)} more: poller sinks" if hidden > 0 else "",
        troubles=list(_troubles(sinks, sentences, found.unusable)),
        kinds=[*_broken(found), *(_kind(each) for each in found.installed)],
        counts=list(_counts(sinks)),
        redis_error=redis_error,
        test=test,
    )


def sample_note(result: SinkTest, note: str) -> SampleNote:
    """Return the answer to a test in words."""
    took = formatting.duration(result.seconds * 1000)
    name = f"{result.name} ({result.kind})"
    if result.ok:
        text = f"{name} took one sample in {took}"
        return SampleNote(str(Tone.OK), text, result.answer, "", note)
    text = f"{name} did not take the sample"
    return SampleNote(str(Tone.FAILING), text, result.error, result.hint, note)


def refused_note(error: errors.PollerError) -> SampleNote:
    """Return why no sample was sent."""
    return SampleNote(str(Tone.FAILING), "No sample was sent", str(error), error.hint, "")


def _troubles(
    sinks: Sequence[SinkItem], sentences: Mapping[str, str], unusable: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Return the troubles as sentences, the worst first."""
    for text in unusable:
        yield str(Tone.FAILING), f"No worker will start with these settings: {text}"
    for item in sinks:
        if item.name in sentences:
            yield str(_STATES[item.state]), f"{sentences[item.name]}."


def _counts(sinks: Sequence[SinkItem]) -> Iterator[tuple[str, str]]:
    """The number of sinks in each state that occurs: `1 down`."""
    numbers = Counter(str(item.state) for item in sinks)
    for state, tone in _STATES.items():
        if state in numbers:
            yield str(tone), f"{formatting.exact(numbers[state])} {state}"


def _row(item: SinkItem, now_ms: int) -> SinkRow:
    reported = bool(item.workers)
    others = [(name, state) for name, state in item.workers.items() if state == item.state]
    is_mixed = 0 < len(others) < len(item.workers)
    error = item.last_error
    stored_ms = _ms(item.last_stored)
    return SinkRow(
        name=item.name,
        kind=item.kind,
        tone=str(_STATES[item.state]),
        state=item.state,
        note=_note(item, len(others) if is_mixed else 0),
        workers=others[:NAMED] if is_mixed else (),
        more_workers=_more(len(others) - NAMED) if is_mixed else "",
        polls=formatting.rate(item.polls_per_second) if reported else formatting.NOT_MEASURED,
        samples=formatting.rate(item.samples_per_second) if reported else formatting.NOT_MEASURED,
        lag=formatting.age(round(item.lag_seconds) * 1000) if reported else formatting.NOT_MEASURED,
        spooled=formatting.exact(item.spooled_polls) if reported else formatting.NOT_MEASURED,
        spooled_size=formatting.size(item.spooled_bytes) if item.spooled_polls else "",
        lost=_lost(item) if reported else formatting.NOT_MEASURED,
        lost_why=_lost_why(item),
        stored_at=formatting.instant(stored_ms) if stored_ms else "",
        stored=_stored(item, stored_ms, now_ms),
        error=error.text if error else "",
        error_at=instants.rfc3339(error.at) if error and error.at else "",
        hint=error.hint if error and item.state != "ok" else "",
        retry=_retry(item, now_ms),
        command=shlex.join(["poller", "sinks", "test", item.name]),
    )


def _note(item: SinkItem, same: int) -> str:
    """Which workers say so, or what a state without workers means."""
    if same:
        return f"in {same} of {formatting.counted(len(item.workers), 'worker')}"
    return _NOTES.get(item.state, "")


def _more(number: int) -> str:
    return f"and {formatting.exact(number)} more" if number > 0 else ""


def _lost(item: SinkItem) -> str:
    """`0`, `64 polls`, `64 polls, 3 samples`"""
    parts = []
    if item.dropped_polls:
        parts.append(formatting.counted(item.dropped_polls, "poll"))
    if item.left_out_samples:
        parts.append(formatting.counted(item.left_out_samples, "sample"))
    return ", ".join(parts) or "0"


def _lost_why(item: SinkItem) -> str:
    """`full 60, disk 4; out of order sample up{}`"""
    dropped = ", ".join(f"{reason} {number:,}" for reason, number in item.dropped.items() if number)
    return "; ".join(part for part in (dropped, item.left_out_reason) if part)


def _stored(item: SinkItem, stored_ms: int, now_ms: int) -> str:
    """`4 s ago`; not known of a worker of an earlier release."""
    if stored_ms:
        return f"{formatting.age(now_ms - stored_ms)} ago"
    return "never" if item.workers and not item.polls else formatting.NOT_MEASURED


def _retry(item: SinkItem, now_ms: int) -> str:
    """`next attempt in 12 s`, while the store is away."""
    retry_ms = _ms(item.retry_at)
    if item.state != "down" or not retry_ms:
        return ""
    wait_ms = retry_ms - now_ms
    return f"next attempt in {formatting.age(wait_ms)}" if wait_ms >= 1000 else "tried again now"


def _ms(at: datetime | None) -> int:
    """An instant of the document in milliseconds; 0 for none."""
    return round(at.timestamp() * 1000) if at else 0


def _kind(item: InstalledSink) -> KindRow:
    tone = Tone.LATE if item.deprecated else ""
    return KindRow(
        name=item.name,
        origin=f"{item.distribution} {item.version}",
        tone=str(tone),
        state=item.state,
        note=item.deprecated,
        options=formatting.counted(len(item.options), "option") if item.options else "no options",
        used="in use" if item.used else "not used",
    )


def _broken(found: SinkListing) -> Iterator[KindRow]:
    """The kinds that cannot be used, with the reason."""
    for each in found.broken:
        note = f"{each.reason}; {each.hint}" if each.hint else each.reason
        tone = str(Tone.FAILING)
        yield KindRow(each.name, each.distribution, tone, each.state, note, "", "not used")
