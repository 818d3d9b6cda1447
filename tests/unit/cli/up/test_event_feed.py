"""Events as lines of `poller up`."""

from __future__ import annotations

from poller.cli.up import event_feed
from poller.domain.record.event_kinds import Event, Kind


def test_a_burst_of_events_is_a_few_lines_and_a_count() -> None:
    """Ten thousand devices that go down must not fill the terminal."""
    events = [Event(1, Kind.DEVICE_WENT_DOWN, f"sw{n} is\ndown") for n in range(8)]
    shown = event_feed.lines(events)
    assert shown[0] == "device_went_down: sw0 is down"
    assert shown[event_feed.SHOWN :] == ["and 3 more: poller events"]
    assert event_feed.lines([]) == []
