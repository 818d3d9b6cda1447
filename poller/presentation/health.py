"""The verdict on an overview: is polling on time, and what failed? One line of sentences for the
page, `poller status` and the API, and the tone that it is shown in.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from poller.domain.record.overview import Overview, State, Worker
from poller.domain.scheduling import unroutable as missing
from poller.presentation import formatting
from poller.state.cluster import worker_registry

#: Polling is late when a larger share of all targets is overdue, when one poll in a hundred starts
#: later than LATE_P99_MS, or when any target is overdue by more than two of its intervals.
OVERDUE_SHARE = 0.01
LATE_P99_MS = 5_000
#: Queues and sites that are named; the others are counted.
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
    title: str  # of the browser tab
    alarm: bool = False  # polling has stopped, or the board cannot be read

    @property
    def glyph(self) -> str:
        return GLYPHS[self.tone]


@dataclass(frozen=True, slots=True)
class Unroutable:
    """A queue that no running worker serves. Its targets are not queued."""

    queue: str
    targets: int
    needs: str  # collector and tags that no single running worker has
    reason: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    tone: Tone
    text: str


_Sentences = Iterator[_Sentence]


def judge(overview: Overview) -> Health:
    """Judge an overview. The tone is that of the worst sentence."""
    if is_first_run(overview):
        return Health(Tone.UNKNOWN, "Nothing to poll yet. Three ways to begin:", "poller")

    stopped = list(_stopped(overview))
    sentences = list(stopped)
    if stopped:
        # Lateness and good states are out of date while nothing is polled.
        sentences += _failing(overview)
    else:
        sentences += _polled(overview)
        sentences += _punctuality(overview)
    sentences += _dark_sites(overview)
    if not stopped:
        sentences += _shortages(overview)
    sentences += _unserved_queues(overview)
    sentences += _unwritten_results(overview)
    if overview.prune_refused:
        sentences.append(_Sentence(Tone.LATE, f"Old rows are kept: {overview.prune_refused}."))

    tones = {sentence.tone for sentence in sentences}
    worst = next(tone for tone in _WORST_FIRST if tone in tones)
    text = " ".join(sentence.text for sentence in sentences)
    return Health(worst, text, _title(overview), alarm=bool(stopped))


def unreadable(board_error: str, last_read: str = "") -> Health:
    """The verdict while the board cannot be read. `last_read` is the instant of the numbers."""
    text = f"Cannot read the board: {board_error}."
    if last_read:
        text += f" The numbers below are from {last_read} UTC."
    return Health(Tone.FAILING, text, "(!) poller", alarm=True)


def is_first_run(overview: Overview) -> bool:
    """Whether there is no target and there was never a poll."""
    return overview.targets == 0 and not overview.totals.get("polls")


def is_running(worker: Worker, overview: Overview) -> bool:
    """Whether the worker sent a heartbeat lately. A listed worker that did not is lost."""
    return worker_registry.is_alive(worker, overview.as_of_ms)


def workers_running(overview: Overview) -> int:
    """The number of running workers."""
    return len(_running_workers(overview))


def unroutable(overview: Overview) -> list[Unroutable]:
    """The queues that no running worker serves, the largest first."""
    running = _running_workers(overview)
    largest_first = sorted(overview.unserved.items(), key=lambda item: (-item[1], item[0]))

    found = []
    for queue, targets in largest_first:
        needs = " and ".join(missing.listed_needs(queue, running))
        reason = missing.reason(queue, running)
        found.append(Unroutable(queue, targets, needs, reason))
    return found


def waiting_reason(queue: str, overview: Overview) -> str:
    """Why a target of this queue is long overdue."""
    if overview.leader is None:
        return "no leader: nothing is being scheduled"
    for each in unroutable(overview):
        if each.queue == queue:
            return each.reason
    return "the workers do not keep up"


def needs(queue: str) -> str:
    """The needs of a queue: `collector snmp and tag zone=dmz`."""
    return " and ".join(missing.missing_needs(queue))


def duplicate_names(overview: Overview) -> dict[str, int]:
    """Names of several running workers, with their number. Celery's tools mix such workers up."""
    names = Counter(worker.name for worker in _running_workers(overview))
    return {name: number for name, number in names.items() if number > 1}


def is_late(overview: Overview) -> bool:
    """Whether polling as a whole is behind its plan."""
    if overview.overdue > overview.targets * OVERDUE_SHARE:
        return True
    return overview.lateness.p99_ms > LATE_P99_MS or overview.long_overdue > 0


def _running_workers(overview: Overview) -> list[Worker]:
    return [worker for worker in overview.workers if is_running(worker, overview)]


def _title(overview: Overview) -> str:
    if overview.leader is None or not workers_running(overview):
        return "(!) poller"
    failing = overview.states.get(State.FAILING, 0)
    return f"({formatting.exact(failing)}) poller" if failing else "poller"


def _stopped(overview: Overview) -> _Sentences:
    if overview.leader is None:
        yield _Sentence(Tone.FAILING, "No leader: nothing is being scheduled.")
    if not workers_running(overview):
        yield _Sentence(Tone.FAILING, "No worker is running: nothing is being polled.")


