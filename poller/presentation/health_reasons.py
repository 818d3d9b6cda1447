"""The sentences of the verdict, by subject. Each has a tone, and says whether polling stands still.

Pure functions of an overview and of the state of the stores; `health` puts them in order.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.alerts.rule import Severity
from poller.domain.jobs.job_health import JobState
from poller.domain.record.overview import Overview, State
from poller.domain.scheduling import silence
from poller.domain.why import phrases
from poller.domain.why.phrases import without_dot
from poller.presentation import formatting, running_workers
from poller.presentation.alerts import alert_sentences
from poller.presentation.cluster import sink_sentences
from poller.presentation.job_states import ListedJob

#: Polling is late when a larger share of all targets is overdue, when one poll in a hundred starts
#: later than LATE_P99_MS, when targets in flight wait that long for their start, or when any target
#: is overdue by more than two of its intervals.
OVERDUE_SHARE = 0.01
LATE_P99_MS = 5_000
#: Queues, sites and errors that are named; the others are counted.
NAMED = 3


#: What one job does in a state, and what several do.
_JOB_PHRASES = {
    JobState.FAILING: ("fails", "fail"),
    JobState.OVERDUE: ("is overdue", "are overdue"),
    JobState.UNSERVED: (
        "waits: no running worker has its package",
        "wait for a worker that has their packages",
    ),
}


class Tone(enum.StrEnum):
    OK = "ok"
    LATE = "late"
    FAILING = "failing"
    UNKNOWN = "unknown"


class Punctuality(enum.StrEnum):
    """Whether polls come when they are planned, as the sentence says it."""

    ON_TIME = "on_time"
    LATE = "late"
    STOPPED = "stopped"  # nothing is polled: our own downtime is no lateness
    UNKNOWN = "unknown"  # nothing was polled yet, or the board cannot be read


@dataclass(frozen=True, slots=True)
class Stores:
    """Errors of SQL and Redis that this process has seen beside the board. An empty text: none."""

    redis_error: str = ""  # the board cannot be read
    write_error: str = ""  # Redis can be read, but takes no writes: full, a replica, its disk
    sql_error: str = ""  # SQL does not answer, or has not the tables of this program
    sql_targets: int | None = None  # enabled targets in SQL; counted only for an empty board
    jobs: Sequence[ListedJob] = ()  # none while SQL cannot be read
    alerts: AlertNumbers | None = None  # None while SQL cannot be read


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence of the verdict."""

    tone: Tone
    text: str
    stops: bool = False  # nothing is polled, or no result can be stored
    is_store: bool = False  # a store cannot be used


Reasons = Iterator[Reason]


def unusable_stores(stores: Stores) -> Reasons:
    if stores.redis_error:
        text = f"Cannot read the board: {without_dot(stores.redis_error)}."
        yield Reason(Tone.FAILING, text, stops=True, is_store=True)
    if stores.write_error:
        text = f"{phrases.takes_no_writes(stores.write_error)}."
        yield Reason(Tone.FAILING, text, stops=True, is_store=True)
    if stores.sql_error:
        text = f"{_capitalised(without_dot(stores.sql_error))}."
        yield Reason(Tone.FAILING, text, stops=True, is_store=True)


def missing_processes(overview: Overview) -> Reasons:
    if overview.leader is None:
        yield Reason(Tone.FAILING, f"{phrases.NO_LEADER}.", stops=True)
    if not running_workers.count(overview):
        yield Reason(Tone.FAILING, f"{phrases.NO_WORKER}.", stops=True)


def empty_board(overview: Overview, stores: Stores) -> Reasons:
    """The board is empty, but the inventory is not: Redis was emptied, or SQL restored."""
    if overview.targets == 0 and stores.sql_targets:
        targets = formatting.counted(stores.sql_targets, "target")
        are = "is" if stores.sql_targets == 1 else "are"
        text = f"{targets} of the database {are} not on the board yet."
        yield Reason(Tone.LATE, text)


def silent(overview: Overview) -> Reasons:
    """No poll finishes, though a leader and workers run."""
    workers = running_workers.running(overview)
    if overview.leader is None or not workers:
        return
    first_start_ms = min(worker.started_ms for worker in workers)
    began_ms = max(overview.leader.since_ms, first_start_ms)
    quiet_ms = silence.silent_ms(overview, began_ms)
    if quiet_ms:
        text = f"Nothing is being polled: no poll has finished for {formatting.age(quiet_ms)}."
        yield Reason(Tone.FAILING, text, stops=True)
    if quiet_ms and overview.unstarted:
        targets = formatting.counted(overview.unstarted, "target")
        are = "is" if overview.unstarted == 1 else "are"
        text = f"{targets} {are} in flight for {formatting.age(LATE_P99_MS)} and not started."
        yield Reason(Tone.FAILING, text, stops=True)


