"""When an alert without a sign is known to be over: only a poll after its last sign says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow.outage_scene import Reached
from poller.domain.alerts.mark import MOST_MARKS, Mark
from poller.domain.alerts.rule import Condition, DeviceUnreachable, NoData, TargetFailing
from poller.domain.failures.error_codes import Reach
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status

#: A site is back only if so many of its targets were polled since, or all of a smaller site.
SITE_POLLS = 3
_GOOD = (State.OK, State.DEGRADED)


def reached(statuses: Iterable[Status]) -> Reached:
    """Return what the last polls of a device's targets say about the device."""
    polled_ms = answered_ms = 0
    is_silent = False
    for status in statuses:
        polled_ms = max(polled_ms, status.finished_ms)
        if status.reach is Reach.ANSWERED:
            answered_ms = max(answered_ms, status.finished_ms)
        else:
            answered_ms = max(answered_ms, status.ok_ms)
            is_silent = is_silent or status.reach is Reach.SILENT
    return Reached(polled_ms, answered_ms, is_silent)


def device_back_ms(alert: Alert, statuses: Iterable[Status]) -> int:
    """Return when a device that the board no longer has as down answered; 0: not since."""
    answered_ms = reached(statuses).answered_ms
    return answered_ms if answered_ms > alert.seen_ms else 0


def target_well_ms(alert: Alert, condition: Condition, status: Status | None) -> int:
    """Return when a target without a sign was seen without the condition; 0: not since.

    For rules about failures and about missing data.
    """
    if status is None:
        return 0
    if isinstance(condition, NoData):
        return status.ok_ms if status.ok_ms > alert.seen_ms else 0
    if not isinstance(condition, TargetFailing) or status.finished_ms <= alert.seen_ms:
        return 0
    if status.state in _GOOD:
        return status.finished_ms
    has_other_code = bool(condition.codes) and status.code not in condition.codes
    is_told_apart = has_other_code and status.reach is Reach.ANSWERED
    return status.finished_ms if is_told_apart else 0


def unmarked_ms(
    alert: Alert, status: Status | None, marks: Sequence[Mark], marks_since_ms: int
) -> int:
    """Return when a good poll showed a target without the mark of an alert; 0: not since.

    `marks_since_ms` is when the marks of the board were last made whole, after Redis lost them.
    """
    if status is None or len(marks) >= MOST_MARKS:
        return 0  # a mark may have been left out
    after_ms = max(alert.seen_ms, marks_since_ms)
    return status.ok_ms if status.ok_ms > after_ms else 0


def site_back_ms(alert: Alert, targets: int, statuses: Mapping[int, Status]) -> int:
    """Return when a site without a sign was seen to be back; 0: not since.

    Polls since the last sign must be good for at least as many targets as they are bad for.
    """
    polled = [each for each in statuses.values() if each.finished_ms >= alert.seen_ms]
    good = [each.ok_ms for each in polled if each.ok_ms >= alert.seen_ms]
    if not good or len(polled) < min(SITE_POLLS, targets) or 2 * len(good) < len(polled):
        return 0
    return max(good)


def is_about_device(condition: Condition) -> bool:
    """Whether the device itself, not one of its targets, shows that the condition is over."""
    return isinstance(condition, DeviceUnreachable)
