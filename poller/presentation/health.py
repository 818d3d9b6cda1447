"""Is polling on time, and what broke? The one sentence a person reads first, and the tone it is said in."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from poller.domain.record.overview import Overview, State, Worker
from poller.domain.scheduling import unroutable as missing
from poller.presentation import formatting
from poller.state.cluster.worker_registry import DEAD_AFTER_MS

#: Polling is late when more than this share of all targets waits past its slot ...
OVERDUE_SHARE = 0.01
#: ... or when one poll in a hundred starts later than this, or when any target waits for several of its intervals.
LATE_P99_MS = 5_000
#: Queues that are named in the sentence; the others are counted.
NAMED = 3


class Tone(enum.StrEnum):
    OK = "ok"
    LATE = "late"
    FAILING = "failing"
    UNKNOWN = "unknown"


GLYPHS = {Tone.OK: "●", Tone.LATE: "▲", Tone.FAILING: "■", Tone.UNKNOWN: "○"}
_WORST_FIRST = (Tone.FAILING, Tone.LATE, Tone.UNKNOWN, Tone.OK)


@dataclass(frozen=True, slots=True)
class Health:
    tone: Tone
    text: str
    title: str  # of the browser's tab
    alarm: bool = False  # nothing moves, or nothing can be seen

    @property
    def glyph(self) -> str:
        return GLYPHS[self.tone]


def judge(overview: Overview) -> Health:
    """The verdict on an overview."""
    if is_first_run(overview):
        return Health(Tone.UNKNOWN, "Nothing to poll yet. Three ways to begin:", "poller")
    stopped = list(_stopped(overview))
    # While it stands still, whether it is late is no question, and good news is old news.
    said = (
        [*stopped, *_failing(overview)] if stopped else [*_polled(overview), *_punctual(overview)]
    )
    said += [
        *_dark(overview),
        *([] if stopped else _short(overview)),
        *_unserved(overview),
        *_unwritten(overview),
    ]
    tones = [tone for tone, _ in said]
    worst = next(tone for tone in _WORST_FIRST if tone in tones)
    return Health(worst, " ".join(text for _, text in said), _title(overview), alarm=bool(stopped))


def unreadable(trouble: str, last_read: str = "") -> Health:
    """Our own eyes are shut: say so, rather than show old numbers as news."""
    since = f" The numbers below are of {last_read} UTC." if last_read else ""
    return Health(
        Tone.FAILING, f"Cannot see the board: {trouble}.{since}", "(!) poller", alarm=True
    )


def is_first_run(overview: Overview) -> bool:
    return overview.targets == 0 and not overview.totals.get("polls")


def is_running(worker: Worker, overview: Overview) -> bool:
    """A worker that neither reported lately nor said good-bye is lost, not running."""
    return worker.seen_ms > overview.as_of_ms - DEAD_AFTER_MS


def workers_running(overview: Overview) -> int:
    return sum(is_running(worker, overview) for worker in overview.workers)


@dataclass(frozen=True, slots=True)
class Unroutable:
    """A queue that no running worker takes, so nothing is put there."""

    queue: str
    targets: int
    needs: str  # what no running worker has, at least not all of it
    reason: str


def unroutable(overview: Overview) -> list[Unroutable]:
    """Those with the most targets first."""
    living = [worker for worker in overview.workers if is_running(worker, overview)]
    waiting = sorted(overview.unserved.items(), key=lambda item: (-item[1], item[0]))
    return [
        Unroutable(
            queue,
            number,
            " and ".join(missing.listed_needs(queue, living)),
            missing.reason(queue, living),
        )
        for queue, number in waiting
    ]


def waiting_reason(queue: str, overview: Overview) -> str:
    """Why a target of this queue is not polled although it is due for long."""
    if overview.leader is None:
        return "no leader: nothing is being scheduled"
    lacking = (each.reason for each in unroutable(overview) if each.queue == queue)
    return next(lacking, "the workers do not keep up")


def duplicate_names(overview: Overview) -> dict[str, int]:
    """Names that several running workers have: Celery's own tools take these for one."""
    names = Counter(worker.name for worker in overview.workers if is_running(worker, overview))
    return {name: number for name, number in names.items() if number > 1}


def is_late(overview: Overview) -> bool:
    """True when polling as a whole is behind its plan."""
    overdue = overview.overdue > overview.targets * OVERDUE_SHARE
    return overdue or overview.lateness.p99_ms > LATE_P99_MS or overview.long_overdue > 0


def _title(overview: Overview) -> str:
    if overview.leader is None or not workers_running(overview):
        return "(!) poller"
    failing = overview.states.get(State.FAILING, 0)
    return f"({formatting.exact(failing)}) poller" if failing else "poller"


def _stopped(overview: Overview) -> Iterator[tuple[Tone, str]]:
    if overview.leader is None:
        yield Tone.FAILING, "No leader: nothing is being scheduled."
    if not workers_running(overview):
        yield Tone.FAILING, "No worker is running: nothing is being polled."


