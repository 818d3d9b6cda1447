"""Actions on jobs: run one now, repair a plan, pause, resume, forget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors, event_publisher
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_ledger, job_lookup
from poller.db.jobs.job_catalog import CatalogJob
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.jobs.job_run import JobRun, Origin, Plan, Status
from poller.domain.jobs.run_message import RunMessage
from poller.domain.record.event_kinds import Event, Kind
from poller.jobs import plugin_values
from poller.jobs.api import GLOBAL
from poller.presentation import formatting, job_states
from poller.service import action_audit
from poller.state.cluster import job_totals, worker_registry
from poller.state.publish_errors import broker_errors

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.record.overview import Worker

#: The reason that wakes the leader after a change of a job.
WAKE = "jobs"


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that was asked for. Its row begins at or after `requested_ms`."""

    job: CatalogJob
    plan: Plan
    requested_ms: int  # by the database's clock
    is_repair: bool = False
    note: str = ""  # why the audit log has no row of it

    def is_row(self, run: JobRun | None) -> bool:
        """Whether the row shows this run, not an attempt before it."""
        return run is not None and run.started_ms >= self.requested_ms


@dataclass(frozen=True, slots=True)
class Change:
    """The jobs that were changed, in the order of the names; others were so before."""

    names: Sequence[str]
    is_announced: bool  # False: Redis is away, so there is no event, and the leader sleeps on


def start(
    services: Services,
    actor: Actor,
    name: str,
    scope: tuple[str, str] | None = None,
    plan_ms: int | None = None,
) -> StartedRun:
    """Send a run of a job to its workers: now, or of a plan that failed or was missed.

    Nothing is sent if the run cannot be. Raises NotFound, InvalidInput, AlreadyRunning, StoreError.
    """
    job = job_catalog.get(services.engine, name)
    scope = _checked_scope(job, scope)
    _refuse_unserved(services, job)
    now_ms = database_clock.now_ms(services.engine)
    if plan_ms is None:
        plan = Plan(job.name, *scope, _demand_ms(services, job, scope, now_ms))
    else:
        plan = Plan(job.name, *scope, plan_ms)
    _refuse_running(services, job, plan, now_ms)

    is_repair = False
    if plan_ms is not None:
        is_repair = _prepare(services, job, plan, now_ms)
    _send(services, job, plan, now_ms)
    entry = AuditEntry(
        "job.run",
        job.name,
        after={"scope": plan.scope, "plan": formatting.instant(plan.plan_ms), "again": is_repair},
    )
    note = action_audit.record(services, actor, entry)
    return StartedRun(job, plan, now_ms, is_repair, note)


def row(services: Services, plan: Plan) -> JobRun | None:
    """The row of a plan; None while it has none. Raises StoreError."""
    return job_lookup.of_plan(services.engine, plan)


def pause(services: Services, names: Sequence[str], actor: Actor) -> Change:
    """Pause jobs: no plan of theirs is started. Running ones go on.

    Raises NotFound before anything changes, StoreError.
    """
    jobs = _known(services, names)
    changed = []
    for job in jobs:
        if job_catalog.pause(services.engine, job.name, actor.name, actor):
            changed.append(job.name)
    return Change(changed, _announce(services, Kind.JOB_PAUSED, changed, actor.name))


def resume(services: Services, names: Sequence[str], actor: Actor) -> Change:
    """Resume paused jobs. Raises as `pause` does."""
    jobs = _known(services, names)
    changed = [job.name for job in jobs if job_catalog.resume(services.engine, job.name, actor)]
    return Change(changed, _announce(services, Kind.JOB_RESUMED, changed, actor.name))


def forget(services: Services, actor: Actor, name: str) -> None:
    """Remove a job that no running worker has from the catalogue, and its counters.

    Raises NotFound, InvalidInput while a worker has it, StoreError.
    """
    refuse_served(services, name)
    job_catalog.forget(services.engine, name, actor)
    job_totals.forget(services.redis, services.keys, name)
    services.board.wake(WAKE)


def refuse_served(services: Services, name: str) -> None:
    """Raise InvalidInput for a job that a running worker has: it would come back by itself."""
    job = job_catalog.get(services.engine, name)
    serving = job_states.serving_names(job.queue, living(services))
    if serving and job.gone_ms is None:
        raise errors.InvalidInput(
            f'job "{name}" is in use: {serving[0]} has its package, {job.distribution}',
            hint=f"poller jobs pause {name}",
        )


def living(services: Services) -> list[Worker]:
    """The workers with a recent heartbeat. Raises StoreError."""
    now_ms = services.board.now_ms()
    return worker_registry.living(services.redis, services.keys, now_ms)


def names(services: Services) -> list[str]:
    """The names of all jobs that are not gone. Raises StoreError."""
    return [job.name for job in job_catalog.listing(services.engine)]


def _known(services: Services, names: Sequence[str]) -> list[CatalogJob]:
    """The named jobs, each once. Raises NotFound for an unknown one."""
    return [job_catalog.get(services.engine, name) for name in dict.fromkeys(names)]


def _announce(services: Services, kind: Kind, names: Sequence[str], by: str) -> bool:
    """Publish an event for each job, and wake the leader.

    False while Redis is away: the change is in SQL, where the leader finds it some seconds later.
    """
    verb = "paused" if kind is Kind.JOB_PAUSED else "resumed"
    try:
        now_ms = services.board.now_ms()
        events = []
        for name in names:
            message = f"job {name} was {verb} by {by}"
            events.append(Event(now_ms, kind, message=message, data={"job": name, "by": by}))
        event_publisher.publish(services, events)
        services.board.wake(WAKE)
    except errors.StoreError:
        return False
    return True


