"""A device's targets as rows of its page: how each stands, when it is polled, and why it is not well; worst first."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller.db.inventory.targets import Target
from poller.domain.inventory import duration
from poller.domain.record.overview import Overview, State, is_long_overdue
from poller.domain.scheduling.interval import Policy
from poller.presentation import formatting, health
from poller.presentation.device_state import Standing
from poller.presentation.health import GLYPHS, Tone
from poller.state.board.breakers import BoardTarget

LIMIT = 50
#: The mark of what is not polled because a person wants it so.
_AT_REST = "‖"
#: A poll that is so late is simply about to begin.
_SOON_MS = 1_000


class Stand(enum.StrEnum):
    """How a target stands, worst first."""

    PARKED = "parked"  # a dead letter: asked only slowly, and needs a person
    FAILING = "failing"
    DARK = "site dark"  # waits for its whole site
    LATE = "late"  # should have been polled two intervals ago
    DEGRADED = "degraded"
    UNKNOWN = "unknown"  # the board cannot be asked
    UNSCHEDULED = "not scheduled yet"
    UNPOLLED = "not polled yet"
    PAUSED = "paused"  # its breaker was opened by hand
    DISABLED = "disabled"
    OK = "ok"

    @property
    def tone(self) -> Tone:
        return _TONES.get(self, Tone.UNKNOWN)

    @property
    def words(self) -> str:
        return f"{self.glyph} {self.value}"

    @property
    def glyph(self) -> str:
        return _AT_REST if self in (Stand.PAUSED, Stand.DISABLED) else GLYPHS[self.tone]


_TONES = {
    Stand.PARKED: Tone.FAILING,
    Stand.FAILING: Tone.FAILING,
    Stand.DARK: Tone.FAILING,
    Stand.LATE: Tone.LATE,
    Stand.DEGRADED: Tone.LATE,
    Stand.OK: Tone.OK,
}
_STATES = {
    State.FAILING: Stand.FAILING,
    State.DEGRADED: Stand.DEGRADED,
    State.UNKNOWN: Stand.UNPOLLED,
    State.OK: Stand.OK,
}
_WORST_FIRST = {stand: rank for rank, stand in enumerate(Stand)}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    state: str
    tone: str
    since: str
    collector: str
    interval: str
    last_good: str
    next_poll: str
    error: str
    note: str  # what else keeps it from being polled


@dataclass(frozen=True, slots=True)
class Counted:
    words: str
    tone: str


@dataclass(frozen=True, slots=True)
class TargetsView:
    counted: Sequence[Counted]  # how many stand how, worst first
    rows: Sequence[Row]
    more: int
    commands: Sequence[str]  # what to type next


def present(
    device: str, targets: Sequence[Target], standing: Standing, overview: Overview | None
) -> TargetsView:
    """`overview` says what late ones wait for; it is not asked for anything else."""
    stands = {target.id: stand(target, standing) for target in targets}
    ordered = sorted(targets, key=lambda target: (_WORST_FIRST[stands[target.id]], target.name))
    counted = Counter(stands[target.id] for target in ordered)
    return TargetsView(
        [
            Counted(f"{each.glyph} {formatting.exact(number)} {each}", str(each.tone))
            for each, number in counted.items()
        ],
        [_row(target, stands[target.id], standing, overview) for target in ordered[:LIMIT]],
        len(ordered[LIMIT:]),
        list(_commands(device, counted, standing)),
    )


def stand(target: Target, standing: Standing) -> Stand:
    if not (target.enabled and standing.enabled):
        return Stand.DISABLED
    if standing.trouble:
        return Stand.UNKNOWN
    seen = standing.seen.get(target.id)
    if seen is None:
        return Stand.UNSCHEDULED
    if seen.opening:
        return Stand.PAUSED
    if seen.status.reason:
        return Stand.PARKED
    if seen.place == "held":
        return Stand.DARK
    if seen.status.state is not State.FAILING and _is_late(seen, standing.now_ms):
        return Stand.LATE
    return _STATES[seen.status.state]


def any_late(standing: Standing) -> bool:
    return any(_is_late(seen, standing.now_ms) for seen in standing.seen.values())


def _is_late(seen: BoardTarget, now_ms: int) -> bool:
    waits = seen.place in ("due", "urgent") and seen.next_ms > 0
    return waits and is_long_overdue(seen.next_ms, seen.interval_ms, now_ms)


def _row(target: Target, how: Stand, standing: Standing, overview: Overview | None) -> Row:
    seen = None if how is Stand.DISABLED else standing.seen.get(target.id)
    return Row(
        target.name,
        how.words,
        "" if how is Stand.OK else str(how.tone),
        _since(how, seen, standing.now_ms),
        target.collector,
        _interval(target),
        _last_good(seen, standing.now_ms),
        _next_poll(seen, standing.now_ms),
        error(seen) if seen else "",
        _note(how, seen, standing.now_ms, overview),
    )


def _since(how: Stand, seen: BoardTarget | None, now_ms: int) -> str:
    """`for 21 m 4 s`: only of what is not well."""
    if (
        seen is None
        or how not in (Stand.PARKED, Stand.FAILING, Stand.DEGRADED)
        or not seen.status.since_ms
    ):
        return ""
    return f"for {formatting.age(now_ms - seen.status.since_ms)}"


def _interval(target: Target) -> str:
    """`1m`, or `10s (5s to 5m)` for an adaptive one, as the command line has it."""
    base = duration.format_ms(target.interval_ms)
    if target.policy is not Policy.ADAPTIVE or not (target.min_ms and target.max_ms):
        return base
    return f"{base} ({duration.format_ms(target.min_ms)} to {duration.format_ms(target.max_ms)})"


def _last_good(seen: BoardTarget | None, now_ms: int) -> str:
    if seen is None or not seen.status.run_ms:
        return formatting.NOT_MEASURED
    return f"{formatting.age(now_ms - seen.status.ok_ms)} ago" if seen.status.ok_ms else "never"


def _next_poll(seen: BoardTarget | None, now_ms: int) -> str:
    if seen is None:
        return formatting.NOT_MEASURED
    if seen.place == "in_flight":
        return "under way"
    if seen.place == "held":
        return "with its site"
    ahead_ms = seen.next_ms - now_ms if seen.next_ms else 0
    if ahead_ms >= _SOON_MS:
        return f"in {formatting.age(ahead_ms)}"
    return "now" if ahead_ms > -_SOON_MS else f"{formatting.age(-ahead_ms)} overdue"


def error(seen: BoardTarget) -> str:
    """`timeout: no answer`: what the last poll said."""
    return ": ".join(filter(None, (seen.status.code, seen.status.message)))


def _note(how: Stand, seen: BoardTarget | None, now_ms: int, overview: Overview | None) -> str:
    if seen is None:
        return ""
    if seen.opening:
        return f"opened by hand by {seen.opening.who}, for another {formatting.age(seen.opening.until_ms - now_ms)}"
    if seen.status.reason:
        return f"dead letter: {seen.status.reason}"
    if how is Stand.DARK:
        return "waits until a few others of its site answer"
    if _is_late(seen, now_ms) and overview:
        return health.waiting_reason(seen.queue, overview)
    return "its breaker is open" if seen.status.breaker.trips else ""


def _commands(device: str, counted: Counter[Stand], standing: Standing) -> Iterator[str]:
    if not standing.enabled:
        yield f"poller device edit {device} --enable"
    if counted[Stand.PARKED] or counted[Stand.FAILING] or counted[Stand.DEGRADED]:
        yield f"poller runs {device}"
    if counted[Stand.PARKED]:
        yield f"poller deadletter list --device {device}"
    if counted[Stand.PAUSED]:
        yield f"poller breaker show {device}"
    if counted[Stand.UNSCHEDULED] or counted[Stand.UNKNOWN] or counted[Stand.LATE]:
        yield "poller status"
