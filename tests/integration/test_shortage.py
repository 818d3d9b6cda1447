"""A worker that cannot open more files reports its own shortage: no device is down, and no breaker
opens.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from poller import errors
from poller.collectors.api import Collector
from poller.collectors.credentials import Community, Credential, Login
from poller.collectors.http import HttpCollector
from poller.collectors.ping import PingCollector
from poller.collectors.snmp import SnmpCollector
from tests.unit.collectors.polls import polled

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector

LOGIN = Login(username="admin", password="secret")


@contextmanager
def no_files_left() -> Iterator[None]:
    """Limit the open files to those that are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = max(int(name) for name in os.listdir("/proc/self/fd"))
    held = [os.dup(0) for _ in range(taken)]  # no gaps below the limit
    most = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in held:
            os.close(number)


@pytest.mark.parametrize(
    ("collector", "credential", "options"),
    [
        (SnmpCollector(), Community(community="public"), {"modules": ["system"]}),
        (RouterOsCollector(), LOGIN, {}),
        (HttpCollector(), None, {}),
        (PingCollector(), None, {"method": "icmp"}),
        (PingCollector(), None, {"method": "tcp", "port": 9}),
    ],
    ids=["snmp", "routeros", "http", "icmp", "tcp"],
)
def test_no_device_is_blamed(
    collector: Collector, credential: Credential | None, options: dict[str, Any]
) -> None:
    async def run() -> None:
        collector.Options.model_validate(options)  # reads its modules
        with no_files_left():
            drained = await polled(collector, "127.0.0.1", credential, timeout_s=3, **options)
        assert (drained.outcome.error_code, drained.outcome.readings) == ("collector_busy", None)
        assert "too many open files" in drained.outcome.message
        [failure] = drained.failures
        assert isinstance(failure.error, errors.CollectorBusy)

    asyncio.run(run())
