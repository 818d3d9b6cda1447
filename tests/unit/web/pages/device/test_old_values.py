"""Values of a target that is not read any more are never shown as those of now."""

from __future__ import annotations

from dataclasses import replace

import pytest
import web_rates

from poller.domain.series.device_interfaces import Interface
from poller.presentation.history import old_values
from poller.service.record.reading_listing import ReadTime
from poller.web.pages.device import interface_list

MINUTE = 60_000
NOW = 100 * MINUTE


def read(name: str, minutes_ago: int | None, max_ms: int | None = None) -> ReadTime:
    """A target that is polled each minute, or at least each `max_ms`, and was read so long ago."""
    return ReadTime(
        replace(web_rates.TARGET, name=name, interval_ms=MINUTE, max_ms=max_ms),
        None if minutes_ago is None else NOW - minutes_ago * MINUTE,
    )


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([read("a", 1), read("b", None)], ""),
        ([read("a", 3)], ""),
        ([read("a", 8, 5 * MINUTE)], ""),
        ([read("a", 4), read("b", 1)], "Read last: a 4 m 0 s ago; its values are of then, not"),
        ([read("a", 4), read("b", 5)], "a 4 m 0 s ago, b 5 m 0 s ago; their values are of then"),
        ([read(str(n), 4 + n) for n in range(4)], "All targets were not read for 4 m 0 s"),
        ([*[read(str(n), 4) for n in range(5)], read("x", 1)], "5 of 6 targets were not read"),
    ],
)
def test_targets_that_were_not_read_for_two_intervals_are_named(
    times: list[ReadTime], said: str
) -> None:
    """A late poll, and the longest interval of an adaptive target, are not old."""
    found = old_values.note(times, NOW)
    assert said in found
    assert bool(said) == bool(found)


def test_an_old_status_is_that_of_then() -> None:
    """A port of a switch that is silent is neither up nor down: it was."""
    port = Interface((), is_up=True, is_enabled=True)
    assert interface_list.status(port) == ("● up", "ok")
    assert interface_list.status(port, is_old=True) == ("○ was up", "unknown")
    port.is_enabled = False
    assert interface_list.status(port, is_old=True) == ("○ was switched off", "unknown")
