"""The CPU time per poll in the summary of `poller up`."""

from __future__ import annotations

from poller.cli.up import up_summary
from poller.cli.up.up_summary import Mark


def test_cpu_per_poll_is_the_difference_of_two_marks() -> None:
    """Roles that started later count from zero; roles beside polling do not count."""
    first = Mark(0.0, 100, {"beat": 500.0, "worker1": 4_000.0, "valkey": 100.0, "web": 9.0})
    cpu = {"beat": 600.0, "worker1": 4_400.0, "worker2": 300.0, "valkey": 150.0, "web": 900.0}
    found = up_summary.cpu_per_poll(first, Mark(10.0, 200, cpu))
    assert found == {"beat": 1.0, "worker": 7.0, "total": 8.5}
    assert set(up_summary.cpu_per_poll(None, first).values()) == {0.0}
