"""Dead letters and their groups with names, ages and advice, for CLI, API and pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from poller.db.record.dead_letter_rows import Named
from poller.db.record.letter_groups import Group
from poller.domain.failures import error_codes
from poller.presentation import formatting

#: A group has the number of letters that arrived in this time.
ARRIVED_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ShownLetter:
    """One dead letter: a target that needs a person."""

    target_id: int
    device: str
    target: str
    site: str
    collector: str
    reason: str
    error_code: str
    category: str
    message: str
    first_failure: datetime | None
    last_failure: datetime | None
    parked: datetime | None
    parked_seconds: int
    attempts: int
    next_try: datetime | None
    next_try_seconds: int


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """Letters that most likely have one cause, or that share another thing. What they do not share
    is empty; `message` is then the error of one of them, of as many different ones as `texts`.
    """

    reason: str
    error_code: str
    category: str
    collector: str
    site: str
    device: str
    message: str
    texts: int
    letters: int
    devices: int
    sites: int
    first_failure: datetime | None
    last_failure: datetime | None
    first_seconds: int
    last_seconds: int
    oldest_seconds: int
    arrived_last_hour: int


def letter(named: Named, now_ms: int) -> ShownLetter:
    """Return a letter as people and programs see it."""
    of = named.letter
    return ShownLetter(
        target_id=of.target_id,
        device=named.device,
        target=named.target,
        site=named.site,
        collector=named.collector,
        reason=of.reason.value if of.reason else "",
        error_code=of.error_code,
        category=error_codes.category_of(of.error_code),
        message=of.message,
        first_failure=formatting.moment(of.first_ms),
        last_failure=formatting.moment(of.last_ms),
        parked=formatting.moment(of.parked_ms),
        parked_seconds=_seconds(now_ms - of.parked_ms),
        attempts=of.attempts,
        next_try=formatting.moment(of.next_ms),
        next_try_seconds=_seconds(of.next_ms - now_ms),
    )


def group(of: Group, now_ms: int) -> ShownGroup:
    """Return a group as people and programs see it."""
    return ShownGroup(
        reason=of.reason,
        error_code=of.error_code,
        category=error_codes.category_of(of.error_code) if of.error_code else "",
        collector=of.collector,
        site=of.site,
        device=of.device,
        message=of.message,
        texts=of.texts,
        letters=of.letters,
        devices=of.devices,
        sites=of.sites,
        first_failure=formatting.moment(of.first_ms),
        last_failure=formatting.moment(of.last_ms),
        first_seconds=_seconds(now_ms - of.first_ms),
        last_seconds=_seconds(now_ms - of.last_ms),
        oldest_seconds=_seconds(now_ms - of.oldest_ms),
        arrived_last_hour=of.arrived,
    )


def advice(named: Named) -> dict[str, str]:
    """Return the meaning of the letter's error code and what to do about it."""
    row = error_codes.TABLE.get(named.letter.error_code)
    if row is None:
        return {"meaning": "", "hint": ""}
    return {"meaning": row.meaning, "hint": row.hint}


def full_name(named: Named) -> str:
    """Return `DEVICE/TARGET`."""
    return f"{named.device}/{named.target}"


def _seconds(ms: int) -> int:
    return max(0, ms) // 1000
