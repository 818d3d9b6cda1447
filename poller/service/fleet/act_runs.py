"""Large acts run beside their request: a page follows them, and finds the result for an hour.

The record is in Redis, so any web process can show it. A process that ends takes its runs along: a
record that was not renewed for a while says so, and the act can be done again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from poller import errors, event_publisher
from poller.domain.access.actor import Actor
from poller.observability import logs
from poller.service.fleet.fleet_plan import FleetDone, FleetPlan
from poller.state.requests import kept_acts

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)

#: Acts on fewer are done within their request.
LARGE = 1_000
#: Acts of one process at the same time.
_MOST_RUNS = 2
_RENEWED_S = 2.0
#: A record that is older than this belongs to a process that has ended.
_LOST_MS = 30_000


@dataclass(frozen=True, slots=True)
class ActRun:
    """How far an act is. `error` says why it ended early; `seen_ms` is the last sign of life."""

    phrase: str
    total: int
    where: str = ""  # the filter, for the way back to the list
    site: str | None = None  # of the actor
    done: int = 0
    is_over: bool = False
    text: str = ""
    ticket: str = ""
    undo: str = ""
    error: str = ""
    seen_ms: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether the process that ran it has ended."""
        return not self.is_over and event_publisher.now_ms() - self.seen_ms > _LOST_MS


def begin(services: Services, actor: Actor, plan: FleetPlan, where: str) -> str:
    """Run a confirmed act in a thread. Return its name. Raises StoreConflict, StoreError."""
    if not _slots.acquire(blocking=False):
        raise errors.StoreConflict(
            f"{_MOST_RUNS} large acts run already, and nothing was done", hint="wait for their end"
        )
    name = secrets.token_hex(16)
    try:
        run = ActRun(plan.phrase, len(plan.names), where, actor.site)
        runner = _Runner(services, name, run)
        runner.keep()
    except errors.StoreError:
        _slots.release()
        raise
    threading.Thread(target=runner.carry_out, args=(plan,), name="act", daemon=True).start()
    return name


def show(services: Services, actor: Actor, name: str) -> ActRun:
    """Return how far an act is. Raises NotFound, also for one of another site, StoreError."""
    record = kept_acts.progress(services.redis, services.keys, name[:64])
    if record is None or actor.site not in (None, record["site"]):
        raise errors.NotFound("no act has this name", hint="its result is kept for an hour")
    return _of_record(record)


class _Runner:
    """One act in its thread."""

    def __init__(self, services: Services, name: str, run: ActRun) -> None:
        self._services = services
        self._name = name
        self._run = run
        self._kept_mono = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def keep(self, **changes: Any) -> None:
        """Store how far the act is. Nothing is stored after its end. Raises StoreError."""
        with self._lock:
            if self._run.is_over:
                return
            self._run = replace(self._run, seen_ms=event_publisher.now_ms(), **changes)
            self._kept_mono = time.monotonic()
            record = asdict(self._run)
            kept_acts.keep_progress(self._services.redis, self._services.keys, self._name, record)

    def carry_out(self, plan: FleetPlan) -> None:
        """Do it, and keep the result or the error."""
        threading.Thread(target=self._stay_alive, name="act-sign", daemon=True).start()
        error = ""
        done = FleetDone("")
        try:
            done = plan.carry_out(self._tell)
        except errors.PollerError as refused:
            error = str(refused)
        except Exception as fault:  # door: the end of this thread
            log.exception("act_failed", act=plan.phrase)
            error = f"{type(fault).__name__}: {fault}"
        finally:
            self._ended.set()
            _slots.release()
        number = self._run.done if error else self._run.total
        self._keep_quietly(is_over=True, done=number, error=error, **asdict(done))

    def _tell(self, done: int) -> None:
        if time.monotonic() - self._kept_mono >= _RENEWED_S:
            self._keep_quietly(done=done)

    def _stay_alive(self) -> None:
        """Renew the record while one long step runs."""
        while not self._ended.wait(_RENEWED_S):
            self._keep_quietly()

    def _keep_quietly(self, **changes: Any) -> None:
        try:
            self.keep(**changes)
        except errors.StoreError as error:
            log.warning("act_progress_not_kept", act=self._run.phrase, error=str(error))


def _of_record(record: Mapping[str, Any]) -> ActRun:
    return ActRun(**record)


_slots = threading.BoundedSemaphore(_MOST_RUNS)
