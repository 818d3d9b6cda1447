"""The tables of the overview: their columns, and their rows as texts by cell."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.record.overview import Load, Overview, Point, Worker
from poller.presentation import formatting, running_workers, worker_load
from poller.presentation.health import GLYPHS, Tone

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` sets the alignment: text, number, time, or device for DEVICE or DEVICE/TARGET, which
    becomes a link.
    """

    id: str
    title: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class TableRow:
    """Texts and tones by column id. The key is stable, so that a live page recognizes the row."""

    key: str
    texts: Mapping[str, str]
    tones: Mapping[str, Tone]


@dataclass(frozen=True, slots=True)
class Table:
    id: str
    title: str
    empty: str  # the text below a table without rows
    limit: int  # of rows
    columns: Sequence[Column]
    rows: Callable[[Overview], Iterator[TableRow]]


def _errors(overview: Overview) -> Iterator[TableRow]:
    for error in overview.errors:
        texts = {
            "at": formatting.instant(error.at_ms),
            "device": error.device,
            "target": error.target,
            "code": error.code,
            "message": error.message,
        }
        yield TableRow(f"{error.at_ms}-{error.target_id}", texts, {})


def _changes(overview: Overview) -> Iterator[TableRow]:
    for event in overview.events:
        change = event.kind.value.replace("_", " ")
        tones = {}
        if event.kind.is_bad:
            change = f"{GLYPHS[Tone.LATE]} {change}"
            tones["change"] = Tone.LATE

        names = [name for name in (event.device, event.target) if name]
        texts = {
            "at": formatting.instant(event.at_ms),
            "change": change,
            "subject": "/".join(names),
            "message": event.message,
        }
        key = f"{event.at_ms}-{_digest(texts)}"
        yield TableRow(key, texts, tones)


def _digest(texts: Mapping[str, str]) -> str:
    """A checksum that distinguishes the events of one millisecond."""
    text = repr(sorted(texts.items()))
    checksum = zlib.crc32(text.encode("utf-8", "replace"))
    return f"{checksum:08x}"


def _workers(overview: Overview) -> Iterator[TableRow]:
    labels = overview.labels
    for worker in sorted(overview.workers, key=lambda worker: worker.key):
        texts = _worker(worker, overview.as_of_ms)
        texts["name"] = labels[worker.key]

        tones = {}
        if not running_workers.is_running(worker, overview):
            seen = texts["seen"]
            texts["seen"] = f"{GLYPHS[Tone.FAILING]} {seen}"
            tones["seen"] = Tone.FAILING

        yield TableRow(worker.key, texts, tones)


def _worker(worker: Worker, now_ms: int) -> dict[str, str]:
    seen_ms = now_ms - worker.seen_ms
    up_ms = now_ms - worker.started_ms
    polled = formatting.NOT_MEASURED
    if worker.polled_ms:
        polled = formatting.age(now_ms - worker.polled_ms)

    tags = [f"{key}={value}" for key, value in sorted(worker.tags.items())]
    collectors = [f"{name} ({version})" for name, version in sorted(worker.collectors.items())]
    return {
        "seen": formatting.age(seen_ms),
        "up": formatting.age(up_ms),
        "polls": formatting.count(worker.polls),
        "polled": polled,
        "load": worker_load.short(worker),
        "memory": formatting.size(worker.rss_bytes),
        "tags": " ".join(tags) or formatting.NOT_MEASURED,
        "collectors": " ".join(collectors) or formatting.NOT_MEASURED,
    }


def _unroutable(overview: Overview) -> Iterator[TableRow]:
    for each in running_workers.unroutable(overview):
        texts = {
            "name": f"{GLYPHS[Tone.FAILING]} {each.queue}",
            "targets": formatting.count(each.targets),
            "message": each.reason,
        }
        yield TableRow(each.queue, texts, {"name": Tone.FAILING})


def _queues(overview: Overview) -> Iterator[TableRow]:
    """The queues with the worst shortage and the most waiting polls, by name."""
    worst_first = sorted(overview.loads, key=_queue_rank)
    shown = worst_first[: QUEUES.limit]
    for load in sorted(shown, key=lambda load: load.queue):
        tones = {}
        if _is_unserved(load):
            tones["workers"] = Tone.FAILING
        elif load.shortage != 0.0:
            tones["workers"] = Tone.LATE

        texts = {
            "name": load.queue,
            "needed": formatting.rate(load.needed_per_s),
            "done": formatting.rate(load.done_per_s),
            "overdue": formatting.count(load.overdue),
            "batches": formatting.count(load.waiting),
            "workers": _queue_workers(load),
        }
        yield TableRow(load.queue, texts, tones)


