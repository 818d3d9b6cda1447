"""The state of a sink: in one process, in one worker, in the whole cluster."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


class SinkState(enum.StrEnum):
    """The state of a sink for operators, the best first."""

    OK = "ok"
    BEHIND = "behind"  # it writes, and polls wait on disk
    REFUSING = "refusing"  # the store answers, and refuses samples for good
    DOWN = "down"  # the store does not answer, or asks to wait; polls wait on disk


_WORST_FIRST = tuple(reversed(SinkState))


class DropReason(enum.StrEnum):
    """Why polls will not reach a sink."""

    FULL = "full"  # the disk space for waiting polls is used up
    REFUSED = "refused"  # the store refused them several times; files keep the first ones
    DAMAGED = "damaged"  # their file was changed
    DISK = "disk"  # the disk takes no rows, and memory is used up
    INVALID = "invalid"  # their values cannot be written to a file


@dataclass(frozen=True, slots=True)
class SinkReport:
    """One sink, as one worker or all of them see it. Counts are since the workers started."""

    name: str
    kind: str
    state: SinkState = SinkState.OK
    polls: int = 0  # written
    samples: int = 0
    polls_per_s: float = 0.0  # over the last minute
    samples_per_s: float = 0.0
    oldest_ms: int = 0  # instant of the oldest poll that is not stored yet; 0 for none
    spooled_polls: int = 0
    spooled_bytes: int = 0
    error: str = ""  # the last one, also of an outage that is over
    hint: str = ""
    error_ms: int = 0
    retry_ms: int = 0  # of the next attempt, while the store is down
    dropped: Mapping[str, int] = field(default_factory=dict)  # polls, by DropReason
    left_out: int = 0  # single samples that the sink left out
    left_out_reason: str = ""  # the newest; names a series
    stored_ms: int = 0  # when the store last took a poll; 0 for never

    def lag_ms(self, now_ms: int) -> int:
        """The age of the oldest poll that is not stored yet."""
        return max(0, now_ms - self.oldest_ms) if self.oldest_ms else 0

    @property
    def dropped_polls(self) -> int:
        return sum(self.dropped.values())


def judge(*, is_down: bool, is_refused: bool, spooled_polls: int) -> SinkState:
    """Return the state of a sink in one process."""
    if is_down:
        return SinkState.DOWN
    if is_refused:
        return SinkState.REFUSING
    return SinkState.BEHIND if spooled_polls else SinkState.OK


def combine(reports: Iterable[SinkReport]) -> list[SinkReport]:
    """Return one report for each sink, in the order of their first mention.

    The state is the worst one, the error the newest, numbers are sums.
    """
    by_name: dict[str, list[SinkReport]] = {}
    for report in reports:
        by_name.setdefault(report.name, []).append(report)
    return [_combined(each) for each in by_name.values()]


def _combined(reports: list[SinkReport]) -> SinkReport:
    if len(reports) == 1:
        return reports[0]
    states = {each.state for each in reports}
    last_failed = max(reports, key=lambda each: each.error_ms)
    waiting_ms = [each.oldest_ms for each in reports if each.oldest_ms]
    retries_ms = [each.retry_ms for each in reports if each.retry_ms]
    dropped: Counter[str] = Counter()
    for each in reports:
        dropped.update(each.dropped)
    return SinkReport(
        name=reports[0].name,
        kind=reports[0].kind,
        state=next(state for state in _WORST_FIRST if state in states),
        polls=sum(each.polls for each in reports),
        samples=sum(each.samples for each in reports),
        polls_per_s=sum(each.polls_per_s for each in reports),
        samples_per_s=sum(each.samples_per_s for each in reports),
        oldest_ms=min(waiting_ms, default=0),
        spooled_polls=sum(each.spooled_polls for each in reports),
        spooled_bytes=sum(each.spooled_bytes for each in reports),
        error=last_failed.error,
        hint=last_failed.hint,
        error_ms=last_failed.error_ms,
        retry_ms=min(retries_ms, default=0),
        dropped=dict(dropped),
        left_out=sum(each.left_out for each in reports),
        stored_ms=max(each.stored_ms for each in reports),
        left_out_reason=next((each.left_out_reason for each in reports if each.left_out), ""),
    )
