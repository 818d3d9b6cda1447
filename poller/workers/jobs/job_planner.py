"""Which plans of some jobs are due, and a message for each scope that has any.

Planning twice is harmless: the ledger has one run for each plan. `scopes` and `plans` are plugin
code, see plugin_calls.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_history
from poller.domain.batched import batched
from poller.domain.jobs import job_queue, plan_choice
from poller.domain.jobs.plan_choice import ScopeHistory
from poller.domain.jobs.run_message import RunMessage
from poller.jobs import api
from poller.jobs.api import JobSpec, Scope
from poller.observability import logs
from poller.observability.report_quota import Quota
from poller.state.cluster import worker_queues
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.jobs import scope_lists
from poller.workers.jobs.plugin_calls import PluginCalls

log = logs.get(__name__)

#: Threads that plan at a time. The names of further messages are left to them.
MOST_PLANNERS = 2
#: Names that are planned together.
CHUNK = 200
#: Jobs whose plugin code is called at a time.
CALLS_AT_A_TIME = 50
#: With more messages than this in a queue nothing is added: its workers are behind, and what is due
#: then is planned when it is due again.
LONGEST_QUEUE = 5_000
LINES_PER_MINUTE = 20

#: Publishes runs, each with its queue. Raises StoreError.
SendRuns = Callable[[Iterable[tuple[str, RunMessage]]], None]
#: Scopes of some jobs.
ScopesByJob = Mapping[str, Sequence[Scope]]


class Planner:
    """One per worker process, safe for threads."""

    def __init__(self, services: Services, lending: CapacityLending, send: SendRuns) -> None:
        self._services = services
        self._lending = lending
        self._send = send
        self._calls = PluginCalls(services.redactor.text)
        self._lines = Quota(LINES_PER_MINUTE)
        self._waiting: dict[str, None] = {}  # names, in the order they came
        self._planners = 0
        self._lock = threading.Lock()

    def plan(self, names: Iterable[str]) -> None:
        """Publish the due plans of these jobs, or leave them to a thread that plans already.

        Raises StoreError: the leader fires the jobs again.
        """
        with self._lock:
            self._waiting.update(dict.fromkeys(names))
            if self._planners >= MOST_PLANNERS:
                return
            self._planners += 1
        try:
            with self._lending.lend_place():
                while chunk := self._take():
                    self._plan(chunk)
        except BaseException:
            self._leave()
            raise

    def _take(self) -> list[str]:
        """The next names. Without any this thread no longer counts as one that plans."""
        with self._lock:
            chunk = list(self._waiting)[:CHUNK]
            for name in chunk:
                del self._waiting[name]
            if not chunk:
                self._planners -= 1
            return chunk

    def _leave(self) -> None:
        with self._lock:
            self._planners -= 1

    def _plan(self, names: Sequence[str]) -> None:
        now_ms = database_clock.now_ms(self._services.engine)
        stored = job_catalog.planning_faults(self._services.engine, self._installed(names))
        specs = self._specs(stored)
        whole = {name: [api.GLOBAL] for name, spec in specs.items() if _is_global(spec)}
        self._plan_scopes(whole, now_ms)

        others = [name for name in specs if name not in whole]
        for chunk in batched(others, CALLS_AT_A_TIME):
            functions = {
                name: partial(scope_lists.listed, specs[name], self._services, now_ms)
                for name in chunk
            }
            for scopes in self._calls.results("scopes", functions):
                self._plan_scopes(scopes, now_ms)
        self._note_faults(specs, stored)

    def _note_faults(self, specs: Mapping[str, JobSpec], stored: Mapping[str, str]) -> None:
        """Store what became of the plugin calls, where it differs from what is stored."""
        for name, spec in specs.items():
            before = stored[name]
            has_calls = spec.plans is not None or not _is_global(spec)
            fault = self._calls.faults.get(name, before) if has_calls else ""
            fault = fault[: job_catalog.LONGEST_FAULT]
            if fault != before:
                job_catalog.note_planning(self._services.engine, name, fault)

    def _installed(self, names: Sequence[str]) -> list[str]:
        """The names of jobs that are installed here."""
        for name in names:
            is_unknown = name not in self._services.jobs.jobs
            if is_unknown and self._lines.admit(("unknown", name)) is not None:
                log.warning("job_not_installed", job=name)
        return [name for name in names if name in self._services.jobs.jobs]

    def _specs(self, names: Iterable[str]) -> dict[str, JobSpec]:
        """The jobs of these names whose queue has room."""
        installed = self._services.jobs.jobs
        specs = {name: installed[name] for name in names}
        queues = self._open_queues({self._queue(name) for name in specs})
        return {name: spec for name, spec in specs.items() if self._queue(name) in queues}

    def _open_queues(self, queues: set[str]) -> set[str]:
        """The queues that are not too long for further messages."""
        depths = worker_queues.depths(self._services.redis, sorted(queues))
        for queue, depth in depths.items():
            if depth > LONGEST_QUEUE and self._lines.admit(("queue", queue)) is not None:
                log.warning("job_queue_long", queue=queue, waiting=depth)
        return {queue for queue, depth in depths.items() if depth <= LONGEST_QUEUE}

    def _queue(self, name: str) -> str:
        return job_queue.queue_of(self._services.jobs.distributions[name])

    def _plan_scopes(self, scopes: ScopesByJob, now_ms: int) -> None:
        """Choose the due plans of some scopes, and publish them all at once."""
        keys = [(job, *scope) for job, listed in scopes.items() for scope in listed]
        if not keys:
            return
        histories = job_history.planning(self._services.engine, keys)
        by_job: dict[str, dict[Scope, ScopeHistory]] = {}
        for job, kind, scope_id in keys:
            history = histories.get((job, kind, scope_id), ScopeHistory())
            by_job.setdefault(job, {})[Scope(kind, scope_id)] = history

        installed = self._services.jobs.jobs
        plain = {job: each for job, each in by_job.items() if installed[job].plans is None}
        hooked = {job: each for job, each in by_job.items() if job not in plain}
        self._publish(plain, {}, now_ms)
        for named in self._named(hooked, now_ms):
            self._publish({job: hooked[job] for job in named}, named, now_ms)

    def _named(
        self, histories: Mapping[str, Mapping[Scope, ScopeHistory]], now_ms: int
    ) -> Iterable[dict[str, dict[Scope, list[int]]]]:
        """The plans that the hooks of some jobs name, in groups as they come."""
        installed = self._services.jobs.jobs
        functions = {}
        for job, each in histories.items():
            hook = installed[job].plans
            if hook is not None:
                functions[job] = partial(scope_lists.named, hook, each, now_ms)
        yield from self._calls.results("plans", functions)

    def _publish(
        self,
        histories: Mapping[str, Mapping[Scope, ScopeHistory]],
        named: Mapping[str, Mapping[Scope, list[int]]],
        now_ms: int,
    ) -> None:
        runs = []
        for job, scopes in histories.items():
            terms = self._services.jobs.jobs[job].terms
            for scope, history in scopes.items():
                names = named[job][scope] if job in named else None
                plans_ms = plan_choice.due_plans(terms, history, now_ms, names)
                if plans_ms:
                    message = RunMessage(job, *scope, tuple(plans_ms), now_ms)
                    runs.append((self._queue(job), message))
        if runs:
            self._send(runs)


def _is_global(spec: JobSpec) -> bool:
    """Whether the job concerns the whole cluster, by our own function."""
    return spec.scopes is api.global_scope