def _queue_rank(load: Load) -> tuple[bool, int, int, str]:
    """Sorts queues with a shortage first, then those with most overdue and waiting polls."""
    keeps_up = load.shortage == 0.0
    return keeps_up, -load.overdue, -load.waiting, load.queue


def _is_unserved(load: Load) -> bool:
    return bool(load.due and not load.workers)


def _queue_workers(load: Load) -> str:
    if _is_unserved(load):
        return f"{GLYPHS[Tone.FAILING]} none"

    workers = formatting.exact(load.workers)
    mark = GLYPHS[Tone.LATE]
    if load.shortage is None:
        return f"{mark} {workers}, nothing is polled"
    if load.shortage:
        return f"{mark} {workers}, needs {load.shortage:.1f} times as many"
    return workers


def _minutes(overview: Overview) -> Iterator[TableRow]:
    by_minute: dict[int, list[Point]] = {}
    for point in overview.recent:
        minute_ms = point.at_ms - point.at_ms % MINUTE_MS
        by_minute.setdefault(minute_ms, []).append(point)

    for minute_ms in sorted(by_minute, reverse=True):
        at = formatting.instant(minute_ms)
        texts = _minute(at, by_minute[minute_ms])
        yield TableRow(at, texts, {})


def _minute(at: str, points: Sequence[Point]) -> dict[str, str]:
    polls = sum(point.polls for point in points)
    failed = sum(point.failed for point in points)
    seconds = sum(point.seconds for point in points)
    rate = formatting.NOT_MEASURED
    if seconds:
        rate = formatting.rate(polls / seconds)

    p99 = formatting.NOT_MEASURED
    if polls:
        highest_ms = max(point.lateness_p99_ms for point in points)
        p99 = formatting.duration(highest_ms)

    return {
        "at": at,
        "polls": formatting.count(polls),
        "rate": rate,
        "failed": formatting.count(failed),
        "p99": p99,
    }


ERRORS = Table(
    id="errors",
    title="Last errors",
    empty="No error is on record.",
    limit=12,
    columns=(
        Column("at", "Time", "time"),
        Column("device", "Device", "device"),
        Column("target", "Target"),
        Column("code", "Code"),
        Column("message", "Message"),
    ),
    rows=_errors,
)
CHANGES = Table(
    id="changes",
    title="Changes",
    empty="Nothing has changed yet.",
    limit=10,
    columns=(
        Column("at", "Time", "time"),
        Column("change", "Change"),
        Column("subject", "Of", "device"),
        Column("message", "Message"),
    ),
    rows=_changes,
)
WORKERS = Table(
    id="workers",
    title="Workers",
    empty="No worker is running. Start one: celery -A poller worker",
    limit=50,
    columns=(
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
    rows=_workers,
)
UNROUTABLE = Table(
    id="unroutable",
    title="Targets without a worker",
    empty="Every queue has a worker.",
    limit=8,
    columns=(
        Column("name", "Queue"),
        Column("targets", "Targets", "number"),
        Column("message", "Why"),
    ),
    rows=_unroutable,
)
QUEUES = Table(
    id="queues",
    title="Queues",
    empty="No queue yet.",
    limit=8,
    columns=(
        Column("name", "Queue"),
        Column("needed", "Needs", "number"),
        Column("done", "Does", "number"),
        Column("overdue", "Overdue", "number"),
        Column("batches", "Batches waiting", "number"),
        Column("workers", "Workers", "number"),
    ),
    rows=_queues,
)
MINUTES = Table(
    id="minutes",
    title="The same by minute",
    empty="Nothing was polled in the last 15 minutes.",
    limit=16,
    columns=(
        Column("at", "Minute", "time"),
        Column("polls", "Polls", "number"),
        Column("rate", "Throughput", "number"),
        Column("failed", "Failed", "number"),
        Column("p99", "Highest p99 lateness", "number"),
    ),
    rows=_minutes,
)
ALL = (ERRORS, CHANGES, WORKERS, UNROUTABLE, QUEUES, MINUTES)
