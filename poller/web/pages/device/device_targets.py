"""The targets table of a device page, worst first: the state of each target, its last good and its
next poll, and why it is not well.
"""

from __future__ import annotations

import enum
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from poller.db.inventory.targets import Target
from poller.domain.inventory import duration
from poller.domain.record.overview import Overview, State, is_long_overdue
from poller.domain.scheduling.interval import Policy
from poller.presentation import formatting, running_workers
from poller.presentation.device_state import DeviceState
from poller.presentation.health import GLYPHS, Tone
from poller.state.board.breakers import BoardTarget

#: Targets of one page.
LIMIT = 25
#: The mark of targets that a person stopped.
_STOPPED_GLYPH = "‖"
#: A poll that is due within this time, or was due within it, starts now.
_SOON_MS = 1_000


class TargetState(enum.StrEnum):
    """The state of a target as the page shows it, worst first."""

    PARKED = "parked"  # a dead letter: retried slowly, and needs a person
    FAILING = "failing"
    DARK = "site dark"  # held until its site answers
    LATE = "late"  # overdue by more than two of its intervals
    DEGRADED = "degraded"
    UNKNOWN = "unknown"  # the board cannot be read
    UNSCHEDULED = "not scheduled yet"
    UNPOLLED = "not polled yet"
    PAUSED = "paused"  # its breaker was opened by hand
    DISABLED = "disabled"
    OK = "ok"

    @property
    def tone(self) -> Tone:
        return _TONES.get(self, Tone.UNKNOWN)

    @property
    def glyph(self) -> str:
        if self in (TargetState.PAUSED, TargetState.DISABLED):
            return _STOPPED_GLYPH
        return GLYPHS[self.tone]


_TONES = {
    TargetState.PARKED: Tone.FAILING,
    TargetState.FAILING: Tone.FAILING,
    TargetState.DARK: Tone.FAILING,
    TargetState.LATE: Tone.LATE,
    TargetState.DEGRADED: Tone.LATE,
    TargetState.OK: Tone.OK,
}
_BY_STATUS = {
    State.FAILING: TargetState.FAILING,
    State.DEGRADED: TargetState.DEGRADED,
    State.UNKNOWN: TargetState.UNPOLLED,
    State.OK: TargetState.OK,
}
_RANKS = {state: rank for rank, state in enumerate(TargetState)}
_WITH_DURATION = (TargetState.PARKED, TargetState.FAILING, TargetState.DEGRADED)


@dataclass(frozen=True, slots=True)
class TargetRow:
    name: str
    state: str
    tone: str
    since: str
    collector: str
    interval: str
    last_good: str
    next_poll: str
    error: str
    note: str  # another reason why the target is not polled


@dataclass(frozen=True, slots=True)
class StateCount:
    text: str
    tone: str


@dataclass(frozen=True, slots=True)
class TargetsView:
    counts: Sequence[StateCount]  # targets by state, worst first
    rows: Sequence[TargetRow]
    shown: str  # which of them, if not all: `26 to 40 of 40`
    previous: int | None  # how many targets come before the page before
    following: int | None
    commands: Sequence[str]  # to type next


def build_view(
    device: str,
    targets: Sequence[Target],
    state: DeviceState,
    overview: Overview | None,
    after: int = 0,
) -> TargetsView:
    """Build the table, without as many of the worst targets as `after` says.

    `overview` is only used for the reason why a target is late.
    """
    states = {target.id: target_state(target, state) for target in targets}

    def rank(target: Target) -> tuple[int, str]:
        return _RANKS[states[target.id]], target.name

    worst_first = sorted(targets, key=rank)
    numbers = Counter(states[target.id] for target in worst_first)

    rows = []
    after = after if after < len(targets) else 0
    end = min(after + LIMIT, len(targets))
    for target in worst_first[after:end]:
        row = _row(target, states[target.id], state, overview)
        rows.append(row)

    return TargetsView(
        counts=[_count(each, number) for each, number in numbers.items()],
        rows=rows,
        shown=f"{after + 1} to {end} of {len(targets)}" if len(rows) < len(targets) else "",
        previous=max(0, after - LIMIT) if after else None,
        following=end if end < len(targets) else None,
        commands=list(_commands(device, numbers.keys(), state.enabled)),
    )


def target_state(target: Target, device: DeviceState) -> TargetState:
    """The state of a target, from its inventory row and the board."""
    if not (target.enabled and device.enabled):
        return TargetState.DISABLED
    if device.board_error:
        return TargetState.UNKNOWN

    on_board = device.on_board.get(target.id)
    if on_board is None:
        return TargetState.UNSCHEDULED
    if on_board.opening:
        return TargetState.PAUSED
    if on_board.status.reason:
        return TargetState.PARKED
    if on_board.place == "held":
        return TargetState.DARK

    is_failing = on_board.status.state is State.FAILING
    if not is_failing and _is_late(on_board, device.now_ms):
        return TargetState.LATE
    return _BY_STATUS[on_board.status.state]


