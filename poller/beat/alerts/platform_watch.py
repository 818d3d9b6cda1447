"""Troubles of the platform itself, as the overview, the workers' reports and the jobs show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.bootstrap import Services
from poller.db.alerts import alert_facts
from poller.domain.alerts.flow import level_signs
from poller.domain.alerts.flow.keeping import Alerts
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.flow.level_signs import Trouble
from poller.domain.alerts.flow.sign import Sign
from poller.domain.alerts.rule import PlatformProblem, PlatformTrouble
from poller.domain.record import sink_report
from poller.domain.record.overview import Overview, Worker
from poller.domain.record.sink_report import SinkState
from poller.state.cluster import overview_reader, worker_registry

#: A pause without a leader that is told. A failover takes some seconds.
NO_LEADER_MS = 60_000
#: The time for which such a pause is told after its end.
TOLD_FOR_MS = 120_000
#: A part of the platform of which nothing is heard for so long is gone for good.
FORGOTTEN_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class PlatformLook:
    """The troubles that hold, and the parts that are known to be well."""

    troubles: Mapping[tuple[PlatformProblem, str], Trouble]
    well: frozenset[tuple[PlatformProblem, str]]

    def signs(self, rules: KnownRules, now_ms: int) -> Iterator[Sign]:
        """Yield the signs of the troubles."""
        for trouble in self.troubles.values():
            yield from level_signs.troubled_platform(rules, trouble, now_ms)

    def gone(self, alerts: Alerts, rules: KnownRules, now_ms: int) -> dict[str, int]:
        """Return the alerts whose trouble is over."""
        found = {}
        for identity, alert in alerts.items():
            rule = rules.by_name.get(alert.rule)
            if rule is None or not isinstance(rule.condition, PlatformTrouble):
                continue
            part = (rule.condition.problem, alert.subject.series)
            is_forgotten = now_ms - alert.seen_ms > FORGOTTEN_MS
            if part not in self.troubles and (part in self.well or is_forgotten):
                found[identity] = now_ms
        return found


class PlatformWatch:
    """Reads the state of the platform. Every method raises StoreError."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._led_since_ms = 0
        self._led_before_ms = 0

    def begin_term(self, before_ms: int, now_ms: int) -> None:
        """Note that this process leads since now, and until when the last leader did."""
        self._led_before_ms = before_ms
        self._led_since_ms = now_ms

    @property
    def had_pause(self) -> bool:
        """Whether nobody led for a while before this term."""
        return 0 < self._led_before_ms < self._led_since_ms - NO_LEADER_MS

    def look(self, now_ms: int) -> PlatformLook:
        """Look at all parts of the platform."""
        services = self._services
        overview = overview_reader.read(services.redis, services.keys)
        troubles: dict[tuple[PlatformProblem, str], Trouble] = {}
        well: set[tuple[PlatformProblem, str]] = set()
        found = (
            self._leader(now_ms),
            _queues(overview),
            _sinks(overview, now_ms),
            _workers(overview.workers, now_ms),
            self._jobs(),
        )
        for part in found:
            for trouble, is_bad in part:
                key = (trouble.problem, trouble.name)
                if is_bad:
                    troubles[key] = trouble
                else:
                    well.add(key)
        return PlatformLook(troubles, frozenset(well - troubles.keys()))

    def _leader(self, now_ms: int) -> Iterator[tuple[Trouble, bool]]:
        is_told = self.had_pause and now_ms < self._led_since_ms + TOLD_FOR_MS
        away_ms = self._led_since_ms - self._led_before_ms if is_told else 0
        detail = f"no scheduler led for {away_ms // 1000} s; one leads again" if is_told else ""
        trouble = Trouble(PlatformProblem.NO_LEADER, since_ms=self._led_before_ms, detail=detail)
        yield trouble, is_told

    def _jobs(self) -> Iterator[tuple[Trouble, bool]]:
        overdue = alert_facts.job_names(self._services.engine)
        for name, is_overdue in overdue.items():
            yield Trouble(PlatformProblem.JOB_OVERDUE, name, detail="is overdue"), is_overdue


def _queues(overview: Overview) -> Iterator[tuple[Trouble, bool]]:
    """A queue whose workers do no polls at all is told by their loss."""
    for load in overview.loads:
        if load.shortage is None:
            continue
        detail = f"needs {load.shortage:.1f} times the workers" if load.shortage else ""
        trouble = Trouble(
            PlatformProblem.CAPACITY_SHORT, load.queue, detail=detail, value=load.shortage
        )
        yield trouble, bool(load.shortage)


def _sinks(overview: Overview, now_ms: int) -> Iterator[tuple[Trouble, bool]]:
    living = [each for each in overview.workers if worker_registry.is_alive(each, now_ms)]
    reports = sink_report.combine(report for worker in living for report in worker.sinks)
    for report in reports:
        reason = f": {report.error}" if report.error else ""
        trouble = Trouble(
            PlatformProblem.SINK_BEHIND,
            report.name,
            since_ms=report.oldest_ms,
            detail=f"is {report.state.value}{reason}",
            value=report.lag_ms(now_ms) / 1000,
        )
        yield trouble, report.state is not SinkState.OK


def _workers(workers: Sequence[Worker], now_ms: int) -> Iterator[tuple[Trouble, bool]]:
    """Every registered worker. One that left is not registered, and lost ones are forgotten."""
    for worker in workers:
        is_lost = not worker_registry.is_alive(worker, now_ms)
        trouble = Trouble(
            PlatformProblem.WORKER_LOST,
            worker.name,
            since_ms=worker.seen_ms,
            detail="sends no heartbeat",
        )
        yield trouble, is_lost
