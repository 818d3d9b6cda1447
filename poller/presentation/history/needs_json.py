"""What a fleet takes, as JSON. Fields may be added, never removed."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from poller.domain.sizing.fleet_sizing import FleetPlan, Need


class NeedItem(BaseModel):
    """One thing that a fleet takes."""

    part: str
    amount: float = Field(description="What the fleet takes on average.")
    planned: float = Field(description="What to plan for it, with headroom.")
    unit: str
    how: str = Field(description="How the amount comes about.")


class PlannedFleet(BaseModel):
    """The fleet that was asked for."""

    devices: int
    interfaces: int
    interval_ms: int
    samples_per_poll: float
    polls_per_s: float
    samples_per_s: float


def items(needs: Sequence[Need]) -> list[NeedItem]:
    """Return a line for each thing that a fleet takes."""
    return [
        NeedItem(
            part=need.name,
            amount=round(need.amount, 3),
            planned=round(need.planned, 3),
            unit=need.unit,
            how=need.how,
        )
        for need in needs
    ]


def fleet(plan: FleetPlan) -> PlannedFleet:
    """Return the fleet that the sizes are for."""
    return PlannedFleet(
        devices=plan.devices,
        interfaces=plan.interfaces,
        interval_ms=plan.interval_ms,
        samples_per_poll=round(plan.samples, 1),
        polls_per_s=round(plan.polls_a_second, 3),
        samples_per_s=round(plan.samples_a_second, 1),
    )
