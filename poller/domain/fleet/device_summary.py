"""A device in one line: the worst of its targets decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.record.overview import State
from poller.domain.why.target_health import TargetHealth

#: Worst first.
_RANK = (State.FAILING, State.DEGRADED, State.UNKNOWN, State.OK)
DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The line of a device. Instants are UTC milliseconds; 0: never."""

    state: str  # a state of targets, or `disabled`
    worst: TargetHealth | None = None  # the target that decides; None without an enabled one
    failing: int = 0  # targets
    polled: int = 0  # enabled targets
    ok_ms: int = 0  # the oldest of the last good polls
    overdue: bool = False  # a target waits for more than two of its intervals


def summarise(targets: Sequence[TargetHealth]) -> DeviceSummary:
    """Return the line of a device from all its targets."""
    enabled = [target for target in targets if target.row.enabled]
    if not enabled:
        return DeviceSummary(DISABLED)
    worst = min(enabled, key=_badness)
    failing = [target for target in enabled if target.status.state is State.FAILING]
    return DeviceSummary(
        state=worst.status.state.value,
        worst=worst,
        failing=len(failing),
        polled=len(enabled),
        ok_ms=min(target.status.ok_ms for target in enabled),
        overdue=any(target.is_long_overdue for target in enabled),
    )


def _badness(target: TargetHealth) -> tuple[int, int, str]:
    """Sorts the worst target first; among equals the one that failed first."""
    return _RANK.index(target.status.state), target.status.since_ms, target.row.target
