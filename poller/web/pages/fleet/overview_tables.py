"""The tables of the overview: their columns, and their rows as texts by cell."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record import event_groups
from poller.domain.record.event_groups import EventGroup
from poller.domain.record.overview import Load, Overview, Point, Worker
from poller.presentation import formatting, running_workers, worker_load
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.record import event_texts
from poller.service.fleet.fleet_picture import FleetPicture

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` sets the alignment: text, number, time, or device for DEVICE or DEVICE/TARGET, which
    becomes a link. `where` is a filter, which becomes a link to the devices that match.
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
class Shown:
    """The data that the tables are made from."""

    overview: Overview
    fleet: FleetPicture


@dataclass(frozen=True, slots=True)
class Table:
    id: str
    title: str
    empty: str  # the text below a table without rows
    limit: int  # of rows
    columns: Sequence[Column]
    rows: Callable[[Shown], Iterator[TableRow]]


def _errors(shown: Shown) -> Iterator[TableRow]:
    """The newest error of each target: one that fails at every poll is one line."""
    seen: set[int] = set()
    for error in shown.overview.errors:
        if error.target_id in seen:
            continue
        seen.add(error.target_id)
        texts = {
            "at": formatting.instant(error.at_ms),
            "device": error.device,
            "target": error.target,
            "code": error.code,
            "message": error.message,
        }
        yield TableRow(f"{error.at_ms}-{error.target_id}", texts, {})


def _changes(shown: Shown) -> Iterator[TableRow]:
    """The changes, newest first. Many of one kind that follow each other are one line."""
    for group in event_groups.group(shown.overview.events):
        event = group.newest
        tones = {"change": Tone.LATE} if event.kind.is_bad else {}
        texts = {
            "at": formatting.instant(event.at_ms),
            "change": event_texts.change(group),
            "subject": event_texts.subject(group),
            "message": _change_message(group),
        }
        key = f"{group.oldest_ms}-{_digest(texts)}"
        yield TableRow(key, texts, tones)


def _change_message(group: EventGroup) -> str:
    """`ap-1, ap-2, ap-3 and 9 more, since 23:52:10 UTC`"""
    if group.number == 1:
        return group.newest.message
    named = event_texts.names(group)
    since = f"since {formatting.instant(group.oldest_ms)[11:19]} UTC"
    return f"{named}, {since}" if named else since


def _digest(texts: Mapping[str, str]) -> str:
    """A checksum that distinguishes the events of one millisecond."""
    text = repr(sorted(texts.items()))
    checksum = zlib.crc32(text.encode("utf-8", "replace"))
    return f"{checksum:08x}"


def _causes(shown: Shown) -> Iterator[TableRow]:
    """Why targets fail, by code and site, most devices first. The link has exactly those."""
    for cause in shown.fleet.causes:
        where = TargetFilter(
            sites=(cause.site,), states=(TargetState.FAILING,), codes=(cause.code,)
        )
        row = error_codes.TABLE.get(cause.code)
        texts = {
            "where": target_filter.text(where),
            "devices": formatting.exact(cause.devices),
            "targets": formatting.exact(cause.targets),
            "meaning": row.meaning if row else "",
        }
        yield TableRow(f"{cause.code}-{cause.site}", texts, {})


def _sites(shown: Shown) -> Iterator[TableRow]:
    """The sites with trouble, the worst first."""
    for site in shown.fleet.sites:
        if site.state not in ("dark", "failing"):
            continue
        tone = Tone.FAILING if site.state == "dark" else Tone.LATE
        texts = {
            "where": target_filter.text(TargetFilter(sites=(site.name,))),
            "state": f"{GLYPHS[tone]} {site.state}",
            "failing": formatting.exact(site.failing),
            "devices": formatting.exact(site.devices),
        }
        yield TableRow(site.name or "-", texts, {"state": tone})


def _workers(shown: Shown) -> Iterator[TableRow]:
    overview = shown.overview
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


def _unroutable(shown: Shown) -> Iterator[TableRow]:
    overview = shown.overview
    for each in running_workers.unroutable(overview):
        texts = {
            "name": f"{GLYPHS[Tone.FAILING]} {each.queue}",
            "targets": formatting.count(each.targets),
            "message": each.reason,
        }
        yield TableRow(each.queue, texts, {"name": Tone.FAILING})


def _queues(shown: Shown) -> Iterator[TableRow]:
    """The queues with the worst shortage and the most waiting polls, by name."""
    overview = shown.overview
    worst_first = sorted(overview.loads, key=_queue_rank)
    busiest = worst_first[: QUEUES.limit]
    for load in sorted(busiest, key=lambda load: load.queue):
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


def _minutes(shown: Shown) -> Iterator[TableRow]:
    overview = shown.overview
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
CAUSES = Table(
    id="why",
    title="Why targets fail",
    empty="No group of failures.",
    limit=10,
    columns=(
        Column("where", "Devices that match", "where"),
        Column("devices", "Devices", "number"),
        Column("targets", "Targets", "number"),
        Column("meaning", "Meaning"),
    ),
    rows=_causes,
)
SITES = Table(
    id="sites",
    title="Sites with trouble",
    empty="No site with failing devices.",
    limit=8,
    columns=(
        Column("where", "Site", "where"),
        Column("state", "State"),
        Column("failing", "Failing", "number"),
        Column("devices", "Devices", "number"),
    ),
    rows=_sites,
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
ALL = (CAUSES, SITES, ERRORS, CHANGES, WORKERS, UNROUTABLE, QUEUES, MINUTES)