def _failing(overview: Overview) -> _Sentences:
    failing = overview.states.get(State.FAILING, 0)
    if failing:
        targets = formatting.counted(overview.targets, "target")
        yield _Sentence(Tone.FAILING, f"{formatting.exact(failing)} of {targets} failing.")

    letters = sum(overview.dead_letters.values())
    if letters:
        need = "needs" if letters == 1 else "need"
        text = f"{formatting.exact(letters)} {need} a person (poller deadletter list)."
        yield _Sentence(Tone.FAILING, text)


def _polled(overview: Overview) -> _Sentences:
    """The states of the targets. Dead letters are only mentioned beside failing targets."""
    unknown = overview.states.get(State.UNKNOWN, 0)
    is_only_one = overview.targets == 1
    targets = formatting.counted(overview.targets, "target")

    if not overview.targets:
        yield _Sentence(Tone.UNKNOWN, "There is no target to poll.")
    elif overview.states.get(State.FAILING, 0):
        yield from _failing(overview)
    elif unknown >= overview.targets:
        none_polled = f"None of {targets} polled yet."
        text = "The only target is not polled yet." if is_only_one else none_polled
        yield _Sentence(Tone.UNKNOWN, text)
    elif unknown:
        text = f"None failing; {formatting.exact(unknown)} of {targets} not polled yet."
        yield _Sentence(Tone.OK, text)
    else:
        text = "The only target answers." if is_only_one else f"All {targets} answer."
        yield _Sentence(Tone.OK, text)


def _punctuality(overview: Overview) -> _Sentences:
    workers = len(overview.workers)
    lost = workers - workers_running(overview)
    if lost:
        text = f"{formatting.exact(lost)} of {formatting.exact(workers)} workers lost."
        yield _Sentence(Tone.LATE, text)

    if is_late(overview):
        delays = ", ".join(_delays(overview))
        yield _Sentence(Tone.LATE, f"Polling is late: {delays}.")
    elif overview.lateness.count and overview.targets:
        yield _Sentence(Tone.OK, "Polling is on time.")


def _delays(overview: Overview) -> Iterator[str]:
    long_overdue = overview.long_overdue
    if long_overdue:
        targets = formatting.counted(long_overdue, "target")
        their = "its" if long_overdue == 1 else "their"
        yield f"{targets} overdue by more than two of {their} intervals"

    if overview.overdue > long_overdue:
        in_all = " in all" if long_overdue else ""
        yield f"{formatting.exact(overview.overdue)} overdue{in_all}"

    p99_ms = overview.lateness.p99_ms
    if p99_ms > LATE_P99_MS:
        yield f"one in a hundred starts {formatting.duration(p99_ms)} late"


def _dark_sites(overview: Overview) -> _Sentences:
    """One sentence for all dark sites, oldest first."""
    if not overview.dark:
        return
    sites = sorted(overview.dark, key=lambda site: overview.dark[site])
    named = ", ".join(sites[:NAMED])
    if len(sites) > NAMED:
        named += f" and {len(sites) - NAMED} more"

    are_dark = f"Site {named} is dark" if len(sites) == 1 else f"Sites {named} are dark"
    waiting = f"{formatting.counted(overview.held, 'target')} {_wait(overview.held)}"
    yield _Sentence(Tone.FAILING, f"{are_dark}: {waiting} while a few canaries are polled.")


def _shortages(overview: Overview) -> _Sentences:
    """Queues whose workers do not keep up, and how many more workers they need."""
    shortages = {load.queue: load.shortage for load in overview.loads if load.shortage}
    queues = sorted(shortages, key=lambda queue: -shortages[queue])
    for queue in queues[:NAMED]:
        text = f"Polling with {needs(queue)} needs {shortages[queue]:.1f} times the workers."
        yield _Sentence(Tone.LATE, text)

    others = queues[NAMED:]
    if others:
        need = "needs" if len(others) == 1 else "need"
        text = f"{formatting.counted(len(others), 'other queue')} also {need} more workers."
        yield _Sentence(Tone.LATE, text)


def _unserved_queues(overview: Overview) -> _Sentences:
    """Queues without a worker, one sentence per missing thing. None while no worker runs at all."""
    if not workers_running(overview):
        return
    queues = unroutable(overview)
    targets_by_need: Counter[str] = Counter()
    for each in queues[:NAMED]:
        targets_by_need[each.needs] += each.targets
    for need, targets in targets_by_need.items():
        waiting = f"{formatting.counted(targets, 'target')} {_wait(targets)}"
        yield _Sentence(Tone.FAILING, f"{waiting}: no running worker has {need}.")

    others = queues[NAMED:]
    if others:
        targets = sum(each.targets for each in others)
        of_queues = f"of {formatting.counted(len(others), 'other queue')}"
        text = f"{formatting.counted(targets, 'target')} {of_queues} {_wait(targets)} as well."
        yield _Sentence(Tone.FAILING, text)


def _unwritten_results(overview: Overview) -> _Sentences:
    waiting = sum(worker.spool_waiting for worker in overview.workers)
    if waiting:
        results = formatting.counted(waiting, "result")
        text = f"{results} cannot be written: a database or sink does not answer."
        yield _Sentence(Tone.LATE, text)


def _wait(targets: int) -> str:
    return "waits" if targets == 1 else "wait"
