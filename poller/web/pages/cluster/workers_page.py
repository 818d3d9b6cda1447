"""Workers and domains as texts: is there enough of them, and which one is in trouble."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import poller
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.domain.scheduling import queue_routing
from poller.presentation import formatting, running_workers
from poller.presentation.cluster import workers_json
from poller.presentation.cluster.workers_json import DomainItem, DrainItem, WorkerItem
from poller.presentation.health import GLYPHS, Tone

#: Rows of each table; `poller workers` has all.
ROWS = 250
#: Domains that the row of a worker names.
NAMED = 3
#: Workers that the command which takes a drain back names.
FEW = 5


@dataclass(frozen=True, slots=True)
class UnservedRow:
    """Targets that no running worker can poll."""

    queue: str
    where: str  # selects devices with this collector
    targets: str
    reason: str


@dataclass(frozen=True, slots=True)
class DomainRow:
    """The texts of a domain. Times are of the last minute, waits of the last five."""

    queue: str
    where: str
    tone: str
    state: str
    used: str
    maximum: str
    share: str
    needed: str
    done: str
    wait_p50: str
    wait_p95: str
    overdue: str
    workers: str


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """The texts of a worker."""

    name: str
    tone: str
    state: str
    note: str  # why it cannot poll, or the limit that Celery was told
    process: str  # its number on its host; the host is in the name
    domains: str
    queues: str  # all of them, for the title
    busy: str
    heartbeat: str
    polled: str
    version: str
    is_odd: bool  # its version differs from that of the others
    memory: str
    tags: str
    is_running: bool
    own_name: str  # without what distinguishes workers of the same name: all of them are drained
    is_drained: bool  # it takes nothing new
    command: str  # that drains it, or ends its drain


@dataclass(frozen=True, slots=True)
class Told:
    """A finished act on some workers, for the page after it."""

    text: str
    command: str  # that takes it back; "" for none


@dataclass(frozen=True, slots=True)
class WorkersView:
    """The page of workers and domains."""

    as_of: str
    running: str
    drained: str  # "" for none
    lost: str  # "" for none
    unserved: Sequence[UnservedRow]
    domains: Sequence[DomainRow]
    workers: Sequence[WorkerRow]
    more: str
    told: Told | None = None


def build_view(
    overview: Overview, times: Mapping[str, QueueTimes], told: Told | None = None
) -> WorkersView:
    """Build the view of an overview. The domains without a worker and lost workers come first."""
    items = workers_json.workers(overview)
    items.sort(key=lambda item: (item.state == "running", not item.store_error, item.name))
    usual = _usual_version(item.version for item in items if item.state == "running")
    domains = workers_json.domains(overview, times)
    domains.sort(key=lambda item: (item.is_served, item.name))
    lost = sum(item.state == "lost" for item in items)
    hidden = max(len(items), len(domains)) - ROWS
    return WorkersView(
        as_of=formatting.instant(overview.as_of_ms),
        running=f"{formatting.counted(len(items) - lost, 'worker')} running",
        drained=_drained_text(items),
        lost=f"{formatting.exact(lost)} lost" if lost else "",
        unserved=[_unserved(each) for each in running_workers.unroutable(overview)],
        domains=[_domain(item) for item in domains[:ROWS]],
        workers=[_worker(item, usual) for item in items[:ROWS]],
        more="More than these: poller workers" if hidden > 0 else "",
        told=told,
    )


def told(verb: str, names: Sequence[str], number: int) -> Told | None:
    """Name the finished act; None for another word. `names` are the first of the workers."""
    what = names[0] if number == 1 and names else formatting.counted(number, "worker")
    of_it = f"poller workers resume {shlex.join(names)}" if len(names) == number > 0 else ""
    if verb == "drain":
        text = f"{what}: drain asked for. What is under way is finished, and nothing new is taken."
        return Told(text, of_it)
    if verb == "resume":
        return Told(f"{what}: drain ended. Work is taken again within seconds.", "")
    return None


def _drained_text(items: Sequence[WorkerItem]) -> str:
    """`2 of them drained`; "" for none."""
    number = sum(item.state == "running" and item.drain is not None for item in items)
    return f"{formatting.exact(number)} of them drained" if number else ""


def _usual_version(versions: Iterable[str]) -> str:
    """The release that most workers run; among equally many the one of this process."""
    counts = Counter(version for version in versions if version)
    most = max(counts.values(), default=0)
    usual = sorted(version for version, number in counts.items() if number == most)
    own = poller.__version__
    return own if own in usual or not usual else usual[-1]


def _unserved(each: running_workers.Unroutable) -> UnservedRow:
    collector, _ = queue_routing.parse(each.queue)
    return UnservedRow(
        queue=each.queue,
        where=_where(collector),
        targets=formatting.exact(each.targets),
        reason=each.reason,
    )


def _where(collector: str) -> str:
    return target_filter.text(TargetFilter(collectors=(collector,)))


def _domain(item: DomainItem) -> DomainRow:
    tone, state = _domain_state(item)
    return DomainRow(
        queue=item.name,
        where=_where(item.collector),
        tone=str(tone),
        state=state,
        used=formatting.significant(item.used_seconds),
        maximum=formatting.significant(item.maximum_seconds),
        share=percent(item.used_seconds, item.maximum_seconds),
        needed=formatting.rate(item.needed_per_second),
        done=formatting.rate(item.done_per_second),
        wait_p50=seconds(item.wait_p50_seconds),
        wait_p95=seconds(item.wait_p95_seconds),
        overdue=formatting.exact(item.targets_overdue),
        workers=formatting.exact(len(item.workers)),
    )


def _domain_state(item: DomainItem) -> tuple[Tone, str]:
    if not item.is_served:
        return Tone.FAILING, "no worker"
    shortage = item.times_the_workers_needed
    if shortage is None:
        return Tone.FAILING, "nothing is polled"
    if shortage:
        return Tone.LATE, f"needs {formatting.significant(shortage)} times the workers"
    return Tone.OK, "keeps up"


def percent(part: float, whole: float) -> str:
    """Return a share in whole percent; a dash without a whole."""
    return f"{100 * part / whole:.0f} %" if whole else formatting.NOT_MEASURED


def seconds(number: float | None) -> str:
    """Return a time in seconds as text; a dash if it was not measured."""
    return formatting.NOT_MEASURED if number is None else formatting.duration(number * 1000)


def _worker(item: WorkerItem, usual_version: str) -> WorkerRow:
    tone, state = _worker_state(item)
    polls = queue_routing.poll_queues(item.queues)
    polled_ms = None if item.last_poll_seconds is None else item.last_poll_seconds * 1000
    own_name = item.name.partition("#")[0]
    is_odd = bool(item.version) and item.version != usual_version
    return WorkerRow(
        name=item.name,
        tone=str(tone),
        state=state,
        note=_note(item),
        process=f"pid {item.pid}" if item.pid else "",
        domains=_domains_in_words(polls),
        queues=" ".join(item.queues),
        busy=_busy(item),
        heartbeat=formatting.age(item.seen_seconds * 1000),
        polled=formatting.NOT_MEASURED if polled_ms is None else formatting.age(polled_ms),
        version=f"{GLYPHS[Tone.LATE]} {item.version} differs" if is_odd else item.version or "?",
        is_odd=is_odd,
        memory=formatting.size(item.rss_bytes),
        tags=" ".join(f"{key}={value}" for key, value in item.tags.items()),
        is_running=item.state == "running",
        own_name=own_name,
        is_drained=item.drain is not None,
        command=shlex.join(
            ["poller", "workers", "drain" if item.drain is None else "resume", own_name]
        ),
    )


def _worker_state(item: WorkerItem) -> tuple[Tone, str]:
    if item.state == "lost":
        return Tone.FAILING, "lost"
    if item.drain is not None:
        return Tone.UNKNOWN, "drained" if item.drain.is_done else "draining"
    if item.store_error:
        return Tone.LATE, "held up"
    return Tone.OK, "running"


def _note(item: WorkerItem) -> str:
    if item.store_error:
        return item.store_error
    if item.drain is not None and item.state == "running":
        return _drain_note(item.drain, item.unfinished)
    return f"limited to {item.rate_limit}" if item.rate_limit else ""


def _drain_note(drain: DrainItem, unfinished: int) -> str:
    """`by kim until 14:00 UTC: new kernel; 2 batches left`"""
    until = f" until {drain.until:%Y-%m-%d %H:%M} UTC" if drain.until else ""
    why = f": {drain.reason}" if drain.reason else ""
    left = "" if drain.is_done else f"; {formatting.counted(unfinished, 'batch', 'batches')} left"
    return f"by {drain.by}{until}{why}{left}"


def _domains_in_words(queues: Sequence[str]) -> str:
    """`routeros, snmp, snmp;site=ams and 4 more`"""
    names = [queue.removeprefix(queue_routing.QUEUE_PREFIX) for queue in queues]
    text = ", ".join(names[:NAMED]) or "none"
    more = len(names) - NAMED
    return f"{text} and {more} more" if more > 0 else text


def _busy(item: WorkerItem) -> str:
    """`16 of 16 + 11`: busy slots, and batches that only wait for slow devices."""
    text = f"{max(0, item.batches - item.lent)} of {item.slots}"
    return f"{text} + {item.lent}" if item.lent else text
