"""`/metrics/readings`: the last values of the fleet. `/sd`: its devices, for `http_sd`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import StreamingResponse

from poller import errors
from poller.bootstrap import Services
from poller.domain.access.scopes import Scope
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation.record import reading_families
from poller.presentation.record.reading_families import Families
from poller.service.results import scrape_targets
from poller.service.results.fleet_scrape import FleetScrapes, Scrape
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.contract.needs import Call, Needs

#: The header in which Prometheus says how long it waits, and how long others are trusted to.
TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
DEFAULT_PATIENCE_S = 60.0
LONGEST_PATIENCE_S = 600.0
#: The rest of the time is for sending.
RENDER_SHARE = 0.8

#: A token of one site scrapes that site.
ScrapingOwn = Annotated[Call, Depends(Needs(Scope.SCRAPE))]
Words = Annotated[list[str] | None, Query(max_length=100)]
Where = Annotated[str, Query(max_length=LONGEST_WHERE)]


def _refuse_unknown(request: Request) -> None:
    """Raise InvalidInput for a mistyped parameter: it would choose the whole fleet."""
    for name in request.query_params:
        if name not in _PARAMETERS:
            raise errors.InvalidInput(
                f'there is no parameter "{name[:40]}"', hint=f"use {', '.join(_PARAMETERS)}"
            )


_PARAMETERS = ("site", "tag", "where")
_ONLY_KNOWN = Depends(_refuse_unknown)


def add(app: FastAPI, services: Services) -> None:
    """Add both routes. They answer without the prefix of the API, as Prometheus expects."""
    scrapes = FleetScrapes(services)

    @app.get("/metrics/readings", include_in_schema=False, dependencies=[_ONLY_KNOWN])
    def scrape_readings(
        call: ScrapingOwn,
        request: Request,
        where: Where = "",
        site: Words = None,
        tag: Words = None,
    ) -> StreamingResponse:
        """The last values of the fleet, without those that are older than 2.5 intervals."""
        form = reading_families.format_of(request.headers.get("accept", ""))
        wanted = _wanted(where, site, tag)
        scrape = Scrape(call.actor, wanted, form, RENDER_SHARE * _patience_s(request))
        families = scrapes.families(scrape)
        headers = {"Content-Type": form.value}
        return StreamingResponse(_closing(families), headers=headers)

    @app.get("/sd", include_in_schema=False, dependencies=[_ONLY_KNOWN])
    def discover_devices(
        call: ScrapingOwn, where: Where = "", site: Words = None, tag: Words = None
    ) -> StreamingResponse:
        """The devices as target groups."""
        pages = scrape_targets.pages(call.services, call.actor, _wanted(where, site, tag))
        first = next(pages)  # an unknown site is refused before the response begins
        headers = {"Content-Type": "application/json"}
        return StreamingResponse(_json_list(first, pages), headers=headers)


def _wanted(where: str, sites: list[str] | None, tags: list[str] | None) -> TargetFilter:
    """Return the filter of the parameters. Raises InvalidInput."""
    named = {"site": sites or [], "tag": tags or []}
    by_name = target_filter.checked({key: words for key, words in named.items() if words})
    return target_filter.merge(by_name, target_filter.parse(where))


def _patience_s(request: Request) -> float:
    try:
        seconds = float(request.headers.get(TIMEOUT_HEADER, ""))
    except ValueError:
        return DEFAULT_PATIENCE_S
    if not math.isfinite(seconds) or seconds <= 0:
        return DEFAULT_PATIENCE_S
    return min(seconds, LONGEST_PATIENCE_S)


def _closing(families: Families) -> Iterator[bytes]:
    try:
        yield from families.chunks()
    finally:
        families.close()


def _json_list(first: list[Any], others: Iterable[list[Any]]) -> Iterator[bytes]:
    """Yield one JSON list of the items of all pages."""
    separator = "["
    for page in chain([first], others):
        lines = []
        for item in page:
            lines.append(f"{separator}{json.dumps(item)}\n")
            separator = ","
        yield "".join(lines).encode()
    yield b"]\n" if separator == "," else b"[]\n"
