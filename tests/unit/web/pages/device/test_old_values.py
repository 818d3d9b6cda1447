"""Values of a target that is not read any more are never shown as those of now."""

from __future__ import annotations

from dataclasses import replace

import pytest
import web_rates

from poller.db.record.stored_readings import Stored
from poller.domain.metrics.reading import ReadingSet
from poller.domain.series.device_interfaces import Interface
from poller.service.record.reading_listing import TargetPoll
from poller.web.pages.device import interface_list, old_values

MINUTE = 60_000
NOW = 100 * MINUTE


def poll(name: str, minutes_ago: int | None, max_ms: int | None = None) -> TargetPoll:
    """A target that is polled each minute, or at least each `max_ms`, and was read so long ago."""
    target = replace(web_rates.TARGET, name=name, interval_ms=MINUTE, max_ms=max_ms)
    if minutes_ago is None:
        return TargetPoll(target, None)
    return TargetPoll(target, Stored(target.id, NOW - minutes_ago * MINUTE, ReadingSet.of([])))


@pytest.mark.parametrize(
    ("polls", "said"),
    [
        ([poll("a", 1), poll("b", None)], ""),
        ([poll("a", 3)], ""),
        ([poll("a", 8, 5 * MINUTE)], ""),
        ([poll("a", 4), poll("b", 1)], "Read last: a 4 m 0 s ago; its values are of then, not"),
        ([poll("a", 4), poll("b", 5)], "a 4 m 0 s ago, b 5 m 0 s ago; their values are of then"),
        ([poll(str(n), 4 + n) for n in range(4)], "All targets were not read for 4 m 0 s"),
        ([*[poll(str(n), 4) for n in range(5)], poll("x", 1)], "5 of 6 targets were not read"),
    ],
)
def test_targets_that_were_not_read_for_two_intervals_are_named(
    polls: list[TargetPoll], said: str
) -> None:
    """A late poll, and the longest interval of an adaptive target, are not old."""
    found = old_values.note(polls, NOW)
    assert said in found
    assert bool(said) == bool(found)


def test_an_old_status_is_that_of_then() -> None:
    """A port of a switch that is silent is neither up nor down: it was."""
    port = Interface((), is_up=True, is_enabled=True)
    assert interface_list.status(port) == ("● up", "ok")
    assert interface_list.status(port, is_old=True) == ("○ was up", "unknown")
    port.is_enabled = False
    assert interface_list.status(port, is_old=True) == ("○ was switched off", "unknown")
