"""The verdict: is the fleet polled, is that on time, and what failed?

The headline of the page, `poller status` with its exit code, `/api/overview` and `/readyz` all take
their answer from `judge`, so that none of them says what another denies.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from poller import errors
from poller.domain.record.overview import Overview, State
from poller.presentation import formatting, health_reasons
from poller.presentation.health_reasons import LATE_P99_MS, Punctuality, Reason, Stores, Tone

__all__ = [
    "LATE_P99_MS",
    "Health",
    "Level",
    "Punctuality",
    "Stores",
    "Tone",
    "is_first_run",
    "judge",
]

GLYPHS = {Tone.OK: "●", Tone.LATE: "▲", Tone.FAILING: "■", Tone.UNKNOWN: "○"}
_WORST_FIRST = (Tone.FAILING, Tone.LATE, Tone.UNKNOWN, Tone.OK)
_NO_STORE_ERROR = Stores()


class Level(enum.StrEnum):
    """How urgent the verdict is."""

    OK = "ok"
    ATTENTION = "attention"  # polling goes on, but something fails or is late
    DOWN = "down"  # nothing is polled, or a store cannot be used


@dataclass(frozen=True, slots=True)
class Health:
    """One verdict. `text` is all reasons, the weightiest first."""

    tone: Tone
    text: str
    title: str  # of the browser tab
    level: Level = Level.OK
    reasons: Sequence[str] = ()
    is_ready: bool = True  # Redis and SQL can be used
    punctuality: Punctuality = Punctuality.UNKNOWN

    @property
    def glyph(self) -> str:
        return GLYPHS[self.tone]

    @property
    def alarm(self) -> bool:
        return self.level is Level.DOWN

    @property
    def exit_code(self) -> int:
        """The exit code of `poller status`: 5 for an unusable store, 1 for other stops, else 0."""
        if not self.is_ready:
            return errors.StoreUnavailable.exit_code
        return 1 if self.level is Level.DOWN else os.EX_OK


def judge(
    overview: Overview | None, stores: Stores = _NO_STORE_ERROR, last_read: str = ""
) -> Health:
    """Judge a fleet by its board and its stores. The tone is that of the worst reason.

    The overview is None while the board cannot be read; `last_read` is then the instant of the
    numbers that are still shown.
    """
    reasons = list(health_reasons.unusable_stores(stores))
    if overview is None:
        if last_read:
            text = f"The numbers below are from {last_read} UTC."
            reasons.append(Reason(Tone.FAILING, text))
        return _verdict(reasons, "(!) poller")

    if is_first_run(overview, stores):
        return _first_run(overview, stores)
    reasons += _reasons(overview, stores)
    is_stopped = any(reason.stops for reason in reasons)
    found = _verdict(reasons, "(!) poller" if is_stopped else _title(overview))
    return replace(found, punctuality=_punctuality(overview, stores))


def is_first_run(overview: Overview, stores: Stores = _NO_STORE_ERROR) -> bool:
    """Whether there is no target anywhere, and there was never a poll."""
    is_unused = overview.targets == 0 and not overview.totals.get("polls")
    is_sql_empty = not stores.sql_error and not stores.sql_targets
    return is_unused and is_sql_empty and not stores.write_error


def _first_run(overview: Overview, stores: Stores) -> Health:
    """The verdict before the first target. Jobs run all the same, and their trouble comes first."""
    text = "Nothing to poll yet. Three ways to begin:"
    troubles = list(health_reasons.troubled_jobs(overview, stores))
    if not troubles:
        return Health(Tone.UNKNOWN, text, "poller")
    found = _verdict(troubles, "poller")
    return replace(found, text=f"{found.text} {text}")


def _punctuality(overview: Overview, stores: Stores) -> Punctuality:
    if _stops(overview) or stores.write_error:
        return Punctuality.STOPPED
    return health_reasons.punctual(overview) if overview.targets else Punctuality.UNKNOWN


def _stops(overview: Overview) -> list[Reason]:
    """Why nothing is polled, though the stores can be used."""
    return [*health_reasons.missing_processes(overview), *health_reasons.silent(overview)]


def _reasons(overview: Overview, stores: Stores) -> list[Reason]:
    """All reasons beside the stores', the weightiest first."""
    found = _stops(overview)
    is_stopped = bool(found or stores.write_error)
    found += health_reasons.obstacles(overview, stores)
    found += health_reasons.empty_board(overview, stores)
    if is_stopped:
        # Lateness and good states are out of date while nothing is polled.
        found += health_reasons.failing(overview)
    elif overview.targets:
        found += health_reasons.polled(overview)
        found += health_reasons.punctuality(overview)
    elif not (stores.sql_targets or stores.sql_error):
        found.append(Reason(Tone.UNKNOWN, "There is no target to poll."))
    found += health_reasons.paused(overview)
    found += health_reasons.firing_alerts(stores)
    found += health_reasons.dark_sites(overview)
    if not is_stopped:
        found += health_reasons.shortages(overview)
    found += health_reasons.unserved_queues(overview)
    found += health_reasons.troubled_sinks(overview)
    found += health_reasons.unwritten_results(overview)
    found += health_reasons.kept_rows(overview)
    found += health_reasons.troubled_jobs(overview, stores)
    return found


def _verdict(reasons: Sequence[Reason], title: str) -> Health:
    tones = {reason.tone for reason in reasons}
    worst = next(tone for tone in _WORST_FIRST if tone in tones)
    level = Level.OK
    if any(reason.stops for reason in reasons):
        level = Level.DOWN
    elif worst in (Tone.FAILING, Tone.LATE):
        level = Level.ATTENTION

    texts = [reason.text for reason in reasons]
    is_ready = not any(reason.is_store for reason in reasons)
    return Health(worst, " ".join(texts), title, level, texts, is_ready)


def _title(overview: Overview) -> str:
    failing = overview.states.get(State.FAILING, 0)
    return f"({formatting.exact(failing)}) poller" if failing else "poller"
