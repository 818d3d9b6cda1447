"""Sends polls of scrapes to the cluster and waits for their results, without a thread each.

However many scrapes ask for the same poll, in however many web processes: it runs once.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from poller import wakeups
from poller.domain.access.actor import Actor
from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing
from poller.domain.scrapes.scrape_poll import ANSWER_MS, ScrapePoll, ScrapeResult
from poller.observability import logs
from poller.state.cluster import worker_registry
from poller.state.requests.scrape_exchange import Place, ScrapeExchange

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)
T = TypeVar("T")

#: A result is looked for this often, in case its notice was lost.
LOOK_S = 0.5
#: The workers are read again after this long.
WORKERS_S = 2.0
_THREADS = 8


class NoAnswer(Exception):
    """Raised when no worker polled: the text says why."""


class Polled(NamedTuple):
    """The result of a poll. One caller of all who share the poll is the first."""

    result: ScrapeResult
    is_first: bool


class ScrapeSender:
    """One per web process. `poll` is used on one event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._exchange = ScrapeExchange(services.redis, services.keys)
        self._threads = ThreadPoolExecutor(_THREADS, "scrapes")
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._workers: tuple[float, list[Worker]] = (0.0, [])

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a blocking call beside the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    async def poll(
        self, wanted: ScrapePoll, within_s: float, actor: Actor, margin_ms: int = ANSWER_MS
    ) -> Polled:
        """Return the result of a poll that ends in time. Raises NoAnswer, StoreError.

        A poll of another scrape that had less time is not the last word: it is sent again. The
        worker ends its poll by the margin earlier.
        """
        until_mono = time.monotonic() + within_s
        self._listen()
        name = wanted.name
        ended = asyncio.Event()
        self._waiting.setdefault(name, set()).add(ended)
        has_sent = False
        try:
            while (left_s := until_mono - time.monotonic()) > 0:
                place, result = await self.in_thread(
                    self._look, wanted, name, left_s, actor, margin_ms
                )
                has_sent = has_sent or place is Place.SEND
                if result is not None:
                    return Polled(result, has_sent)
                await _wait(ended, min(LOOK_S, left_s))
                ended.clear()
        finally:
            self._forget(name, ended)
        raise NoAnswer(f"no worker answered within {within_s:.1f} s; `poller status` says why")

    def close(self) -> None:
        """End the thread that listens for results."""
        self._stopping.set()

    def _look(
        self, wanted: ScrapePoll, name: str, within_s: float, actor: Actor, margin_ms: int
    ) -> tuple[Place, ScrapeResult | None]:
        """Return the place of the poll, with its result if it is known. Sends it unless it runs."""
        settings = self._services.settings
        caller = secrets.token_hex(8)
        time_ms = max(1, round(within_s * 1000))
        most, scraper = settings.scrape_polls, f"{actor.kind.value} {actor.name}"
        place, text = self._exchange.open(name, caller, time_ms, most, scraper)
        if place is Place.RESULT:
            result = ScrapeResult.from_text(text)
            had_less = result.was_cut_before(time_ms + ANSWER_MS - margin_ms)
            return place, None if had_less else result
        if place is Place.FULL:
            raise NoAnswer(f"{most} polls for scrapes run already (setting scrape_polls)")
        if place is Place.SHARE:
            raise NoAnswer(
                f"{text} polls for {scraper} run already, its share beside other scrapers "
                "(setting scrape_polls)"
            )
        if place is Place.SEND:
            try:
                self._send(wanted, name, int(text), within_s - margin_ms / 1000)
            except BaseException:
                self._exchange.withdraw(name)
                raise
        return place, None

    def _send(self, wanted: ScrapePoll, name: str, now_ms: int, left_s: float) -> None:
        from poller.tasks import scrape  # Celery, which a process without scrapes does not need

        serving = [worker for worker in self._living(now_ms) if _serves(worker, wanted)]
        if not serving:
            tags = "".join(f" and the tag {key}={value}" for key, value in wanted.requires.items())
            raise NoAnswer(f"no running worker has the collector {wanted.collector}{tags}")
        left_s = max(0.0, left_s)
        scrape.send(_reaching(wanted, serving), name, now_ms + round(left_s * 1000), left_s)

    def _living(self, now_ms: int) -> list[Worker]:
        read_mono, workers = self._workers
        if time.monotonic() - read_mono > WORKERS_S:
            services = self._services
            workers = worker_registry.living(services.redis, services.keys, now_ms)
            self._workers = (time.monotonic(), workers)
        return workers

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            channel = self._services.keys.scraped
            wakeups.listen(self._services.redis, channel, self._on_notice, self._stopping)
        self._loop = loop

    def _on_notice(self, name: str) -> None:
        """Wake those who wait for a result, from the thread that listens."""
        if self._loop is not None and (name in self._waiting or name == wakeups.RESUBSCRIBED):
            try:
                self._loop.call_soon_threadsafe(self._wake, name)
            except RuntimeError:  # the loop has ended
                self._stopping.set()

    def _wake(self, name: str) -> None:
        for ended in self._waiting.get(name, ()):
            ended.set()

    def _forget(self, name: str, ended: asyncio.Event) -> None:
        waiting = self._waiting[name]
        waiting.discard(ended)
        if not waiting:
            del self._waiting[name]


def _reaching(wanted: ScrapePoll, serving: Sequence[Worker]) -> ScrapePoll:
    """Return the poll as it reaches one of these workers.

    A worker takes polls up from the queues of its domains, and from that of all its own tags. No
    domain has the tags of a device that is not stored yet.
    """
    queues = {queue for worker in serving for queue in queue_routing.poll_queues(worker.queues)}
    required = [queue_routing.parse(queue)[1] for queue in queues]
    if not wanted.requires or wanted.requires in required:
        return wanted
    return replace(wanted, requires=serving[0].tags)


def _serves(worker: Worker, wanted: ScrapePoll) -> bool:
    has_tags = wanted.requires.items() <= worker.tags.items()
    return has_tags and wanted.collector in worker.collectors and worker.drain is None


async def _wait(ended: asyncio.Event, within_s: float) -> None:
    try:
        async with asyncio.timeout(within_s):
            await ended.wait()
    except TimeoutError:
        return