def has_late_target(device: DeviceState) -> bool:
    """Whether any target is overdue by more than two of its intervals."""
    return any(_is_late(target, device.now_ms) for target in device.on_board.values())


def error_text(target: BoardTarget) -> str:
    """The error of the last poll: `timeout: no answer`."""
    parts = (target.status.code, target.status.message)
    return ": ".join(part for part in parts if part)


def _is_late(target: BoardTarget, now_ms: int) -> bool:
    """Whether a target that waits for its poll is overdue by more than two of its intervals."""
    is_waiting = target.place in ("due", "urgent")
    if not is_waiting or target.next_ms <= 0:
        return False
    return is_long_overdue(target.next_ms, target.interval_ms, now_ms)


def _count(state: TargetState, number: int) -> StateCount:
    text = f"{state.glyph} {formatting.exact(number)} {state.value}"
    return StateCount(text, str(state.tone))


def _row(
    target: Target, state: TargetState, device: DeviceState, overview: Overview | None
) -> TargetRow:
    now_ms = device.now_ms
    # The status of a disabled target is that of its last poll, which may be long ago.
    is_disabled = state is TargetState.DISABLED
    on_board = None if is_disabled else device.on_board.get(target.id)
    return TargetRow(
        name=target.name,
        state=f"{state.glyph} {state.value}",
        tone="" if state is TargetState.OK else str(state.tone),
        since=_since(state, on_board, now_ms),
        collector=target.collector,
        interval=_interval(target),
        last_good=_last_good(on_board, now_ms),
        next_poll=_next_poll(on_board, now_ms),
        error=error_text(on_board) if on_board else "",
        note=_note(state, on_board, now_ms, overview),
    )


def _since(state: TargetState, target: BoardTarget | None, now_ms: int) -> str:
    """The duration of a bad state: `for 21 m 4 s`."""
    if target is None or state not in _WITH_DURATION:
        return ""
    since_ms = target.status.since_ms
    if not since_ms:
        return ""

    age = formatting.age(now_ms - since_ms)
    return f"for {age}"


def _interval(target: Target) -> str:
    """`1m`, or `10s (5s to 5m)` when it is adaptive."""
    interval = duration.format_ms(target.interval_ms)
    if target.policy is not Policy.ADAPTIVE:
        return interval
    if not target.min_ms or not target.max_ms:
        return interval

    shortest = duration.format_ms(target.min_ms)
    longest = duration.format_ms(target.max_ms)
    return f"{interval} ({shortest} to {longest})"


def _last_good(target: BoardTarget | None, now_ms: int) -> str:
    if target is None or not target.status.run_ms:
        return formatting.NOT_MEASURED

    ok_ms = target.status.ok_ms
    if not ok_ms:
        return "never"

    age = formatting.age(now_ms - ok_ms)
    return f"{age} ago"


def _next_poll(target: BoardTarget | None, now_ms: int) -> str:
    if target is None:
        return formatting.NOT_MEASURED
    if target.place == "in_flight":
        return "in flight"
    if target.place == "held":
        return "with its site"

    ahead_ms = target.next_ms - now_ms if target.next_ms else 0
    if ahead_ms >= _SOON_MS:
        return f"in {formatting.age(ahead_ms)}"
    if ahead_ms > -_SOON_MS:
        return "now"
    return f"{formatting.age(-ahead_ms)} overdue"


def _note(
    state: TargetState, target: BoardTarget | None, now_ms: int, overview: Overview | None
) -> str:
    """Another reason why a target is not polled, or is polled late."""
    if target is None:
        return ""

    opening = target.opening
    if opening:
        remaining = formatting.age(opening.until_ms - now_ms)
        why = f": {opening.reason}" if opening.reason else ""
        return f"opened by hand by {opening.who}, for another {remaining}{why}"
    if target.status.reason:
        return f"dead letter: {target.status.reason}"
    if state is TargetState.DARK:
        return "waits until the canaries of its site answer"
    if overview and _is_late(target, now_ms):
        return running_workers.waiting_reason(target.queue, overview)
    return "its breaker is open" if target.status.breaker.trips else ""


def _commands(device: str, states: Set[TargetState], is_enabled: bool) -> Iterator[str]:
    """The commands that explain the states of the targets, or change them."""
    device = shlex.quote(device)
    if not is_enabled:
        yield f"poller device edit {device} --enable"
    if states & {TargetState.PARKED, TargetState.FAILING, TargetState.DEGRADED}:
        yield f"poller runs {device}"
    if TargetState.PARKED in states:
        yield f"poller deadletter list --device {device}"
    if TargetState.PAUSED in states:
        yield f"poller breaker show {device}"
    if states & {TargetState.UNSCHEDULED, TargetState.UNKNOWN, TargetState.LATE}:
        yield "poller status"
