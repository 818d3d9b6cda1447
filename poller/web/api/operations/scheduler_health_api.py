"""`/api/v1/scheduler/health`: the scheduler as a whole, and the health of every target in pages."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import Query, Request, Response

from poller.domain.inventory import key_position, target_filter
from poller.presentation.targets import scheduler_health_json
from poller.presentation.targets.health_types import HealthDocument
from poller.service import scheduler_health
from poller.web.api.contract import paging, resources
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.contract.needs import ReadingAll
from poller.web.api.contract.paging import Cursor, Limit

router = resources.router("scheduler")

Where = Annotated[
    str,
    Query(
        max_length=LONGEST_WHERE,
        pattern=r"^[^\x00]*$",
        description=f"A filter of the instances, such as {target_filter.EXAMPLE}; empty: all. "
        f"Keys: {', '.join(target_filter.KEYS)}.",
    ),
]


@router.get("/health")
def scheduler_health_document(
    call: ReadingAll,
    request: Request,
    response: Response,
    where: Where = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> HealthDocument:
    """Show the health of the scheduler, and of one page of targets.

    The picture of the whole is at most a second old. `instances` has the targets that match
    `where`, in the order of their keys.
    """
    wanted = target_filter.parse(where)
    key = paging.decode(cursor, str)
    after = key_position.parse(key[0]) if key else None
    overall = scheduler_health.overall(call.services)
    page = scheduler_health.instances(call.services, wanted, after, limit)
    following = paging.encode([page.next]) if page.next is not None else None
    paging.link_next(request, response, following)
    page = dataclasses.replace(page, next=following)
    return scheduler_health_json.document(overall, page)
