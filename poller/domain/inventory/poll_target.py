"""The two views of a target: for the scheduler, and for the worker that polls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poller.domain.scheduling.interval import Policy


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target for the scheduler. `version` grows with every edit of the target or its device."""

    id: int
    version: int
    queue: str
    interval_ms: int  # the interval, or the base of an adaptive one
    timeout_ms: int
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class PollTarget:
    """A target for a worker. The secret is not part of it; `credential_id` names the credential."""

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
    siblings: tuple[int, ...] = ()  # the other targets of the device, enabled or not
    policy: Policy = Policy.FIXED
    # Only for an adaptive target:
    min_ms: int | None = None
    max_ms: int | None = None
    staleness: str | None = None
