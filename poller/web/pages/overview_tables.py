"""The tables of the page: their columns, and an overview's rows as texts per cell."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.record.overview import LastError, Load, Overview, Point, Worker
from poller.presentation import formatting, health
from poller.presentation.health import GLYPHS, Tone

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Column:
    id: str
    title: str
    #: text, number, time or device (DEVICE or DEVICE/TARGET): how it is aligned and, for the last two, written.
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Row:
    """Texts (and tones) by column id. The key is stable, so that a page can keep the row in its place."""

    key: str
    texts: Mapping[str, str]
    tones: Mapping[str, Tone]


@dataclass(frozen=True, slots=True)
class Table:
    id: str
    title: str
    empty: str
    limit: int
    columns: Sequence[Column]
    rows: Callable[[Overview], Iterator[Row]]


def _errors(overview: Overview) -> Iterator[Row]:
    return (Row(f"{error.at_ms}-{error.target_id}", _error(error), {}) for error in overview.errors)


def _error(error: LastError) -> dict[str, str]:
    return {
        "at": formatting.instant(error.at_ms),
        "device": error.device,
        "target": error.target,
        "code": error.code,
        "message": error.message,
    }


def _changes(overview: Overview) -> Iterator[Row]:
    for event in overview.events:
        words = event.kind.value.replace("_", " ")
        texts = {
            "at": formatting.instant(event.at_ms),
            "change": f"{GLYPHS[Tone.LATE]} {words}" if event.kind.is_bad else words,
            "subject": "/".join(name for name in (event.device, event.target) if name),
            "message": event.message,
        }
        key = f"{event.at_ms}-{zlib.crc32(repr(sorted(texts.items())).encode('utf-8', 'replace')):08x}"
        yield Row(key, texts, {"change": Tone.LATE} if event.kind.is_bad else {})


def _workers(overview: Overview) -> Iterator[Row]:
    labels = overview.labels
    for worker in sorted(overview.workers, key=lambda worker: worker.key):
        running = health.is_running(worker, overview)
        texts = {**_worker(worker, overview.as_of_ms), "name": labels[worker.key]}
        if not running:
            texts["seen"] = f"{GLYPHS[Tone.FAILING]} {texts['seen']}"
        yield Row(worker.key, texts, {} if running else {"seen": Tone.FAILING})


def _worker(worker: Worker, now_ms: int) -> dict[str, str]:
    return {
        "seen": formatting.age(now_ms - worker.seen_ms),
        "up": formatting.age(now_ms - worker.started_ms),
        "polls": formatting.count(worker.polls),
        "polled": formatting.age(now_ms - worker.polled_ms)
        if worker.polled_ms
        else formatting.NOT_MEASURED,
        "load": f"{formatting.count(worker.in_flight)} of {formatting.count(worker.slots)}",
        "memory": formatting.size(worker.rss_bytes),
        "tags": _joined(f"{key}={value}" for key, value in sorted(worker.tags.items())),
        "collectors": _joined(
            f"{name} ({version})" for name, version in sorted(worker.collectors.items())
        ),
    }


def _unroutable(overview: Overview) -> Iterator[Row]:
    for each in health.unroutable(overview):
        texts = {
            "name": f"{GLYPHS[Tone.FAILING]} {each.queue}",
            "targets": formatting.count(each.targets),
            "message": each.reason,
        }
        yield Row(each.queue, texts, {"name": Tone.FAILING})


def _queues(overview: Overview) -> Iterator[Row]:
    """The busiest; those short of workers before all others."""
    worst = sorted(
        overview.loads,
        key=lambda load: (load.shortage == 0.0, -load.overdue, -load.waiting, load.queue),
    )
    for load in sorted(worst[: QUEUES.limit], key=lambda load: load.queue):
        tone = Tone.FAILING if _unserved(load) else Tone.LATE
        yield Row(
            load.queue,
            _load(load),
            {"workers": tone} if _unserved(load) or load.shortage != 0.0 else {},
        )


def _load(load: Load) -> dict[str, str]:
    return {
        "name": load.queue,
        "needed": formatting.rate(load.needed_per_s),
        "done": formatting.rate(load.done_per_s),
        "overdue": formatting.count(load.overdue),
        "batches": formatting.count(load.waiting),
        "workers": _workforce(load),
    }


def _unserved(load: Load) -> bool:
    return bool(load.due and not load.workers)


def _workforce(load: Load) -> str:
    if _unserved(load):
        return f"{GLYPHS[Tone.FAILING]} none"
    if load.shortage is None:
        return f"{GLYPHS[Tone.LATE]} {load.workers}, nothing is done"
    if load.shortage:
        return f"{GLYPHS[Tone.LATE]} {load.workers}, needs {load.shortage:.1f} times as many"
    return formatting.exact(load.workers)


def _minutes(overview: Overview) -> Iterator[Row]:
    by_minute: dict[int, list[Point]] = {}
    for point in overview.recent:
        by_minute.setdefault(point.at_ms // MINUTE_MS, []).append(point)
    for minute in sorted(by_minute, reverse=True):
        at = formatting.instant(minute * MINUTE_MS)
        yield Row(at, {"at": at, **_minute(by_minute[minute])}, {})


def _minute(points: Sequence[Point]) -> dict[str, str]:
    polls = sum(point.polls for point in points)
    seconds = sum(point.seconds for point in points)
    return {
        "polls": formatting.count(polls),
        "rate": formatting.rate(polls / seconds) if seconds else formatting.NOT_MEASURED,
        "failed": formatting.count(sum(point.failed for point in points)),
        "p99": formatting.duration(max(p.lateness_p99_ms for p in points))
        if polls
        else formatting.NOT_MEASURED,
    }


def _joined(words: Iterator[str]) -> str:
    return " ".join(words) or formatting.NOT_MEASURED


ERRORS = Table(
    "errors",
    "Last errors",
    "No error is on record.",
    12,
    (
        Column("at", "Time", "time"),
        Column("device", "Device", "device"),
        Column("target", "Target"),
        Column("code", "Code"),
        Column("message", "Message"),
    ),
    _errors,
)
CHANGES = Table(
    "changes",
    "Changes",
    "Nothing has changed yet.",
    10,
    (
        Column("at", "Time", "time"),
        Column("change", "Change"),
        Column("subject", "Of", "device"),
        Column("message", "Message"),
    ),
    _changes,
)
WORKERS = Table(
    "workers",
    "Workers",
    "No worker is running. Start one: celery -A poller worker",
    50,
    (
        Column("name", "Worker"),
        Column("seen", "Last seen", "number"),
        Column("up", "Up", "number"),
        Column("polls", "Polls", "number"),
        Column("polled", "Last poll", "number"),
        Column("load", "Batches", "number"),
        Column("memory", "Memory", "number"),
        Column("tags", "Tags"),
        Column("collectors", "Collectors"),
    ),
    _workers,
)
UNROUTABLE = Table(
    "unroutable",
    "Targets without a worker",
    "Every queue has a worker.",
    8,
    (
        Column("name", "Queue"),
        Column("targets", "Targets", "number"),
        Column("message", "Why"),
    ),
    _unroutable,
)
QUEUES = Table(
    "queues",
    "Queues",
    "No queue yet.",
    8,
    (
        Column("name", "Queue"),
        Column("needed", "Needs", "number"),
        Column("done", "Does", "number"),
        Column("overdue", "Overdue", "number"),
        Column("batches", "Batches waiting", "number"),
        Column("workers", "Workers", "number"),
    ),
    _queues,
)
MINUTES = Table(
    "minutes",
    "The same by minute",
    "Nothing was polled in the last 15 minutes.",
    16,
    (
        Column("at", "Minute", "time"),
        Column("polls", "Polls", "number"),
        Column("rate", "Throughput", "number"),
        Column("failed", "Failed", "number"),
        Column("p99", "Highest p99 lateness", "number"),
    ),
    _minutes,
)
ALL = (ERRORS, CHANGES, WORKERS, UNROUTABLE, QUEUES, MINUTES)
