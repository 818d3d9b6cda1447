"""What a fleet takes grows with what it does, and the docs show the figures that are used."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from poller.domain.history.size_estimate import Retention
from poller.domain.sizing import fleet_sizing, measured_figures
from poller.domain.sizing.fleet_sizing import FleetPlan

DOCS = Path(__file__).parents[4] / "docs"
PLAN = FleetPlan(3_000, 48, 60_000, Retention(35, 400, 730), 30)


def amounts(plan: FleetPlan) -> dict[str, float]:
    return {need.name: need.amount for need in fleet_sizing.needs(plan)}


def test_twice_as_many_devices_or_polls_take_twice_the_cores_and_bandwidth() -> None:
    """Disk and bandwidth follow the samples; memory follows the devices, not the interval."""
    once = amounts(PLAN)
    for twice in (
        amounts(replace(PLAN, devices=6_000)),
        amounts(replace(PLAN, interval_ms=30_000)),
    ):
        assert twice["cores"] == pytest.approx(2 * once["cores"])
        assert twice["bandwidth in"] == pytest.approx(2 * once["bandwidth in"])
        assert twice["disk"] > once["disk"]
    fast = amounts(replace(PLAN, interval_ms=30_000, workers=2))
    assert fast["memory"] == amounts(replace(PLAN, workers=2))["memory"]


def test_homes_of_targets_save_memory_and_sinks_cost_cpu() -> None:
    """With homes each target is known to one worker; every sink takes each sample."""
    plan = replace(PLAN, workers=4)
    assert amounts(replace(plan, target_homes=True))["memory"] < amounts(plan)["memory"]
    assert amounts(replace(plan, sinks=1))["cores"] > amounts(plan)["cores"]


def test_every_need_says_how_it_comes_about_and_is_planned_with_headroom() -> None:
    """Nothing is planned for less than it takes."""
    for need in fleet_sizing.needs(PLAN):
        assert need.how
        assert need.planned >= need.amount > 0


def test_the_docs_show_the_figures_that_are_used() -> None:
    """One row for each figure, with its value and its source; UPDATE_DOCS=1 writes them."""
    page = DOCS / "sizing.md"
    head, mark, shown = page.read_text().partition("| figure | value | source |\n|---|---|---|\n")
    rows = [
        f"| {each.name} | {f'{each.value:g} {each.unit}'.rstrip()} | {each.source} |\n"
        for each in measured_figures.ALL
    ]
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(head + mark + "".join(rows))
    assert shown == "".join(rows)
