"""The health of the scheduler and of its targets: `/api/v1/scheduler/health`.

The picture of the whole is read at most once a second for all callers of a process. A page of
targets is read for each caller, at a bounded cost (selection/target_page.py). While SQL is away,
the picture still has everything that the board knows; without the board there is none.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from poller import errors
from poller.db.bounded_reads import BoundedReads
from poller.db.inventory import explained_rows
from poller.db.record import dead_letter_rows, runs_of_plans
from poller.db.record.dead_letter_rows import Named
from poller.domain.failures.circuit_breaker import BreakerState
from poller.domain.inventory.key_position import Position
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.why.target_facts import HandOpening, InventoryRow
from poller.domain.why.target_health import TargetHealth
from poller.presentation.store_check import StoreCheck
from poller.presentation.targets.scheduler_health_json import InstancesPage, OverallHealth
from poller.service.selection import target_page
from poller.state.board.breakers import BoardTarget, Breakers
from poller.state.board.unwell_targets import UnwellTargets
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services

T = TypeVar("T")

#: Breakers, dead letters and stale targets that the picture names.
NAMED = 25
#: Targets with the oldest data among which open breakers are looked for.
_OLDEST = 100
MAX_AGE_S = 1.0
#: How long SQL is waited for; without an answer the picture says so.
SQL_PATIENCE_S = 2.0
_MINUTE_MS = 60_000
#: Ages of stale data that are counted.
_AGES_MS = (5 * _MINUTE_MS, 60 * _MINUTE_MS, 24 * 60 * _MINUTE_MS)

_reads = BoundedReads()


def overall(services: Services) -> OverallHealth:
    """Return the picture of the whole, at most a second old. Raises StoreError for the board."""
    with _lock:
        cache = _caches.get(services)
        if cache is None:
            cache = _caches[services] = _OverallCache(services)
    return cache.get()


def instances(
    services: Services, wanted: TargetFilter, after: Position | None, limit: int
) -> InstancesPage:
    """Return one page of the targets that match. Raises UnknownName for an unknown site or
    collector, StoreError for the board; a fault of SQL is in the page.
    """

    def read() -> InstancesPage:
        page = target_page.target_page(services, wanted, after, limit)
        ids = [target.id for target in page.targets]
        following = page.next.text if page.next else None
        found = healths(services, ids, with_history=True)
        return InstancesPage(found, following, page.scanned)

    try:
        return _reads.read(read, SQL_PATIENCE_S, use_late=lambda _: None)
    except errors.StoreError as error:
        services.board.now_ms()  # raises if it was the board
        return InstancesPage(error=str(error))


class _OverallCache:
    """The newest picture of one process, safe for threads: one caller renews it, others wait."""

    def __init__(self, services: Services) -> None:
        self._services = weakref.proxy(services)
        self._stores = StoreCheck(self._services)
        self._lock = threading.Lock()
        self._latest: OverallHealth | None = None
        self._expires_mono = 0.0

    def get(self) -> OverallHealth:
        with self._lock:
            if self._latest is None or time.monotonic() >= self._expires_mono:
                self._latest = _read_overall(self._services, self._stores)
                self._expires_mono = time.monotonic() + MAX_AGE_S
            return self._latest


_lock = threading.Lock()
_caches: weakref.WeakKeyDictionary[Services, _OverallCache] = weakref.WeakKeyDictionary()


def _read_overall(services: Services, check: StoreCheck) -> OverallHealth:
    overview = overview_reader.read(services.redis, services.keys)
    now_ms = overview.as_of_ms
    unwell = UnwellTargets(services.board)
    oldest = [stale.id for stale in unwell.stalest(_OLDEST)]
    openings = _opened_ids(services, now_ms)
    instants_ms = [1, *(now_ms - age_ms for age_ms in _AGES_MS)]

    stores = check.check(overview)
    letters: list[Named] = []
    named: list[TargetHealth] = []
    if not stores.sql_error:
        named = _from_sql(lambda: healths(services, [*openings, *oldest]), [])
        letters = _from_sql(lambda: dead_letter_rows.newest(services.engine, NAMED), [])
    by_id = {each.row.target_id: each for each in named}
    stalest = [by_id[target_id] for target_id in oldest if target_id in by_id]
    not_closed = [each for each in named if each.breaker_state is not BreakerState.CLOSED]
    return OverallHealth(
        overview=overview,
        stores=stores,
        sinks=services.settings.sinks,
        not_closed=not_closed[:NAMED],
        newest_letters=letters,
        stalest=stalest[:NAMED],
        stale_counts=unwell.older_than(instants_ms),
    )


def _opened_ids(services: Services, now_ms: int) -> list[int]:
    """Some targets that an operator keeps open; none while an unusual number is kept open."""
    breakers = Breakers(services.board)
    if not 0 < breakers.count_openings() <= _OLDEST:
        return []
    return sorted(breakers.openings(now_ms))[:NAMED]


def _from_sql(read: Callable[[], T], without: T) -> T:
    """Return what SQL has, or something else while it is away; the stores say so."""
    try:
        return _reads.read(read, SQL_PATIENCE_S, use_late=lambda _: None)
    except errors.StoreError:
        return without


def healths(
    services: Services, ids: Sequence[int], *, with_history: bool = False
) -> list[TargetHealth]:
    """Return the health of these targets, in the order of the ids, without removed ones."""
    if not ids:
        return []
    rows = {row.target_id: row for row in explained_rows.by_ids(services.engine, ids)}
    now_ms = services.board.now_ms()
    placed = Breakers(services.board).show(list(rows), now_ms)
    letters = dead_letter_rows.of_targets(services.engine, ids) if with_history else {}
    plans = {each.id: each.status.run_ms for each in placed.values() if each.status.run_ms}
    runs = runs_of_plans.find(services.engine, plans) if with_history else {}

    found = []
    for target_id in dict.fromkeys(ids):
        if target_id in rows:
            health = _health(rows[target_id], placed.get(target_id), now_ms)
            run, letter = runs.get(target_id), letters.get(target_id)
            found.append(replace(health, letter=letter, run=run))
    return found


def _health(row: InventoryRow, target: BoardTarget | None, now_ms: int) -> TargetHealth:
    if target is None or not row.enabled:
        return TargetHealth(row, now_ms)
    opened = target.opening
    opening = (
        HandOpening(opened.until_ms, opened.since_ms, opened.who, opened.reason) if opened else None
    )
    return TargetHealth(
        row=row,
        now_ms=now_ms,
        status=target.status,
        place=target.place,
        next_ms=target.next_ms,
        opening=opening,
    )
