"""What a fleet would take with the settings of this installation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller.domain.history.size_estimate import Retention
from poller.domain.sizing import fleet_sizing
from poller.domain.sizing.fleet_sizing import FleetPlan, Need

if TYPE_CHECKING:
    from poller.settings.fields import Settings


@dataclass(frozen=True, slots=True)
class SizeQuestion:
    """A fleet that is planned. None: as the settings say, or as measured."""

    devices: int
    interfaces: int
    interval_ms: int
    objects: float | None = None  # samples of an interface
    history_days: float | None = None
    workers: int = 0
    sinks: int | None = None


def fleet_plan(settings: Settings, asked: SizeQuestion) -> FleetPlan:
    """Return the plan of a fleet with the retention and the sinks that are set."""
    raw_days = settings.readings_days if asked.history_days is None else asked.history_days
    others = sum(name != "sql" for name in settings.sinks)
    plan = FleetPlan(
        devices=asked.devices,
        interfaces=asked.interfaces,
        interval_ms=asked.interval_ms,
        retention=Retention(raw_days, settings.history_5m_days, settings.history_1h_days),
        runs_days=settings.runs_days,
        workers=asked.workers,
        sinks=others if asked.sinks is None else asked.sinks,
        target_homes=settings.target_homes,
    )
    return plan if asked.objects is None else replace(plan, samples_each=asked.objects)


def fleet_needs(settings: Settings, asked: SizeQuestion) -> tuple[FleetPlan, list[Need]]:
    """Return the plan of a fleet and what it takes."""
    plan = fleet_plan(settings, asked)
    return plan, fleet_sizing.needs(plan)
