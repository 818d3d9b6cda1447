"""The hand back of a stopping worker while Redis is away."""

from __future__ import annotations

import pytest
import structlog

from poller.bootstrap import Services
from poller.settings import Settings
from poller.workers.process import handback


@pytest.mark.usefixtures("home")
def test_without_redis_the_hand_back_logs_a_warning_and_raises_nothing(free_port: int) -> None:
    """The leases bring the targets back, and the worker goes on closing."""
    services = Services(Settings(redis_url=f"redis://127.0.0.1:{free_port}/0"))
    with structlog.testing.capture_logs() as lines:
        handback.hand_back_queued(services, None, ["poll.snmp"])  # type: ignore[arg-type]
    assert [line["event"] for line in lines] == ["batches_not_handed_back"]
