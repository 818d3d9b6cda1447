"""A plugin author's first test: their collector, or one of ours, against simulated devices."""

from __future__ import annotations

import asyncio

from poller import testing
from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Result


def test_a_collector_is_run_as_a_worker_runs_it() -> None:
    """A healthy device answers; a wrong community is an outcome, not an exception."""
    device = next(
        d for d in testing.fleet.devices(20) if d.protocol == "snmp" and d.fault == "none"
    )
    with testing.simulated([device]) as ports:
        right, wrong = Community.from_text(device.community), Community.from_text("nope")
        options = {"port": ports.snmp, "modules": ["system"], "retries": 0, "timeout": 0.3}
        good = asyncio.run(testing.collect(SnmpCollector(), device.address, right, **options))
        bad = asyncio.run(testing.collect(SnmpCollector(), device.address, wrong, **options))
    assert good.result is Result.OK
    assert good.samples > 0
    assert (bad.result, bad.error_code) == (Result.FAILED, "timeout")
    assert "nope" not in bad.message
