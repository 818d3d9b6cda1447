"""Polls for tests: one collector, one target, as a worker would drain it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from poller.collectors import poll_runner
from poller.collectors.api import Collector, Poll
from poller.collectors.credentials import Credential
from poller.collectors.poll_runner import PollReport
from poller.domain.failures.outcome import Outcome


async def polled(
    collector: Collector,
    address: str,
    credential: Credential | None,
    memory: dict[str, Any] | None = None,
    timeout_s: float = 10,
    **options: Any,
) -> PollReport:
    """One poll on the running loop."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    checked = collector.Options.model_validate(options)
    poll = Poll(
        1, "device", address, checked, credential, deadline, {} if memory is None else memory
    )
    return await poll_runner.run_and_report(collector, poll)


def outcome(
    collector: Collector, address: str, credential: Credential | None, **more: Any
) -> Outcome:
    """One poll on a loop of its own."""
    return asyncio.run(polled(collector, address, credential, **more)).outcome


def by_series(result: Outcome) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    assert result.readings is not None, result.message
    return {
        (s.name, s.labels): v
        for s, v in zip(result.readings.series.series, result.readings.values, strict=True)
    }


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