def obstacles(overview: Overview, stores: Stores) -> Reasons:
    """Reasons that the workers themselves report: an unusable store, or a rate limit."""
    workers = running_workers.running(overview)
    store_errors = Counter(worker.store_error for worker in workers if worker.store_error)
    for error, number in store_errors.most_common(NAMED):
        of_workers = f"{formatting.exact(number)} of {formatting.counted(len(workers), 'worker')}"
        report = "reports" if number == 1 else "report"
        what = " the same" if error == stores.sql_error else f": {without_dot(error)}"
        yield Reason(Tone.FAILING, f"{of_workers} {report}{what}.")

    limits = Counter(worker.rate_limit for worker in workers if worker.rate_limit)
    for limit, number in limits.most_common(NAMED):
        of_workers = f"{formatting.exact(number)} of {formatting.counted(len(workers), 'worker')}"
        start = "starts" if number == 1 else "start"
        text = f"{of_workers} {start} at most {limit} batches: a rate limit of celery control."
        yield Reason(Tone.LATE, text)


def failing(overview: Overview) -> Reasons:
    number = overview.states.get(State.FAILING, 0)
    if number:
        targets = formatting.counted(overview.targets, "target")
        yield Reason(Tone.FAILING, f"{formatting.exact(number)} of {targets} failing.")

    letters = sum(overview.dead_letters.values())
    if letters:
        need = "needs" if letters == 1 else "need"
        text = f"{formatting.exact(letters)} {need} a person (dead letters)."
        yield Reason(Tone.FAILING, text)


def polled(overview: Overview) -> Reasons:
    """The states of the targets. Those that wait for a dark site are not said to answer."""
    if not overview.states.get(State.FAILING, 0):
        yield _none_failing(overview)
    yield from failing(overview)


def _none_failing(overview: Overview) -> Reason:
    unknown = overview.states.get(State.UNKNOWN, 0)
    is_only_one = overview.targets == 1
    targets = formatting.counted(overview.targets, "target")
    if unknown >= overview.targets:
        none_polled = f"None of {targets} polled yet."
        text = "The only target is not polled yet." if is_only_one else none_polled
        return Reason(Tone.UNKNOWN, text)
    if unknown:
        text = f"None failing; {formatting.exact(unknown)} of {targets} not polled yet."
        return Reason(Tone.OK, text)
    if overview.held:
        others = formatting.exact(max(0, overview.targets - overview.held))
        return Reason(Tone.OK, f"{others} of {targets} answer.")
    return Reason(Tone.OK, "The only target answers." if is_only_one else f"All {targets} answer.")


def paused(overview: Overview) -> Reasons:
    """Targets that an operator keeps from being polled: their data grow old on purpose."""
    number = overview.opened_by_hand
    if number:
        are = "is" if number == 1 else "are"
        targets = formatting.counted(number, "target")
        yield Reason(Tone.OK, f"{targets} {are} paused by hand.")


def punctuality(overview: Overview) -> Reasons:
    """Lost workers and lateness. Polls that all fail are not praised for being on time."""
    workers = len(overview.workers)
    lost = workers - running_workers.count(overview)
    if lost:
        text = f"{formatting.exact(lost)} of {formatting.exact(workers)} workers lost."
        yield Reason(Tone.LATE, text)

    judged = punctual(overview)
    if judged is Punctuality.LATE:
        delays = ", ".join(_delays(overview))
        yield Reason(Tone.LATE, f"Polling is late: {delays}.")
    elif judged is Punctuality.ON_TIME:
        yield Reason(Tone.OK, "Polling is on time.")


def punctual(overview: Overview) -> Punctuality:
    """Judge a fleet that is polled."""
    if is_late(overview):
        return Punctuality.LATE
    silent = overview.states.get(State.FAILING, 0) + overview.states.get(State.UNKNOWN, 0)
    any_answers = silent < overview.targets
    is_measured = overview.lateness.count and any_answers
    return Punctuality.ON_TIME if is_measured else Punctuality.UNKNOWN


def is_late(overview: Overview) -> bool:
    """Whether polling as a whole is behind its plan."""
    if overview.overdue > overview.targets * OVERDUE_SHARE:
        return True
    if overview.unstarted > overview.targets * OVERDUE_SHARE:
        return True
    return overview.lateness.p99_ms > LATE_P99_MS or overview.long_overdue > 0


def _delays(overview: Overview) -> Iterator[str]:
    long_overdue = overview.long_overdue
    if long_overdue:
        targets = formatting.counted(long_overdue, "target")
        their = "its" if long_overdue == 1 else "their"
        yield f"{targets} overdue by more than two of {their} intervals"

    if overview.overdue > long_overdue:
        in_all = " in all" if long_overdue else ""
        yield f"{formatting.exact(overview.overdue)} overdue{in_all}"

    if overview.unstarted:
        seconds = formatting.age(LATE_P99_MS)
        yield f"{formatting.exact(overview.unstarted)} in flight for {seconds} and not started"

    p99_ms = overview.lateness.p99_ms
    if p99_ms > LATE_P99_MS:
        yield f"one in a hundred starts {formatting.duration(p99_ms)} late"


