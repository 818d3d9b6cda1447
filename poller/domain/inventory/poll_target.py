"""The two views of a target: what the board needs to schedule it, what a worker needs to poll it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poller.domain.scheduling.interval import Policy


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target as the scheduler sees it. `version` grows with every edit of the target or its device."""

    id: int
    version: int
    queue: str
    interval_ms: int  # the interval, or the base of an adaptive one
    timeout_ms: int
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class PollTarget:
    """A target as a worker sees it: everything but the secret, which is fetched by `credential_id`."""

    id: int
    version: int
    name: str
    device_id: int
    device: str
    address: str
    site: str
    collector: str
    interval_ms: int
    timeout_ms: int
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    credential_id: int | None = None
    policy: Policy = Policy.FIXED
    min_ms: int | None = None  # this and the following: of adaptive ones only
    max_ms: int | None = None
    staleness: str | None = None