def _checked_scope(job: CatalogJob, scope: tuple[str, str] | None) -> tuple[str, str]:
    """The scope to run: a job that lists its scopes needs one, another job has none but global."""
    if scope is None and job.terms.names_scopes:
        raise errors.InvalidInput(
            f'scope: job "{job.name}" runs for each of its scopes; name one of them',
            hint=f"poller jobs show {job.name}",
            field="scope_kind",
        )
    if scope not in (None, GLOBAL) and not job.terms.names_scopes:
        raise errors.InvalidInput(
            f'scope: job "{job.name}" has no scopes: it runs for the whole cluster',
            hint=f"poller jobs run {job.name}",
            field="scope_kind",
        )
    limits = (plugin_values.LONGEST_KIND, plugin_values.LONGEST_ID)
    for part, longest in zip(scope or (), limits, strict=False):
        if len(part) > longest:
            raise errors.InvalidInput(f"scope: {part:.20}... has more than {longest} characters")
    return scope or GLOBAL


def _refuse_unserved(services: Services, job: CatalogJob) -> None:
    """Raise NotFound for a job that no running worker could run."""
    workers = living(services)
    hint = "install the package where a worker runs, and restart that worker"
    if job.gone_ms is None and job_states.serving_names(job.queue, workers):
        return
    if job.gone_ms is not None:
        cause = f"{job.distribution} no longer has this job"
    elif workers:
        running = formatting.counted(len(workers), "worker")
        cause = f"{running} run, and none has its package, {job.distribution}"
    else:
        cause = "no worker runs"
        hint = "poller worker, or celery -A poller worker, starts one"
    raise errors.NotFound(
        f'no running worker has job "{job.name}"; nothing was sent',
        cause,
        hint,
    )


def _refuse_running(services: Services, job: CatalogJob, plan: Plan, now_ms: int) -> None:
    """Raise AlreadyRunning while the scope runs: a worker would drop the message silently."""
    held = job_lookup.live(services.engine, plan)
    if held is None or (job.terms.overlap and held.plan != plan):
        return
    age = formatting.age(now_ms - held.started_ms)
    raise errors.AlreadyRunning(
        f'job "{job.name}" is running for {plan.scope}; nothing was sent',
        f"{held.runner} has run it for {age}, attempt {held.attempt} of {held.max_attempts}",
        f"poller jobs show {job.name}",
    )


def _demand_ms(services: Services, job: CatalogJob, scope: tuple[str, str], now_ms: int) -> int:
    """The plan time of a run by hand: the whole second, which people can type as a plan.

    The exact instant if that second has a run already, or is a plan of the schedule.
    """
    second_ms = now_ms - now_ms % 1000
    is_planned = job.terms.schedule.latest_ms(second_ms) == second_ms
    plan = Plan(job.name, *scope, second_ms)
    is_taken = is_planned or job_lookup.of_plan(services.engine, plan) is not None
    return now_ms if is_taken else second_ms


def _prepare(services: Services, job: CatalogJob, plan: Plan, now_ms: int) -> bool:
    """Make a given plan claimable. True: it failed before, and is run once more."""
    if not 0 <= plan.plan_ms <= now_ms:
        when = "in the future" if plan.plan_ms > 0 else "before 1970"
        raise errors.InvalidInput(
            f"plan: {formatting.instant(plan.plan_ms)} is {when}",
            hint=f"without a plan it runs now: poller jobs run {job.name}",
            field="plan",
        )
    found = job_lookup.of_plan(services.engine, plan)
    if found is None:
        _refuse_unplanned(job, plan)
        return False
    if found.status is Status.SUCCESS:
        finished = formatting.instant(found.finished_ms or found.started_ms)
        raise errors.InvalidInput(
            f"plan: {formatting.instant(plan.plan_ms)} succeeded at {finished} on {found.runner}",
            hint=f"without a plan it runs now: poller jobs run {job.name}",
            field="plan",
        )
    if not job_ledger.allow_again(services.engine, plan):
        raise errors.StoreConflict("another process took this plan first", hint="repeat it")
    return True


def _refuse_unplanned(job: CatalogJob, plan: Plan) -> None:
    """Raise InvalidInput for an instant that the schedule does not have.

    A job that names its plans itself may have any.
    """
    schedule = job.terms.schedule
    before_ms = schedule.latest_ms(plan.plan_ms)
    if job.terms.names_plans or before_ms == plan.plan_ms:
        return
    after_ms = schedule.next_ms(plan.plan_ms)
    near = f"{formatting.instant(before_ms)} and {formatting.instant(after_ms)}"
    raise errors.InvalidInput(
        f"plan: {formatting.instant(plan.plan_ms)} is no plan of {schedule.text}",
        f"the plans around it are {near}",
        f"poller jobs run {job.name} --plan {formatting.instant(before_ms)}",
        field="plan",
    )


def _send(services: Services, job: CatalogJob, plan: Plan, dispatched_ms: int) -> None:
    """Publish the run to the queue of the job's package. Raises StoreError."""
    from poller.app import app
    from poller.tasks import job as tasks

    scope = (plan.scope_kind, plan.scope_id)
    message = RunMessage(plan.job, *scope, (plan.plan_ms,), dispatched_ms, Origin.DEMAND)
    # A connection of its own: this process sends one message, and then none for long.
    with broker_errors(), app.connection_for_write(services.settings.broker_url) as connection:
        tasks.send_run(app.amqp.Producer(connection), job.queue, message)
