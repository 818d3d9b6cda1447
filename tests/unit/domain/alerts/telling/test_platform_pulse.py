"""The dead man's switch rests when polls wait and none ends."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.alerts.telling import platform_pulse
from poller.domain.record.overview import Lateness, Overview


def overview(**changes: Any) -> Overview:
    values: dict[str, Any] = {
        "as_of_ms": 0,
        "targets": 10,
        "states": {},
        "due": 10,
        "overdue": 0,
        "in_flight": 0,
        "parked": 0,
        "polls_per_second": 0.0,
        "outcomes": {},
        "lateness": Lateness(),
        "recent": (),
        "loads": (),
        "leader": None,
        "standbys": 0,
        "workers": (),
        "errors": (),
        "totals": {},
    }
    return Overview(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "works"),
    [
        ({}, True),  # all wait for their slot: intervals are long
        ({"polls_per_second": 3.0}, True),
        ({"long_overdue": 4, "polls_per_second": 3.0}, True),  # late, and at work
        ({"long_overdue": 4}, False),
    ],
)
def test_a_platform_works_while_polls_end_or_none_is_due(
    changes: dict[str, Any], works: bool
) -> None:
    """Lateness alone is no death; waiting without any end is."""
    fault = platform_pulse.fault(overview(**changes))
    assert (not fault) is works
    assert works or "4 targets" in fault
