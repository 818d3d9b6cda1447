"""The domains of the overview: is there enough of workers for each? `/workers` has all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from poller.domain.record.overview import Load, Overview
from poller.presentation import formatting, running_workers
from poller.presentation.cluster.workers_json import MINUTE_S
from poller.presentation.health import GLYPHS, Punctuality, Tone
from poller.web.pages.cluster import workers_page
from poller.web.pages.fleet.live_table import Column, Shown, Table, TableRow, always

LIMIT = 6
_TROUBLES = (Tone.FAILING, Tone.LATE, Tone.OK, Tone.UNKNOWN)


def _rows(shown: Shown) -> Iterator[TableRow]:
    """The domains in most trouble, by name: rows that change places cannot be read."""
    slots = _slots(shown.overview)

    def rank(load: Load) -> tuple[int, float, int, str]:
        """Sorts domains without workers first, then those that fall behind, then the busiest."""
        maximum_s = slots[load.queue] * MINUTE_S
        share = _used_s(shown, load) / maximum_s if maximum_s else 0.0
        return _TROUBLES.index(_state(shown, load)[0]), -share, -load.overdue, load.queue

    worst = sorted(shown.overview.loads, key=rank)[:LIMIT]
    for load in sorted(worst, key=lambda load: load.queue):
        yield _row(shown, load, slots[load.queue] * MINUTE_S)


def _slots(overview: Overview) -> Counter[str]:
    """The slots of the running workers of each queue."""
    slots: Counter[str] = Counter()
    for worker in running_workers.running(overview):
        for queue in worker.queues:
            slots[queue] += worker.slots
    return slots


def _used_s(shown: Shown, load: Load) -> float:
    times = shown.times.get(load.queue)
    return times.slot_ms / 1000 if times else 0.0


def _row(shown: Shown, load: Load, maximum_s: float) -> TableRow:
    tone, state = _state(shown, load)
    used_s = _used_s(shown, load)
    times = shown.times.get(load.queue)
    wait_ms = times.wait_ms(0.95) if times else None
    texts = {
        "name": load.queue,
        "state": f"{GLYPHS[tone]} {state}",
        "used": f"{formatting.count(round(used_s))} of {formatting.count(round(maximum_s))} s",
        "share": workers_page.percent(used_s, maximum_s),
        "wait": formatting.NOT_MEASURED if wait_ms is None else formatting.duration(wait_ms),
    }
    is_quiet = tone in (Tone.OK, Tone.UNKNOWN)
    return TableRow(load.queue, texts, {} if is_quiet else {"state": tone})


def _state(shown: Shown, load: Load) -> tuple[Tone, str]:
    """Whether the workers of a domain keep up, as the sentence about the fleet says it."""
    if shown.punctuality is Punctuality.STOPPED:
        return Tone.UNKNOWN, "nothing is polled"
    if not load.workers:
        return (Tone.FAILING, "no worker") if load.due else (Tone.UNKNOWN, "no worker, none due")
    if load.shortage is None:
        return Tone.LATE, "nothing is polled"
    if load.shortage:
        return Tone.LATE, f"needs {formatting.significant(load.shortage)} times the workers"
    return Tone.OK, "keeps up"


CAPACITY = Table(
    id="capacity",
    title="Capacity",
    empty=always("No domain yet: the first target makes one."),
    limit=LIMIT,
    columns=(
        Column("name", "Domain"),
        Column("state", "State"),
        Column("used", "Used of maximum", "number"),
        Column("share", "Share", "number"),
        Column("wait", "Wait p95", "number"),
    ),
    rows=_rows,
    total=lambda shown: len(shown.overview.loads),
)