def dark_sites(overview: Overview) -> Reasons:
    """One sentence for all dark sites, oldest first."""
    if not overview.dark:
        return
    sites = sorted(overview.dark, key=lambda site: overview.dark[site])
    named = ", ".join(sites[:NAMED])
    if len(sites) > NAMED:
        named += f" and {len(sites) - NAMED} more"

    are_dark = f"Site {named} is dark" if len(sites) == 1 else f"Sites {named} are dark"
    waiting = f"{formatting.counted(overview.held, 'target')} {_wait(overview.held)}"
    yield Reason(Tone.FAILING, f"{are_dark}: {waiting} while a few canaries are polled.")


def shortages(overview: Overview) -> Reasons:
    """Queues that nothing is polled of, and those whose workers do not keep up."""
    served = [load for load in overview.loads if load.workers]
    for load in served:
        if load.shortage is None:
            needs = running_workers.queue_needs(load.queue)
            overdue = formatting.counted(load.overdue, "target")
            are = "is" if load.overdue == 1 else "are"
            yield Reason(Tone.LATE, f"Nothing is polled with {needs}: {overdue} {are} overdue.")

    shortage = {load.queue: load.shortage for load in served if load.shortage}
    queues = sorted(shortage, key=lambda queue: -shortage[queue])
    for queue in queues[:NAMED]:
        needs = running_workers.queue_needs(queue)
        text = f"Polling with {needs} needs {shortage[queue]:.1f} times the workers."
        yield Reason(Tone.LATE, text)

    others = queues[NAMED:]
    if others:
        need = "needs" if len(others) == 1 else "need"
        text = f"{formatting.counted(len(others), 'other queue')} also {need} more workers."
        yield Reason(Tone.LATE, text)


def unserved_queues(overview: Overview) -> Reasons:
    """Queues without a worker, one sentence per missing thing. None while no worker runs at all."""
    if not running_workers.count(overview):
        return
    queues = running_workers.unroutable(overview)
    targets_by_need: Counter[str] = Counter()
    for each in queues[:NAMED]:
        targets_by_need[each.needs] += each.targets
    for need, targets in targets_by_need.items():
        waiting = f"{formatting.counted(targets, 'target')} {_wait(targets)}"
        yield Reason(Tone.FAILING, f"{waiting}: no running worker has {need}.")

    others = queues[NAMED:]
    if others:
        targets = sum(each.targets for each in others)
        of_queues = f"of {formatting.counted(len(others), 'other queue')}"
        text = f"{formatting.counted(targets, 'target')} {of_queues} {_wait(targets)} as well."
        yield Reason(Tone.FAILING, text)


def troubled_sinks(overview: Overview) -> Reasons:
    """Sinks that are down, refuse samples, or are behind. Polling itself goes on."""
    for sentence in sink_sentences.troubles(overview):
        yield Reason(Tone.LATE, sentence)


def unwritten_results(overview: Overview) -> Reasons:
    """Rows of the ledger and dead letters that wait; sinks have sentences of their own."""
    waiting = 0
    for worker in overview.workers:
        of_sinks = sum(report.spooled_polls for report in worker.sinks)
        waiting += max(0, worker.spool_waiting - of_sinks)
    if waiting:
        results = formatting.counted(waiting, "result")
        text = f"{results} cannot be written: a database or sink does not answer."
        yield Reason(Tone.LATE, text)


def kept_rows(overview: Overview) -> Reasons:
    if overview.prune_refused:
        yield Reason(Tone.LATE, f"Old rows are kept: {overview.prune_refused}.")


def firing_alerts(stores: Stores) -> Reasons:
    """The alerts that fire. One of the lowest severity is no reason to worry."""
    if stores.alerts is None:
        return
    severities = stores.alerts.by_severity
    tone = Tone.OK
    if severities.get(Severity.WARNING):
        tone = Tone.LATE
    if severities.get(Severity.CRITICAL):
        tone = Tone.FAILING
    text = alert_sentences.firing(stores.alerts)
    if text:
        yield Reason(tone, text)


def troubled_jobs(overview: Overview, stores: Stores) -> Reasons:
    """Jobs that fail, are overdue, or have no worker: one sentence for each of these states.

    A job that does not run because no leader or no worker runs is not named beside that.
    """
    yield from _job_sentences(stores.jobs, JobState.FAILING)
    if overview.leader is not None and running_workers.count(overview):
        yield from _job_sentences(stores.jobs, JobState.OVERDUE)
        yield from _job_sentences(stores.jobs, JobState.UNSERVED)


def _job_sentences(jobs: Sequence[ListedJob], state: JobState) -> Reasons:
    """The sentence for the jobs in a state; none if no job is."""
    names = [job.name for job in jobs if job.state is state]
    if not names:
        return
    named = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        named += f" and {formatting.exact(len(names) - NAMED)} more"
    tone = Tone.FAILING if state is JobState.FAILING else Tone.LATE
    one, several = _JOB_PHRASES[state]
    if len(names) == 1:
        yield Reason(tone, f"Job {named} {one}.")
    else:
        yield Reason(tone, f"{formatting.exact(len(names))} jobs {several}: {named}.")


def _wait(targets: int) -> str:
    return "waits" if targets == 1 else "wait"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
