"""The checks of a maintenance before it is stored. Each refusal names the field and the remedy."""

from __future__ import annotations

from itertools import pairwise

from poller import errors
from poller.domain.alerts.maintenance import Maintenance
from poller.domain.inventory import duration, target_filter
from poller.domain.inventory.filter_match import FilterMatch
from poller.domain.jobs import wall_clock
from poller.domain.jobs.job_schedule import Cron

DAY_MS = 86_400_000
#: A maintenance that does not recur is no longer than this.
LONGEST_MS = 366 * DAY_MS
#: One that recurs does so for no longer than this.
LONGEST_RECURRENCE_MS = 5 * 366 * DAY_MS
LEAST_LENGTH_MS = 60_000
LONGEST_LENGTH_MS = 31 * DAY_MS
LONGEST_REASON = 1_000
#: A start may be a little earlier than now: a script computed it.
EARLY_MS = 5 * 60_000
#: Beginnings that are compared with the length.
_COMPARED = 400

_HINT_END = "for example --for 2h, or --until 2027-01-31T06:00Z"


def check(draft: Maintenance, now_ms: int) -> None:
    """Refuse a maintenance that would never hold, or for ever. Raises InvalidInput."""
    _check_subject(draft)
    _check_reason(draft.reason)
    _check_span(draft, now_ms)
    if draft.recurs:
        _check_recurrence(draft)
    elif draft.length_ms:
        raise _invalid("length", "a length without a recurrence", "add cron, or leave length out")


def check_reason(reason: str, field: str = "reason") -> None:
    """Refuse a reason or a note that says nothing, or cannot be shown. Raises InvalidInput."""
    _check_reason(reason, field)


def _check_subject(draft: Maintenance) -> None:
    if not (draft.filter or draft.rule or draft.alert_identity):
        hint = f"give a filter such as {target_filter.EXAMPLE}, or a rule; all devices: name:'*'"
        raise _invalid("where", "it would be about nothing in particular", hint)
    if draft.filter:
        FilterMatch(target_filter.parse_nonempty(draft.filter, "where"))


def _check_reason(reason: str, field: str = "reason") -> None:
    if not reason.strip():
        raise _invalid(field, "it is empty", "say why, for those who look at it later")
    if len(reason) > LONGEST_REASON:
        raise _invalid(field, f"it has more than {LONGEST_REASON} characters", "write less")
    if not reason.replace("\n", " ").isprintable():
        raise _invalid(field, "it has characters that cannot be shown", "use plain text")


def _check_span(draft: Maintenance, now_ms: int) -> None:
    longest_ms = LONGEST_RECURRENCE_MS if draft.recurs else LONGEST_MS
    if draft.ends_ms <= now_ms:
        raise _invalid("end", "it has passed", _HINT_END)
    if draft.ends_ms <= draft.starts_ms:
        raise _invalid("end", "it is not after the start", _HINT_END)
    if draft.starts_ms < now_ms - EARLY_MS:
        raise _invalid("start", "it has passed", "leave it out to begin now")
    if draft.ends_ms - now_ms > longest_ms:
        days = longest_ms // DAY_MS
        hint = "choose an earlier end, and make another one when it is over"
        raise _invalid("end", f"it is more than {days} days from now", hint)


def _check_recurrence(draft: Maintenance) -> None:
    fault = wall_clock.fault(draft.cron, draft.time_zone)
    if fault:
        raise _invalid("cron", fault, "for example 0 2 * * sun, with the time zone Europe/Berlin")
    if not LEAST_LENGTH_MS <= draft.length_ms <= LONGEST_LENGTH_MS:
        hint = f"choose 1m to {duration.format_ms(LONGEST_LENGTH_MS)}, for example 2h"
        raise _invalid("length", "a recurrence needs the length of one occurrence", hint)
    begins = Cron(draft.cron, draft.time_zone).plans(
        draft.starts_ms - 1, draft.ends_ms - 1, _COMPARED
    )
    if not begins:
        raise _invalid("cron", "it names no instant before the end", "choose a later end")
    gap_ms = min((later - earlier for earlier, later in pairwise(begins)), default=LONGEST_MS)
    if gap_ms <= draft.length_ms:
        text = f"occurrences are {duration.format_ms(gap_ms)} apart, so they leave no time between"
        raise _invalid("length", text, "choose a shorter length, or no recurrence")


def _invalid(field: str, fault: str, hint: str) -> errors.InvalidInput:
    return errors.InvalidInput(f"{field}: {fault}", hint=hint, field=field)
