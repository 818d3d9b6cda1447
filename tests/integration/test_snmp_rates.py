"""Rates of a real snmpd: the traffic of the loopback interface, and the effect of a restart."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from poller.collectors.snmp import SnmpCollector
from poller.domain.metrics import rates
from poller.domain.metrics.counters import Verdict
from poller.domain.metrics.rates import Line, Poll, RateQuery
from tests.integration.test_collector_snmp import PUBLIC, free_udp_port, running_snmpd
from tests.unit.collectors.polls import outcome

#: snmpd looks at the counters of the kernel once a second or less.
REFRESH_S = 16
DATAGRAM = b"x" * 10_000


def poll(port: int) -> Poll:
    result = outcome(SnmpCollector(), "127.0.0.1", PUBLIC, port=port, modules="if_mib")
    assert result.readings is not None, result.message
    return time.time_ns() // 1_000_000, result.readings


def send(datagrams: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(datagrams):
                sender.sendto(DATAGRAM, receiver.getsockname())


def loopback(polls: list[Poll], metric: str) -> Line:
    lines = rates.compute(polls, RateQuery(60_000)).lines
    return next(
        line for line in lines if line.series.name == metric and ("ifName", "lo") in line.known_by
    )


def test_traffic_is_counted_and_a_restart_is_no_traffic(tmp_path: Path) -> None:
    """Two megabytes over loopback are counted; after a restart of the agent every counter has a
    reset with its reason.
    """
    port = free_udp_port()
    with running_snmpd(tmp_path / "one", port):
        before = poll(port)
        send(200)
        after = before
        deadline = time.monotonic() + REFRESH_S
        while (
            loopback([before, after], "ifHCInOctets").mean() in (None, 0)
            and time.monotonic() < deadline
        ):
            time.sleep(0.2)
            after = poll(port)
        line = loopback([before, after], "ifHCInOctets")
        assert (line.newest.verdict, line.series.width) == (Verdict.OK, 64)
        assert line.newest.per_second is not None
        assert line.newest.per_second * line.newest.seconds > 200 * len(DATAGRAM)
    with running_snmpd(tmp_path / "two", port):
        restarted = poll(port)
    # As if an hour lay between them: an agent that is up for a second cannot be the one of before.
    hour = [(at_ms - 3_600_000, readings) for at_ms, readings in (before, after)]
    found = rates.compute([*hour, restarted], RateQuery(3_600_000)).lines
    assert {line.newest.verdict for line in found} == {Verdict.RESET}
    assert {line.newest.reason for line in found} == {"the device restarted"}
