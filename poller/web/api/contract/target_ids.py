"""Parameters that name a target, or select targets, in a path or a query."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE

LARGEST_ID = 2**63 - 1

TargetId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The id of the target.")]
WhereQuery = Annotated[
    str,
    Query(
        max_length=LONGEST_WHERE,
        pattern=r"^[^\x00]*$",
        description=f"Only those that match: {target_filter.EXAMPLE}.",
    ),
]


def parsed(where: str) -> TargetFilter:
    """The filter of a list; an empty one matches everything. Raises InvalidInput."""
    return target_filter.parse(where)
