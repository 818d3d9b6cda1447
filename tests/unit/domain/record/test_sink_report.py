"""The reports of a sink from many processes become one."""

from __future__ import annotations

import pytest

from poller.domain.record.sink_report import SinkReport, SinkState, combine, judge


@pytest.mark.parametrize(
    ("is_down", "is_refused", "spooled", "state"),
    [
        (False, False, 0, SinkState.OK),
        (False, False, 7, SinkState.BEHIND),
        (False, True, 0, SinkState.REFUSING),
        (False, True, 7, SinkState.REFUSING),
        (True, True, 7, SinkState.DOWN),
    ],
)
def test_the_state_is_the_worst_that_applies(
    is_down: bool, is_refused: bool, spooled: int, state: SinkState
) -> None:
    """Down says more than refusing, and refusing more than behind."""
    assert judge(is_down=is_down, is_refused=is_refused, spooled_polls=spooled) is state


def test_reports_of_several_workers_are_added_up() -> None:
    """The worst state, the oldest poll, the newest error, the next attempt."""
    one = SinkReport(
        "prom", "remote_write", SinkState.BEHIND, polls=10, samples=100, polls_per_s=1.0,
        samples_per_s=10.0, oldest_ms=5_000, spooled_polls=3, spooled_bytes=30, error="old",
        error_ms=1_000, dropped={"full": 2}, left_out=1, left_out_reason="too old: up{}",
        stored_ms=8_000,
    )  # fmt: skip
    two = SinkReport(
        "prom", "remote_write", SinkState.DOWN, polls=1, oldest_ms=4_000, spooled_polls=4,
        spooled_bytes=40, error="new", hint="look", error_ms=9_000, retry_ms=11_000,
        dropped={"full": 1, "refused": 5},
    )  # fmt: skip
    [both] = combine([one, two])
    assert both == SinkReport(
        "prom", "remote_write", SinkState.DOWN, polls=11, samples=100, polls_per_s=1.0,
        samples_per_s=10.0, oldest_ms=4_000, spooled_polls=7, spooled_bytes=70, error="new",
        hint="look", error_ms=9_000, retry_ms=11_000, dropped={"full": 3, "refused": 5},
        left_out=1, left_out_reason="too old: up{}", stored_ms=8_000,
    )  # fmt: skip
    assert (both.lag_ms(10_000), both.dropped_polls) == (6_000, 8)


def test_sinks_keep_their_order_and_an_idle_one_has_no_lag() -> None:
    """A worker without polls is not behind."""
    reports = combine([SinkReport("b", "x"), SinkReport("a", "x"), SinkReport("b", "x")])
    assert [each.name for each in reports] == ["b", "a"]
    assert reports[0].lag_ms(10_000) == 0