def _unserved(overview: Overview) -> Iterator[tuple[Tone, str]]:
    """Targets that nobody will poll, and what is missing. Said only while workers run at all."""
    waiting = unroutable(overview) if workers_running(overview) else []
    named = {
        each.needs: 0 for each in waiting[:NAMED]
    }  # queues that lack the same are one sentence
    for each in waiting[:NAMED]:
        named[each.needs] += each.targets
    for needs, targets in named.items():
        verb = "waits" if targets == 1 else "wait"
        yield (
            Tone.FAILING,
            f"{formatting.counted(targets, 'target')} {verb}: no running worker has {needs}.",
        )
    if rest := waiting[NAMED:]:
        others = formatting.counted(sum(each.targets for each in rest), "target")
        yield Tone.FAILING, f"So do {others} of {formatting.counted(len(rest), 'other queue')}."


def _short(overview: Overview) -> Iterator[tuple[Tone, str]]:
    """Queues whose workers cannot keep up, and how many would."""
    short = sorted(
        (load for load in overview.loads if load.shortage), key=lambda load: -(load.shortage or 0)
    )
    for load in short[:NAMED]:
        yield (
            Tone.LATE,
            f"Polling with {needs(load.queue)} needs {load.shortage:.1f} times the workers.",
        )
    if rest := short[NAMED:]:
        yield Tone.LATE, f"{formatting.counted(len(rest), 'other queue')} need more, too."


def _dark(overview: Overview) -> Iterator[tuple[Tone, str]]:
    """One sentence for thousands of devices behind one uplink."""
    if overview.dark:
        names = sorted(overview.dark, key=lambda name: overview.dark[name])
        shown = ", ".join(names[:NAMED]) + (
            f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        )
        noun, verb = ("Site", "is") if len(names) == 1 else ("Sites", "are")
        waiting = formatting.counted(overview.held, "target")
        yield Tone.FAILING, f"{noun} {shown} {verb} dark: {waiting} wait while a few are asked."


def _unwritten(overview: Overview) -> Iterator[tuple[Tone, str]]:
    """Polling goes on without a database, which makes it easy to overlook."""
    waiting = sum(worker.spool_waiting for worker in overview.workers)
    if waiting:
        yield (
            Tone.LATE,
            f"{formatting.counted(waiting, 'result')} cannot be written: a database or sink does not answer.",
        )


def needs(queue: str) -> str:
    """What a worker must have to serve a queue: `collector snmp and tag zone=dmz`."""
    return " and ".join(missing.missing_needs(queue))


def _failing(overview: Overview) -> Iterator[tuple[Tone, str]]:
    failing = overview.states.get(State.FAILING, 0)
    if failing:
        yield (
            Tone.FAILING,
            f"{formatting.exact(failing)} of {formatting.counted(overview.targets, 'target')} failing.",
        )
    if letters := sum(overview.dead_letters.values()):
        yield (
            Tone.FAILING,
            f"{formatting.exact(letters)} {'needs' if letters == 1 else 'need'} a person (poller deadletter list).",
        )


def _polled(overview: Overview) -> Iterator[tuple[Tone, str]]:
    unknown, only = overview.states.get(State.UNKNOWN, 0), overview.targets == 1
    targets = formatting.counted(overview.targets, "target")
    if not overview.targets:
        yield Tone.UNKNOWN, "There is no target to poll."
    elif overview.states.get(State.FAILING, 0):
        yield from _failing(overview)
    elif unknown >= overview.targets:
        yield (
            Tone.UNKNOWN,
            "The only target is not polled yet." if only else f"None of {targets} polled yet.",
        )
    elif unknown:
        yield Tone.OK, f"None failing; {formatting.exact(unknown)} of {targets} not polled yet."
    else:
        yield Tone.OK, "The only target answers." if only else f"All {targets} answer."


def _punctual(overview: Overview) -> Iterator[tuple[Tone, str]]:
    lost = len(overview.workers) - workers_running(overview)
    if lost:
        yield (
            Tone.LATE,
            f"{formatting.exact(lost)} of {formatting.exact(len(overview.workers))} workers lost.",
        )
    if is_late(overview):
        yield Tone.LATE, f"Polling is late: {', '.join(_delays(overview))}."
    elif overview.lateness.count and overview.targets:
        yield Tone.OK, "Polling is on time."


def _delays(overview: Overview) -> Iterator[str]:
    """In which ways polling is late."""
    long = overview.long_overdue
    if long:
        whose = "its" if long == 1 else "their"
        yield f"{formatting.counted(long, 'target')} overdue by more than two of {whose} intervals"
    if overview.overdue > long:
        yield f"{formatting.exact(overview.overdue)} overdue" + (" in all" if long else "")
    if overview.lateness.p99_ms > LATE_P99_MS:
        yield f"one in a hundred starts {formatting.duration(overview.lateness.p99_ms)} late"
