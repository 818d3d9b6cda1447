"""Explain targets: `poller why` and `/api/v1/targets/{id}/why`. Reads SQL and Redis; works with
one of them away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from poller import errors
from poller.db.alerts import alert_listing
from poller.db.bounded_reads import BoundedReads
from poller.db.inventory import explained_rows
from poller.db.inventory.explained_rows import NO_NEIGHBOURS, Neighbours
from poller.db.record import run_pages
from poller.domain.access.actor import Actor
from poller.domain.alerts.alert import Alert
from poller.domain.failures.error_codes import Reach
from poller.domain.failures.quarantine import Record
from poller.domain.record.overview import State
from poller.domain.record.run import Run
from poller.domain.record.target_status import Status
from poller.domain.why import explanation
from poller.domain.why.explanation import Explanation
from poller.domain.why.target_facts import (
    ClusterFacts,
    InventoryRow,
    QueueFacts,
    Rules,
    SiteFacts,
    StoreFaults,
    TargetFacts,
)
from poller.service.inventory import option_secrets
from poller.settings import Settings, policies
from poller.state import write_check
from poller.state.cluster import target_evidence
from poller.state.cluster.target_evidence import Evidence

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Runs that an explanation names.
RUNS = 5
#: How long SQL is waited for; without an answer the explanation says so.
SQL_PATIENCE_S = 2.0

_reads = BoundedReads()


@dataclass(frozen=True, slots=True)
class _Stored:
    """Rows of SQL, or why there are none."""

    rows: Sequence[InventoryRow] = ()
    neighbours: Neighbours = NO_NEIGHBOURS
    runs: Mapping[int, Sequence[Run]] = field(default_factory=dict)
    alerts: Sequence[Alert] = ()  # of the device and its targets
    error: str = ""


def explain_device(
    services: Services, device: str, target: str | None = None, *, with_runs: bool = True
) -> list[Explanation]:
    """Explain every target of a device, or the named one, the worst first.

    Raises NotFound. While SQL is away, the one explanation says so.
    """

    def read_rows() -> list[InventoryRow]:
        return _shown(explained_rows.of_device(services.engine, device, target), None)

    stored = _read_sql(services, read_rows, with_runs)
    if stored.error:
        name = f"{device}/{target}" if target else device
        return [_without_sql(services, stored.error, asked=name)]
    return _explain(services, stored)


def explain_target(services: Services, actor: Actor, target_id: int) -> Explanation:
    """Explain one target by its id.

    Raises NotFound, also for a target that the actor may not see. Raises StoreUnavailable for an
    actor of one site while SQL cannot tell the site of the target.
    """

    def read_rows() -> list[InventoryRow]:
        return _shown(explained_rows.by_ids(services.engine, [target_id]), actor)

    stored = _read_sql(services, read_rows, with_runs=True)
    if stored.error and actor.site is None:
        return _without_sql(services, stored.error, target_id=target_id)
    if stored.error:
        raise errors.StoreUnavailable("the site of the target cannot be read", stored.error)
    is_visible = stored.rows and actor.site in (None, stored.rows[0].site)
    if not is_visible:
        raise errors.NotFound(f"no target has the id {target_id}", hint="poller target list --json")
    [found] = _explain(services, stored)
    return found


def _shown(rows: Iterable[InventoryRow], actor: Actor | None) -> list[InventoryRow]:
    """Rows with their options as the actor may see them."""
    return [replace(row, options=option_secrets.shown_options(row.options, actor)) for row in rows]


def _read_sql(
    services: Services, read_rows: Callable[[], list[InventoryRow]], with_runs: bool
) -> _Stored:
    def read() -> _Stored:
        rows = read_rows()
        if not rows:
            return _Stored()
        first = rows[0]  # all rows are of one device
        neighbours = explained_rows.neighbours(services.engine, first.site, first.device_id)
        ids = [row.target_id for row in rows]
        runs = run_pages.newest_of_each(services.engine, ids, RUNS) if with_runs else {}
        alerts = alert_listing.open_of_device(services.engine, first.device_id)
        return _Stored(rows, neighbours, runs, alerts)

    try:
        return _reads.read(read, SQL_PATIENCE_S, use_late=lambda _: None)
    except errors.StoreError as error:
        return _Stored(error=str(error))


def _explain(services: Services, stored: _Stored) -> list[Explanation]:
    if not stored.rows:
        return []
    facts = _facts(services, stored)
    return sorted((explanation.explain(each) for each in facts), key=lambda each: each.rank)


def _facts(services: Services, stored: _Stored) -> list[TargetFacts]:
    ids = [row.target_id for row in stored.rows]
    site = stored.rows[0].site
    rules = _rules(services.settings)
    neighbours = [
        each for its_targets in stored.neighbours.targets.values() for each in its_targets
    ]
    try:
        seen = target_evidence.read(services.redis, services.keys, ids, site, neighbours)
    except errors.StoreError as error:
        stores = StoreFaults(redis=str(error))
        return [
            TargetFacts(
                now_ms=0,
                target_id=row.target_id,
                stores=stores,
                inventory=row,
                alerts=_alerts_of(row, stored),
                rules=rules,
            )
            for row in stored.rows
        ]

    site_facts = _site(site, seen, stored.neighbours)
    common = TargetFacts(
        now_ms=seen.now_ms,
        target_id=0,
        stores=StoreFaults(write=write_check.error(services.redis, services.keys)),
        site=site_facts,
        rules=rules,
    )
    return [_of_target(common, row, seen, stored) for row in stored.rows]


def _of_target(
    common: TargetFacts, row: InventoryRow, seen: Evidence, stored: _Stored
) -> TargetFacts:
    board = seen.rows.get(row.target_id)
    queue = board.queue if board else row.queue
    return replace(
        common,
        target_id=row.target_id,
        inventory=row,
        board=board,
        queue=seen.queues.get(queue, QueueFacts()),
        cluster=_cluster(seen, row.collector),
        runs=stored.runs.get(row.target_id, ()),
        alerts=_alerts_of(row, stored),
    )


def _alerts_of(row: InventoryRow, stored: _Stored) -> list[Alert]:
    """The alerts of a target, and those of its device as a whole."""
    wanted = (None, row.target_id)
    return [each for each in stored.alerts if each.subject.target_id in wanted]


def _without_sql(
    services: Services, sql_error: str, target_id: int = 0, asked: str = ""
) -> Explanation:
    """The explanation of a target whose rows cannot be read; its board row, if its id is known."""
    rules = _rules(services.settings)
    stores = StoreFaults(sql=sql_error)
    try:
        seen = target_evidence.read(services.redis, services.keys, [target_id])
    except errors.StoreError as error:
        stores = replace(stores, redis=str(error))
        facts = TargetFacts(0, target_id, asked, stores, rules=rules)
        return explanation.explain(facts)

    facts = TargetFacts(
        now_ms=seen.now_ms,
        target_id=target_id,
        asked=asked,
        stores=stores,
        board=seen.rows.get(target_id),
        cluster=seen.cluster,
        rules=rules,
    )
    return explanation.explain(facts)


def _cluster(seen: Evidence, collector: str) -> ClusterFacts:
    crashes: dict[str, Record] = {}
    for release, record in seen.crashes.items():
        if release.collector == collector:
            crashes[release.distribution] = record
    return replace(seen.cluster, crashes=crashes)


def _site(name: str, seen: Evidence, neighbours: Neighbours) -> SiteFacts:
    polled = 0
    answering = 0
    for its_targets in neighbours.targets.values():
        statuses = [seen.neighbours.get(each, Status()) for each in its_targets]
        if any(status.state is not State.UNKNOWN for status in statuses):
            polled += 1
            answering += any(status.reach is Reach.ANSWERED for status in statuses)
    return SiteFacts(
        name=name,
        outage=seen.outage,
        neighbours=polled,
        answering=answering,
        is_sample=neighbours.is_sample,
    )


def _rules(settings: Settings) -> Rules:
    return Rules(
        adaptive=policies.adaptive_interval(settings),
        breaker=policies.breaker_rules(settings),
        confirm_ms=round(settings.breaker_confirm_s * 1000),
        slow_retry_ms=round(settings.deadletter_retry_s * 1000),
    )
