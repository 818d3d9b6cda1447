"""What commands need to know of intervals: defaults when a target is saved, the last decision when it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.cli.output import render
from poller.domain.inventory import duration
from poller.domain.scheduling import interval
from poller.domain.scheduling.interval import Decision, Policy
from poller.domain.scheduling.schedule import Defaults
from poller.settings import policies

if TYPE_CHECKING:
    from poller.db.inventory.targets import Target


def defaults_of(collector: str | None) -> Defaults:
    """What a target of this collector gets where its owner says nothing. Raises InvalidInput for a broken default."""
    services = bootstrap.services()
    declared = services.registry.schedule(collector or "")
    if declared.staleness is not None:
        services.staleness.check(declared.staleness)
    return Defaults(declared, policies.adaptive_interval(services.settings))


def check_staleness(name: str) -> str:
    return bootstrap.services().staleness.check(name)


def described(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Targets for people and programs, adaptive ones with their last decision and a sentence that explains it."""
    decisions = _decisions([target.id for target in targets if target.policy is Policy.ADAPTIVE])
    return [{**asdict(target), **_last(target, decisions.get(target.id))} for target in targets]


def _last(target: Target, decision: Decision | None) -> dict[str, Any]:
    """Only what is adaptive decides anything."""
    if target.policy is not Policy.ADAPTIVE:
        return {}
    if decision is None:
        return {"decision": None, "why": ""}
    policy = policies.adaptive_interval(bootstrap.services().settings).with_bounds(
        target.min_ms or target.interval_ms, target.interval_ms, target.max_ms or target.interval_ms
    )
    return {"decision": asdict(decision), "why": interval.explain(policy, decision)}


def _decisions(ids: Sequence[int]) -> dict[int, Decision]:
    """From the board, if there is one to ask."""
    if not ids:
        return {}
    try:
        found = bootstrap.services().board.statuses(ids)
    except errors.StoreError:
        render.note("note: Redis is not reachable, so what was decided last is not shown")
        return {}
    return {i: status.decision for i, status in found.items() if status.decision}


def span(item: Any) -> str:
    """`1m`, or `10s (5s to 5m)` for an adaptive one."""
    base = duration.format_ms(item["interval_ms"])
    if item["policy"] != Policy.ADAPTIVE:
        return base
    return f"{base} ({duration.format_ms(item['min_ms'])} to {duration.format_ms(item['max_ms'])})"


def policy_word(item: Any) -> str:
    """`fixed`, or `adaptive steady`."""
    return f"{item['policy']} {item['staleness'] or ''}".rstrip()
