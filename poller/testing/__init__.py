"""Test tools for plugin authors: run a collector as a worker does, against simulated devices.

with testing.simulated(testing.fleet.devices(3)) as ports:
    outcome = asyncio.run(testing.collect(MyCollector(), "127.20.0.1", port=ports.snmp))

result = testing.run_job(my_job, testing.context())
"""

from __future__ import annotations

import asyncio
from typing import Any

from poller.collectors.api import Collector, Credential, Poll
from poller.collectors.poll_runner import run_poll
from poller.domain.failures.outcome import Outcome
from poller.sim import clock, fleet
from poller.sim.fleet_server import TlsPorts
from poller.sim.routeros.injected_faults import Mishap
from poller.sim.sim_process import simulated
from poller.testing.job_context import context, run_job


async def collect(
    collector: Collector,
    address: str,
    credential: Credential | None = None,
    timeout_s: float = 5.0,
    memory: dict[str, Any] | None = None,
    **options: Any,
) -> Outcome:
    """Poll a device once, exactly as a worker does, and return the outcome.

    `options` are validated by the collector's own model, and the poll is cut off at its deadline.
    A failed poll is an outcome, not an exception. Raises pydantic.ValidationError for bad options.
    """
    validated = collector.Options.model_validate(options)
    deadline = asyncio.get_running_loop().time() + timeout_s
    if memory is None:
        memory = {}
    poll = Poll(1, "device", address, validated, credential, deadline, memory)
    return await run_poll(collector, poll)


__all__ = [
    "Mishap",
    "TlsPorts",
    "clock",
    "collect",
    "context",
    "fleet",
    "run_job",
    "simulated",
]
