"""Times of queues: what a round adds, and what is read back."""

from __future__ import annotations

from poller.domain.metrics import queue_times


def test_a_round_is_read_back_as_it_was_counted() -> None:
    """The fields of several rounds add up, queue by queue."""
    fields = [
        *queue_times.of_round("poll.snmp;site=ams", [20, 20, 900], 1_500).items(),
        *queue_times.of_round("poll.snmp;site=ams", [20], 500).items(),
        *queue_times.of_round("poll.ping", [0], 0).items(),
    ]
    found = queue_times.parse(fields)
    ams = found["poll.snmp;site=ams"]
    assert (ams.slot_ms, ams.waits.total()) == (2_000, 4)
    half, most = ams.wait_ms(0.5), ams.wait_ms(0.95)
    assert half is not None
    assert most is not None
    assert 18 < half < 23
    assert 850 < most < 1_000
    assert (found["poll.ping"].slot_ms, found["poll.ping"].wait_ms(0.95)) == (0, 0.0)


def test_a_queue_without_polls_has_no_wait() -> None:
    """A retry has no wait of its own, and a field of a later release is left out."""
    assert queue_times.of_round("poll.snmp", [], 0) == {}
    found = queue_times.parse([("poll.snmp|slot", 7), ("poll.snmp|later", 3)])
    assert found["poll.snmp"].slot_ms == 7
    assert found["poll.snmp"].wait_ms(0.5) is None
