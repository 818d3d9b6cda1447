"""The explanation of a target: one sentence, what else holds, and the command to type next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.why import causes, required_tags, sentences
from poller.domain.why.causes import Cause
from poller.domain.why.target_facts import TargetFacts

_ORDER = {cause: number for number, cause in enumerate(Cause)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one target is polled as it is."""

    facts: TargetFacts
    cause: Cause
    sentence: str
    also: Sequence[str]  # sentences of the other causes that hold
    hint: str  # a command, or what to do; empty for a healthy target

    @property
    def rank(self) -> tuple[bool, int]:
        """The order of several targets, the worst first."""
        return not self.cause.is_bad, _ORDER[self.cause]


def explain(facts: TargetFacts) -> Explanation:
    """Explain a target by its facts."""
    first, *others = causes.found(facts)
    return Explanation(
        facts=facts,
        cause=first,
        sentence=sentences.sentence(first, facts),
        also=[sentences.sentence(cause, facts) for cause in others],
        hint=_HINTS.get(first, _no_hint)(facts),
    )


def _no_hint(facts: TargetFacts) -> str:
    return ""


def _enable(facts: TargetFacts) -> str:
    row = facts.inventory
    if row is None:
        return ""
    if not row.device_enabled:
        return f"poller device edit {row.device} --enable"
    return f"poller target edit {row.name} --enable"


def _by_code(facts: TargetFacts) -> str:
    row = error_codes.TABLE.get(facts.status.code)
    return row.hint if row else f"poller runs {facts.name}"


_HINTS: Mapping[Cause, Callable[[TargetFacts], str]] = {
    Cause.REDIS_AWAY: lambda _: "poller status",
    Cause.REDIS_REFUSES_WRITES: lambda _: "poller status",
    Cause.DATABASE_AWAY: lambda _: "poller status",
    Cause.LEADER_MISSING: lambda _: "poller beat",
    Cause.DISABLED: _enable,
    Cause.PAUSED: lambda facts: f"poller breaker reset {facts.name}",
    Cause.NO_PLACE: lambda _: "poller board check",
    Cause.NO_WORKER: lambda _: "poller worker",
    Cause.UNROUTABLE: required_tags.ways_out,
    Cause.WORKERS_BLOCKED: lambda _: "poller status",
    Cause.QUARANTINED: lambda _: error_codes.TABLE[error_codes.COLLECTOR_QUARANTINED].hint,
    Cause.SITE_DARK: lambda _: "poller events --kind site_opened",
    Cause.DEAD_LETTER: _by_code,
    Cause.WORKER_LOST: lambda _: "poller workers",
    Cause.NOT_STARTED: lambda _: "poller workers",
    Cause.LONG_IN_FLIGHT: lambda facts: f"poller runs {facts.name}",
    Cause.PROBING: _by_code,
    Cause.BREAKER_OPEN: _by_code,
    Cause.DOWN: _by_code,
    Cause.FAILING: _by_code,
    Cause.OVERDUE: lambda _: "poller status",
    Cause.POLL_LOST: lambda _: error_codes.TABLE[error_codes.LEASE_LOST].hint,
    Cause.DEGRADED: lambda facts: f"poller runs {facts.name}",
}
