"""Answers from the last polls of targets, and from the next one where the last is too old."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.scrapes.scraped_devices import ScrapedTarget
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.scrapes import poll_freshness, scrape_answer
from poller.domain.scrapes.poll_freshness import Judgement, Source
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.presentation.exposition import scrape_metrics
from poller.service.scrapes.last_poll_loader import Render
from poller.service.scrapes.last_polls import HASTY_PASS_S, LastPolls
from poller.service.scrapes.scrape_sender import ScrapeSender

if TYPE_CHECKING:
    from poller.bootstrap import Services


#: The kind and name of an actor.
Scraper = tuple[ActorKind, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A target whose last poll is wanted. `key` tells texts of the same poll apart."""

    device: str
    target: ScrapedTarget
    key: object
    render: Render
    shows_failure: bool = False  # a failed poll is an answer, as of blackbox_exporter


class LastPollAnswers:
    """One per web process. `wait` is used on one event loop."""

    def __init__(self, services: Services, polls: LastPolls, sender: ScrapeSender) -> None:
        self._services = services
        self._polls = polls
        self._sender = sender
        self._waiting: Counter[Scraper] = Counter()

    def quick(self, wanted: Wanted) -> bytes | None:
        """Return the text of a fresh last poll that is at hand, else None. Never waits."""
        poll = self._polls.kept(wanted.target.id)
        if poll is None or not wanted.target.enabled:
            return None
        now_ms = self._polls.now_ms()
        read_ms = poll.read_ms
        interval_ms = wanted.target.interval_ms
        judgement = poll_freshness.judge(poll.status, read_ms, interval_ms, now_ms)
        if read_ms is None or judgement.source is not Source.LAST_POLL:
            return None
        body = poll.text(wanted.key, wanted.render)
        age_s = max(0, now_ms - read_ms) / 1000
        return body + scrape_metrics.age(age_s).encode()

    async def wait(self, wanted: Wanted, within_s: float, actor: Actor) -> ScrapeAnswer:
        """Answer from the last poll, or poll the target now and wait. Raises StoreError."""
        scraper = (actor.kind, actor.name)
        if not wanted.target.enabled:
            return scrape_answer.failure(
                scrape_answer.FAILED, f"{_name(wanted)} is disabled in poller"
            )
        until_mono = time.monotonic() + within_s
        if self.quick(wanted) is None:
            await self._sender.in_thread(self._polls.read, [wanted.target.id])
        has_demanded = False
        while True:
            body = self.quick(wanted)
            if body is not None:
                return ScrapeAnswer(scrape_answer.OK, body)
            judgement = self._judgement(wanted)
            if judgement.source is Source.FAILURE:
                text = f"error polling {_name(wanted)}: {judgement.text}"
                return scrape_answer.failure(scrape_answer.FAILED, text)
            if not has_demanded:
                has_demanded = True
                refusal = await self._demand(wanted, self._waiting[scraper])
                if refusal is not None:
                    return refusal
            if time.monotonic() >= until_mono:
                text = f"{_name(wanted)} was not polled within {within_s:.1f} s"
                hint = "its explanation (why) says more"
                return scrape_answer.failure(scrape_answer.FAILED, f"{text}; {hint}")
            await self._sleep(wanted.target.id, scraper)

    def _judgement(self, wanted: Wanted) -> Judgement:
        poll = self._polls.kept(wanted.target.id)
        if poll is None:
            return Judgement(Source.NEXT_POLL)
        now_ms = self._polls.now_ms()
        interval_ms = wanted.target.interval_ms
        return poll_freshness.judge(poll.status, poll.read_ms, interval_ms, now_ms)

    async def _demand(self, wanted: Wanted, waiting: int) -> ScrapeAnswer | None:
        """Make the target due at once; one in flight is being polled already.

        Scrapes of other scrapers that wait do not count: none can keep the others out.
        """
        if waiting >= self._services.settings.scrape_polls:
            text = f"{waiting} scrapes wait for polls already (setting scrape_polls)"
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, text)
        target_id = wanted.target.id
        _, places = await self._sender.in_thread(self._services.board.demand, [target_id])
        if places.get(target_id, "gone") == "gone":
            text = f"{_name(wanted)} is not scheduled yet; `poller status` says why"
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, text)
        return None

    async def _sleep(self, target_id: int, scraper: Scraper) -> None:
        self._waiting[scraper] += 1
        try:
            self._polls.hasten(target_id, time.monotonic() + 2 * HASTY_PASS_S)
            await asyncio.sleep(HASTY_PASS_S)
        finally:
            self._waiting[scraper] -= 1
            if not self._waiting[scraper]:
                del self._waiting[scraper]


def _name(wanted: Wanted) -> str:
    return f"{wanted.device}/{wanted.target.name}"
