"""The rows of the tables of the overview: why targets fail, sites, errors, changes, minutes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

from poller.domain.failures import error_codes
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record import event_groups
from poller.domain.record.event_groups import EventGroup
from poller.domain.record.overview import Point, State
from poller.presentation import formatting, running_workers
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.record import event_texts
from poller.web.pages.fleet.capacity_rows import CAPACITY
from poller.web.pages.fleet.live_table import Column, Shown, Table, TableRow, always

MINUTE_MS = 60_000


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
            "up": formatting.exact(max(0, site.devices - site.failing)),
            "failing": formatting.exact(site.failing),
            "held": formatting.exact(site.held) if site.held else formatting.NOT_MEASURED,
        }
        yield TableRow(site.name or "-", texts, {"state": tone})


def _no_causes(shown: Shown) -> str:
    """Why no cause is listed: nothing fails, or failures could not be grouped."""
    if not shown.overview.states.get(State.FAILING, 0):
        return "No target fails."
    if not shown.fleet.is_complete:
        return "Too many targets fail to be grouped here; the list of devices has them all."
    return "The failing targets could not be grouped: they changed just now, or SQL is away."


def _no_sites(shown: Shown) -> str:
    if not shown.fleet.is_complete:
        return "Which sites are affected is not known while so many targets fail."
    if not shown.fleet.as_of_ms:
        return "The sites are not known yet, or SQL is away."
    return "No site is dark or has a failing device."


def _unroutable(shown: Shown) -> Iterator[TableRow]:
    overview = shown.overview
    for each in running_workers.unroutable(overview):
        texts = {
            "name": f"{GLYPHS[Tone.FAILING]} {each.queue}",
            "targets": formatting.count(each.targets),
            "message": each.reason,
        }
        yield TableRow(each.queue, texts, {"name": Tone.FAILING})


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
    empty=always("No error is on record."),
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
    empty=_no_causes,
    limit=8,
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
    empty=_no_sites,
    limit=8,
    columns=(
        Column("where", "Site", "where"),
        Column("state", "State"),
        Column("up", "Up", "number"),
        Column("failing", "Failing", "number"),
        Column("held", "Held targets", "number"),
    ),
    rows=_sites,
)
CHANGES = Table(
    id="changes",
    title="Changes",
    empty=always("Nothing has changed yet."),
    limit=10,
    columns=(
        Column("at", "Time", "time"),
        Column("change", "Change"),
        Column("subject", "Of", "device"),
        Column("message", "Message"),
    ),
    rows=_changes,
)
UNROUTABLE = Table(
    id="unroutable",
    title="Targets without a worker",
    empty=always("Every queue has a worker."),
    limit=8,
    columns=(
        Column("name", "Queue"),
        Column("targets", "Targets", "number"),
        Column("message", "Why"),
    ),
    rows=_unroutable,
)
MINUTES = Table(
    id="minutes",
    title="The same by minute",
    empty=always("Nothing was polled in the last 15 minutes."),
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
ALL = (CAUSES, SITES, CAPACITY, UNROUTABLE, CHANGES, ERRORS, MINUTES)
