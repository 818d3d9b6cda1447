"""Signs made of the levels that the board keeps: down, failing, without data, marked, dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.alerts.alert import Subject
from poller.domain.alerts.flow.known_device import KnownDevice
from poller.domain.alerts.flow.known_rules import KnownRules, Selected
from poller.domain.alerts.flow.sign import Sign
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import (
    DeviceUnreachable,
    NoData,
    PlatformProblem,
    PlatformTrouble,
    SiteDark,
    TargetFailing,
)
from poller.domain.failures.site_outage import Outage
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status


@dataclass(frozen=True, slots=True)
class Trouble:
    """One problem of the platform. `name` is the part of it: a queue, a sink, a job, a worker."""

    problem: PlatformProblem
    name: str = ""
    since_ms: int = 0
    detail: str = ""
    value: float | None = None


def unreachable(rules: KnownRules, device: KnownDevice, since_ms: int) -> Iterator[Sign]:
    """Yield the signs of a device that the board has as down."""
    for selected, _ in rules.of_kind(DeviceUnreachable):
        if selected.accepts(device):
            subject = Subject(device_id=device.id, device=device.name, site=device.site)
            yield Sign(rule=selected.rule, subject=subject, since_ms=since_ms, seen_ms=since_ms)


def failing(
    rules: KnownRules, device: KnownDevice, target_id: int, status: Status
) -> Iterator[Sign]:
    """Yield the signs of a target that fails for certain while its device responds."""
    if status.state is not State.FAILING:
        return
    for selected, condition in rules.of_kind(TargetFailing):
        is_meant = not condition.codes or status.code in condition.codes
        if is_meant and selected.accepts(device, target_id):
            labels = {"code": status.code, "message": status.message}
            yield _of_target(
                selected, device, target_id, (status.since_ms, status.finished_ms), labels=labels
            )


def shortest_wait_ms(rules: KnownRules, shortest_interval_ms: int = 1_000) -> int:
    """Return the age of the last good poll below which no rule can miss data."""
    intervals = [condition.intervals for _, condition in rules.of_kind(NoData)]
    return round(min(intervals) * shortest_interval_ms) if intervals else 0


def no_data(
    rules: KnownRules, device: KnownDevice, target_id: int, ok_ms: int, now_ms: int
) -> Iterator[Sign]:
    """Yield the signs of a target whose last good poll is too long ago; `ok_ms` is 0 if it never
    had one.
    """
    target = device.targets[target_id]
    since_ms = max(ok_ms, target.created_ms)
    age = (now_ms - since_ms) / target.interval_ms
    for selected, condition in rules.of_kind(NoData):
        if age > condition.intervals and selected.accepts(device, target_id):
            yield _of_target(selected, device, target_id, (since_ms, ok_ms), value=round(age, 1))


def marked(
    rules: KnownRules, device: KnownDevice, target_id: int, marks: Sequence[Mark]
) -> Iterator[Sign]:
    """Yield the signs of the conditions that workers marked. A mark of a rule that is gone has
    none.
    """
    for mark in marks:
        selected = rules.by_id(mark.rule_id)
        if selected is None or not selected.accepts(device, target_id):
            continue
        yield _of_target(
            selected,
            device,
            target_id,
            (mark.since_ms, mark.at_ms),
            series=mark.series,
            value=mark.value,
            labels=mark.labels,
        )


def dark(rules: KnownRules, outage: Outage) -> Iterator[Sign]:
    """Yield the signs of a dark site. Its canaries were polled at `asked_ms`, and found nobody."""
    seen_ms = max(outage.since_ms, outage.asked_ms)
    for selected, _ in rules.of_kind(SiteDark):
        if selected.accepts_site(outage.site):
            yield Sign(
                rule=selected.rule,
                subject=Subject(site=outage.site),
                since_ms=outage.since_ms,
                seen_ms=seen_ms,
            )


def troubled_platform(rules: KnownRules, trouble: Trouble, now_ms: int) -> Iterator[Sign]:
    """Yield the signs of a problem of the platform."""
    for selected, condition in rules.of_kind(PlatformTrouble):
        if condition.problem is trouble.problem:
            yield Sign(
                rule=selected.rule,
                subject=Subject(series=trouble.name),
                since_ms=trouble.since_ms or now_ms,
                seen_ms=now_ms,
                value=trouble.value,
                labels={"detail": trouble.detail},
            )


def _of_target(
    selected: Selected,
    device: KnownDevice,
    target_id: int,
    instants: tuple[int, int],
    *,
    series: str = "",
    value: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> Sign:
    """Return a sign of a target; `instants` are its beginning and the last poll that showed it."""
    subject = Subject(
        device_id=device.id,
        target_id=target_id,
        device=device.name,
        target=device.targets[target_id].name,
        site=device.site,
        series=series,
    )
    since_ms, seen_ms = instants
    return Sign(
        rule=selected.rule,
        subject=subject,
        since_ms=since_ms,
        seen_ms=seen_ms,
        value=value,
        labels=labels or {},
    )
