"""`/snmp` and `/probe` with the contract of snmp_exporter and blackbox_exporter, and the paths
beside them.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.bootstrap import Services
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.scrapes import probe_query, scrape_answer, scrape_query
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.domain.scrapes.scrape_query import Pairs
from poller.metering import process_metrics
from poller.service.scrapes import module_config, scrape_parts
from poller.service.scrapes.probe_scrape import ProbeScrapes
from poller.service.scrapes.snmp_scrape import Known, SnmpScrapes
from poller.web.access.actor_finder import ActorFinder
from poller.web.api.contract.needs import Needs, PageNeeds
from poller.web.exporter import recent_scrapes, scrape_counts
from poller.web.exporter.recent_scrapes import CONTENT_TYPE, HEAD, RecentScrapes

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"
MOST_PARAMETERS = 100
#: A token of one site may scrape devices of its site.
_SCRAPING = Needs(Scope.SCRAPE)
_SCRAPERS = Depends(PageNeeds(_SCRAPING))


class Exporter:
    """The scrapes of a web process."""

    def __init__(self, services: Services, finder: ActorFinder) -> None:
        parts = scrape_parts.make(services)
        self._parts = parts
        self.sender = parts.sender
        self._finder = finder
        self._snmp = SnmpScrapes(parts)
        self._probes = ProbeScrapes(parts)
        self.recent = RecentScrapes(parts.devices, parts.answers)

    async def snmp(self, request: Request, actor: Actor) -> ScrapeAnswer:
        """Answer a scrape of `/snmp`. Raises ConfigError, StoreError."""
        query = scrape_query.parse_snmp(_pairs(request))
        return await self._answer(self._snmp, query, request, actor)

    async def probe(self, request: Request, actor: Actor) -> ScrapeAnswer:
        """Answer a scrape of `/probe`. Raises ConfigError, StoreError."""
        query = probe_query.parse_probe(_pairs(request))
        return await self._answer(self._probes, query, request, actor)

    async def _answer(
        self, scrapes: Any, query: Any, request: Request, actor: Actor
    ) -> ScrapeAnswer:
        """Answer in time, whatever store or worker is silent."""
        within_s = _timeout_s(request)
        until_mono = time.monotonic() + within_s
        try:
            async with asyncio.timeout(scrape_query.last_moment_s(within_s)):
                prepared = await scrapes.prepare(actor, query)
                left_s = max(0.0, until_mono - time.monotonic())
                answer: ScrapeAnswer = await scrapes.answer(actor, query, prepared, left_s)
        except TimeoutError:
            text = f"no store of poller answered within {within_s:.1f} s; `poller status` says why"
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, text)
        self._remember(request, actor, prepared, answer)
        return answer

    def close(self) -> None:
        """End the threads of scrapes, where the process goes on."""
        self._parts.close()

    def _remember(
        self, request: Request, actor: Actor, prepared: object, answer: ScrapeAnswer
    ) -> None:
        head = request.scope.get("extensions", {}).get(HEAD, {}).get("bytes")
        may_scrape = self._finder.still_admits(request.headers, actor)
        if head is None or may_scrape is None or not isinstance(prepared, Known):
            return
        is_plain = not any(name in request.headers for name in recent_scrapes.SPECIAL)
        if answer.status == scrape_answer.OK and request.client is not None and is_plain:
            peer, path = request.client.host, request.url.path
            self.recent.remember(head, peer, path, prepared, may_scrape)


def add(app: FastAPI, services: Services, exporter: Exporter) -> None:
    """Add the routes. They are no part of the API and of its document."""

    async def snmp(request: Request) -> Response:
        """A scrape of one SNMP target, as of snmp_exporter."""
        return await _answered(exporter.snmp, request)

    async def probe(request: Request) -> Response:
        """A scrape of one target, as of blackbox_exporter and mktxp."""
        return await _answered(exporter.probe, request)

    async def config(request: Request) -> Response:
        """The modules of `/snmp`, without logins."""
        return await _from_files(partial(module_config.document, services), "%s")

    async def reload(request: Request) -> Response:
        """Read and check the module files now; an edited file is read at its next use anyway."""
        if request.method != "POST":
            return _text(scrape_answer.BAD_REQUEST, "POST method expected")
        return await _from_files(partial(module_config.check, services), "%s modules\n")

    async def healthy(request: Request) -> Response:
        """Liveness: the process responds."""
        return PlainTextResponse("Healthy")

    scraping: dict[str, Any] = {"/snmp": snmp, "/probe": probe, "/config": config}
    hidden = partial(app.add_api_route, include_in_schema=False)
    for path, handler in scraping.items():
        hidden(path, handler, methods=["GET"], dependencies=[_SCRAPERS])
    hidden("/-/reload", reload, methods=["GET", "PUT", "POST"], dependencies=[_SCRAPERS])
    hidden("/-/healthy", healthy, methods=["GET"])


async def _answered(scrape: Any, request: Request) -> Response:
    """Answer with the texts and status codes of an exporter, whatever goes wrong."""
    actor = _SCRAPING.admitted(request)
    with scrape_counts.counted(request.url.path) as counted:
        try:
            answer: ScrapeAnswer = await scrape(request, actor)
        except errors.NotAllowed as error:
            answer = scrape_answer.failure(scrape_answer.FORBIDDEN, _with_hint(error))
        except errors.CollectorMissing as error:
            answer = scrape_answer.failure(scrape_answer.UNAVAILABLE, _with_hint(error))
        except errors.ConfigError as error:
            answer = scrape_answer.failure(scrape_answer.BAD_REQUEST, _with_hint(error))
        except errors.StoreError:
            text = "a store of poller cannot be used now"
            answer = scrape_answer.failure(scrape_answer.UNAVAILABLE, text)
        counted(answer)
    kind = CONTENT_TYPE if answer.status == scrape_answer.OK else "text/plain"
    return Response(answer.body, answer.status, media_type=kind)


async def _from_files(read: Any, form: str) -> Response:
    try:
        found = await run_in_threadpool(read)
    except errors.ConfigError as error:
        process_metrics.scrape_config_valid.set(0)
        return _text(scrape_answer.FAILED, f"failed to reload config: {error}")
    process_metrics.scrape_config_valid.set(1)
    return PlainTextResponse(form % found)


def _with_hint(error: errors.PollerError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status)


def _pairs(request: Request) -> Pairs:
    query = request.scope["query_string"].decode("latin-1")
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise errors.InvalidInput(f"more than {MOST_PARAMETERS} parameters") from None


def _timeout_s(request: Request) -> float:
    return scrape_query.timeout_s(request.headers.get(TIMEOUT_HEADER, ""))
