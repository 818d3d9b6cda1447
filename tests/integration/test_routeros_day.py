"""A small share of `make day`: hours of polls on a jumping clock, with a loss in every hour."""

from __future__ import annotations

import os

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from tests import day_routeros


def test_a_quiet_day_costs_a_router_one_login_and_one_when_it_is_old() -> None:
    report = day_routeros.day(routers=2, hours=24, losses=0, seed=1)
    assert report.faults == []
    assert set(report.outcomes) == {"ok"}
    assert max(report.logins) <= 2


def test_hourly_losses_cost_a_login_each_and_never_a_wrong_value() -> None:
    """All kinds of losses occur; no other poll fails, and no value is mixed up."""
    report = day_routeros.day(routers=8, hours=6, losses=1, seed=3)
    assert report.faults == []
    assert report.losses.keys() == set(day_routeros.LOSSES)
    assert report.values > 10_000
    assert {"ok", "partial timeout", "partial unreachable"} <= report.outcomes.keys()
    assert max(report.logins) <= 1 + 6 * 3  # a dark one costs one for each poll in it
