"""Polls for scrapes and for pages on a worker. Each runs on the event loop beside the batches and
takes no thread of Celery, so that a slow stranger delays no scheduled poll.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from poller import errors
from poller.collectors import discovery_runner
from poller.collectors.api import Collector, Credential, Discovers, Poll, needs_credential
from poller.collectors.credentials import Community
from poller.collectors.poll_runner import PollReport, run_and_report
from poller.domain.failures import error_codes, outcome
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.scrapes.scrape_poll import MOST_CHARACTERS, FoundTarget, ScrapePoll, ScrapeResult
from poller.observability import logs
from poller.state.requests.scrape_exchange import ScrapeExchange
from poller.workers.batch.poller_parts import PollerParts
from poller.workers.guard.isolation import PollOverride

log = logs.get(__name__)

#: The id of a target that no inventory has.
NO_TARGET = 0
#: A failure is shared by those who ask at the same time, not by later ones.
KEEP_FAILURE_MS = 1_000
#: Results are written to Redis beside the event loop.
_WRITERS = 2


class _Prepared(NamedTuple):
    """A poll that can be started."""

    collector: Collector
    options: Any
    credential: Credential | None
    override: PollOverride | None


class ScrapeRunner:
    """One per worker process; `run` is called from many threads and does not wait for the poll."""

    def __init__(self, parts: PollerParts) -> None:
        services = parts.services
        self._parts = parts
        self._exchange = ScrapeExchange(services.redis, services.keys)
        self._most = services.settings.scrape_polls
        self._keep_ms = round(services.settings.scrape_keep_s * 1000)
        self._writers = ThreadPoolExecutor(_WRITERS, "scrape-results")
        self._lock = threading.Lock()
        self._running: set[str] = set()  # names of polls

    def run(self, wanted: ScrapePoll, name: str, left_s: float) -> None:
        """Start the poll, or store why it cannot be started. Raises StoreError.

        A poll that runs here is not started again: a Redis that lost its memory sends it twice.
        """
        with self._lock:
            if name in self._running:
                return
            is_full = len(self._running) >= self._most
            if not is_full:
                self._running.add(name)
        if is_full:
            self._finish(name, _refused(error_codes.HOST_BUSY, "the worker is busy with scrapes"))
            return
        try:
            prepared = self._prepared(wanted)
        except errors.StoreError as error:
            self._end(name)
            log.warning("scrape_not_started", error=str(error))
            self._finish(name, _refused(error_codes.HOST_BUSY, "the worker cannot use a store"))
            return
        except errors.PollerError as error:
            self._end(name)
            self._finish(name, _refused(error_codes.OPTIONS_INVALID, str(error)))
            return
        except BaseException:
            self._end(name)
            raise
        self._parts.poll_loop.submit(self._poll(prepared, wanted, name, left_s))

    def _prepared(self, wanted: ScrapePoll) -> _Prepared:
        registry = self._parts.services.registry
        collector = registry.get(wanted.collector)
        options = registry.options(wanted.collector, wanted.options)
        credential = self._credential(wanted, collector)
        if credential is None and needs_credential(collector, options):
            raise errors.InvalidInput(f"{collector.name} needs a credential", hint="auth=NAME")
        override = self._parts.isolation.overrides([collector.name]).get(collector.name)
        return _Prepared(collector, options, credential, override)

    def _credential(self, wanted: ScrapePoll, collector: Collector) -> Credential | None:
        if wanted.is_public:
            return Community.from_fields({"community": "public"})
        if wanted.credential_id is None:
            return None
        found = self._parts.credentials.get([wanted.credential_id])[wanted.credential_id]
        if isinstance(found, errors.PollerError):
            raise found
        if not isinstance(found, collector.credentials):
            raise errors.InvalidInput(f"the credential is of no kind that {collector.name} takes")
        return found

    async def _poll(
        self, prepared: _Prepared, wanted: ScrapePoll, name: str, left_s: float
    ) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            poll = Poll(
                target_id=NO_TARGET,
                device=wanted.address,
                address=wanted.address,
                options=prepared.options,
                credential=prepared.credential,
                deadline=started + left_s,
            )
            if wanted.discovers:
                result = await _discovered(prepared, poll, left_s)
            else:
                report = await _report(prepared, poll, wanted, left_s)
                duration_ms = round((loop.time() - started) * 1000)
                result = _result(report, duration_ms, round(left_s * 1000))
        except Exception as error:  # door: the end of this task; somebody waits for its result
            log.exception("scrape_broke", collector=wanted.collector)
            result = _refused(error_codes.COLLECTOR_CRASHED, type(error).__name__)
        finally:
            self._end(name)
        await loop.run_in_executor(self._writers, self._finish_quietly, name, result)

    def _end(self, name: str) -> None:
        with self._lock:
            self._running.discard(name)

    def _finish_quietly(self, name: str, result: ScrapeResult) -> None:
        try:
            self._finish(name, result)
        except errors.StoreError as error:
            log.warning("scrape_not_answered", error=str(error))

    def _finish(self, name: str, result: ScrapeResult) -> None:
        text = result.to_text()
        if len(text) > MOST_CHARACTERS:
            samples = len(result.readings.values) if result.readings else 0
            message = f"{samples:,} samples are too many for a scrape; add the device to poller"
            result = _refused(error_codes.PROTOCOL_ERROR, message)
            text = result.to_text()
        keep_ms = self._keep_ms if result.readings else KEEP_FAILURE_MS
        self._exchange.finish(name, text, keep_ms)


async def _discovered(prepared: _Prepared, poll: Poll, left_s: float) -> ScrapeResult:
    """Let the collector suggest targets. One that must not run in this process suggests none."""
    name = prepared.collector.name
    if prepared.override is not None or not isinstance(prepared.collector, Discovers):
        text = f"{name} does not discover here: it is isolated or quarantined; type its options"
        return _refused(error_codes.OPTIONS_INVALID, text)
    try:
        found = await discovery_runner.suggestions(prepared.collector, poll, left_s)
    except errors.DeviceError as error:
        message = outcome.clean(str(error))
        limit_ms = round(left_s * 1000)
        return ScrapeResult(Result.FAILED, error.error_code, message, limit_ms=limit_ms)
    targets = [FoundTarget(each.options, each.reason, each.name, each.facts) for each in found]
    return ScrapeResult(Result.OK, found=targets)


async def _report(prepared: _Prepared, poll: Poll, wanted: ScrapePoll, left_s: float) -> PollReport:
    """Poll in this process, or in the child process of an isolated collector."""
    if prepared.override is None:
        return await run_and_report(prepared.collector, poll)
    timeout_ms = round(left_s * 1000)
    target = PollTarget(
        id=NO_TARGET,
        version=time.monotonic_ns(),  # the child keeps nothing of an earlier poll
        name="scrape",
        device_id=0,
        device=wanted.address,
        address=wanted.address,
        site="",
        collector=wanted.collector,
        interval_ms=timeout_ms,
        timeout_ms=timeout_ms,
        options=wanted.options,
    )
    return PollReport(await prepared.override(target, poll))


def _result(report: PollReport, duration_ms: int, limit_ms: int) -> ScrapeResult:
    found: Outcome = report.outcome
    traffic = report.traffic
    return ScrapeResult(
        result=found.result,
        code=found.error_code,
        message=found.message,
        failed=[(each.part, outcome.clean(str(each.error))) for each in report.failures],
        sent=traffic.sent if traffic else 0,
        retried=traffic.retried if traffic else 0,
        duration_ms=duration_ms,
        readings=found.readings,
        limit_ms=limit_ms,
    )


def _refused(code: str, text: str) -> ScrapeResult:
    return ScrapeResult(Result.REFUSED, code, outcome.clean(text))
