"""The parameters that routes of recorded things share: device, filter and time."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Path, Query

from poller.domain.inventory import target_filter
from poller.domain.record import instant_text
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE

_LONGEST_NAME = 200
_LONGEST_TIME = 40

DeviceName = Annotated[str, Path(max_length=_LONGEST_NAME, description="The name of the device.")]
TargetId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of the target.")]
Device = Annotated[str, Query(max_length=_LONGEST_NAME, description="Only of this device.")]
Target = Annotated[
    str, Query(max_length=_LONGEST_NAME, description="Only of this target of the device.")
]
Where = Annotated[
    str,
    Query(
        max_length=LONGEST_WHERE,
        description=f"Only of devices and targets that match: {target_filter.EXAMPLE}.",
    ),
]
Since = Annotated[
    str,
    Query(
        max_length=_LONGEST_TIME,
        description="Only from this instant on: RFC 3339, or a duration before now such as 2h.",
    ),
]
Until = Annotated[
    str,
    Query(
        max_length=_LONGEST_TIME,
        description="Only before this instant: RFC 3339, or a duration before now such as 2h.",
    ),
]
Metric = Annotated[
    str, Query(max_length=_LONGEST_NAME, description="Only metrics whose name contains this.")
]


def since_ms(text: str) -> int:
    """Return the instant of `since`; 0 for an empty text. Raises InvalidInput."""
    return instant_text.parse_ms("since", text, now_ms()) if text else 0


def until_ms(text: str) -> int | None:
    """Return the instant of `until`; None for an empty text. Raises InvalidInput."""
    return instant_text.parse_ms("until", text, now_ms()) if text else None


def now_ms() -> int:
    return time.time_ns() // 1_000_000
