"""The scopes of a job, and the plans that its hook names. They are plugin code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poller.domain.jobs.plan_choice import ScopeHistory
from poller.jobs import plugin_values
from poller.jobs.api import JobSpec, LastPlan, Plans, Scope
from poller.workers.jobs.run_context import at


def listed(spec: JobSpec, services: Any, now_ms: int) -> list[Scope]:
    """Call `scopes` of a job. Raises ValueError for rubbish, and whatever the plugin raises."""
    return plugin_values.scopes(spec.scopes(services, at(now_ms)))


def named(
    hook: Plans, histories: Mapping[Scope, ScopeHistory], now_ms: int
) -> dict[Scope, list[int]]:
    """Call the `plans` hook of a job for each scope. Raises as `listed` does."""
    plans = {}
    for scope, history in histories.items():
        plans[scope] = plugin_values.plans_ms(hook(scope, _last(history), at(now_ms)))
    return plans


def _last(history: ScopeHistory) -> LastPlan | None:
    newest = history.newest
    if newest is None:
        return None
    return LastPlan(at(newest.plan_ms), str(newest.status), newest.attempt)
