"""Interval, policy and timeout of a target: options, defaults, and their printed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from poller import bootstrap, errors
from poller.cli.output import render
from poller.domain.inventory import duration
from poller.domain.scheduling import interval
from poller.domain.scheduling.interval import Decision, Policy
from poller.settings import policies

if TYPE_CHECKING:
    from poller.db.inventory.targets import Target


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The options that decide when a target is polled; None leaves a value as it is."""

    policy: Annotated[
        Literal["fixed", "adaptive"] | None,
        typer.Option(help="Always the same interval, or one that adapts."),
    ] = None
    interval: Annotated[
        str | None,
        typer.Option(help="Time from poll to poll: 60s, 5m, 1h30m. The base, if adaptive."),
    ] = None
    min_: Annotated[
        str | None, typer.Option("--min", help="Shortest interval of an adaptive target.")
    ] = None
    max_: Annotated[
        str | None, typer.Option("--max", help="Longest interval of an adaptive target.")
    ] = None
    staleness: Annotated[
        str | None,
        typer.Option(
            help="What an adaptive target adapts to: steady, age, change, or a plugin's source."
        ),
    ] = None
    timeout: Annotated[
        str | None, typer.Option(help="Longest time of one poll; below the interval.")
    ] = None

    def fields(self) -> dict[str, str | None]:
        """The options by the names that an inventory file uses."""
        return {
            "policy": self.policy,
            "interval": self.interval,
            "min": self.min_,
            "max": self.max_,
            "staleness": self.staleness,
            "timeout": self.timeout,
        }


def described(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Targets as items.

    An adaptive target has its last decision and a sentence that explains it.
    """
    adaptive = [target.id for target in targets if target.policy is Policy.ADAPTIVE]
    decisions = _decisions(adaptive)

    items = []
    for target in targets:
        item = asdict(target)
        if target.policy is Policy.ADAPTIVE:
            item |= _last_decision(target, decisions.get(target.id))
        items.append(item)

    return items


def _last_decision(target: Target, decision: Decision | None) -> dict[str, Any]:
    """The fields of the last interval decision; empty before the first one."""
    if decision is None:
        return {"decision": None, "why": ""}
    base_ms = target.interval_ms
    adaptive = policies.adaptive_interval(bootstrap.services().settings)
    policy = adaptive.with_bounds(target.min_ms or base_ms, base_ms, target.max_ms or base_ms)
    return {"decision": asdict(decision), "why": interval.explain(policy, decision)}


def _decisions(ids: Sequence[int]) -> dict[int, Decision]:
    """The last decisions on the board; none, with a note, while Redis is away."""
    if not ids:
        return {}

    try:
        statuses = bootstrap.services().board.statuses(ids)
    except errors.StoreError:
        render.note("note: Redis is not reachable, so the last decisions are not shown")
        return {}

    return {key: status.decision for key, status in statuses.items() if status.decision}


def interval_text(item: Any) -> str:
    """`1m`, or `10s (5s to 5m)` for an adaptive target."""
    base = duration.format_ms(item["interval_ms"])
    if item["policy"] != Policy.ADAPTIVE:
        return base

    shortest = duration.format_ms(item["min_ms"])
    longest = duration.format_ms(item["max_ms"])
    return f"{base} ({shortest} to {longest})"


def policy_text(item: Any) -> str:
    """`fixed`, or `adaptive steady`."""
    staleness = item["staleness"] or ""
    return f"{item['policy']} {staleness}".rstrip()
