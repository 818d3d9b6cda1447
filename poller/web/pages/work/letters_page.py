"""The page of dead letters as texts: groups first, then the letters of one of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import GroupBy, Reason
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.operations.letter_actions import LetterQuery
from poller.service.operations.letter_overview import LetterOverview
from poller.service.operations.shown_letters import ShownGroup, ShownLetter
from poller.web.api.contract import paging
from poller.web.pages.work import letters_query
from poller.web.pages.work.letters_query import LettersQuery, View

#: Groups of one page.
MOST_GROUPS = 50


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group: what its letters share, how many they are, and the link to them."""

    key: str
    title: str
    note: str  # beside the title: the code, the collector
    message: str
    others: str  # `3 other texts`
    number: str
    touched: str  # `3 devices, 2 sites`
    arriving: str
    oldest: str
    first: str
    last: str
    url: str
    query: LetterQuery  # the letters of the group
    where: str

    @property
    def command(self) -> str:
        return letters_query.command("requeue", self.query)


@dataclass(frozen=True, slots=True)
class LetterRow:
    """One letter, with its error as a whole and what to do about it."""

    target_id: int
    device: str
    target: str
    site: str
    reason: str
    code: str
    message: str
    attempts: str
    parked: str
    parked_at: str
    first_at: str
    last_at: str
    next_try: str
    meaning: str
    hint: str

    @property
    def name(self) -> str:
        return f"{self.device}/{self.target}"

    @property
    def command(self) -> str:
        return f"poller deadletter requeue {shlex.quote(self.name)}"


@dataclass(frozen=True, slots=True)
class LettersView:
    """The groups, or a page of letters, of what a filter selects."""

    as_of: str
    query: LettersQuery
    where: str  # the filter in its full form
    summary: str
    total: int
    groups: Sequence[GroupRow]
    more_groups: bool
    rows: Sequence[LetterRow]
    command: str
    empty: str
    first: str
    following: str

    @property
    def views(self) -> Sequence[View]:
        return list(View)

    @property
    def reasons(self) -> Sequence[Reason]:
        return list(Reason)


def build_view(
    query: LettersQuery, wanted: TargetFilter, found: LetterOverview, now_ms: int
) -> LettersView:
    """Build the view of what was found."""
    letters = LetterQuery(query.reason, wanted, message=query.message)
    cursor = paging.encode(found.letters.next_key)
    return LettersView(
        as_of=formatting.instant(now_ms),
        query=query,
        where=target_filter.text(wanted),
        summary=_summary(found.every),
        total=found.every.letters if found.every else 0,
        groups=[_group(each, query, wanted) for each in found.groups],
        more_groups=found.has_more_groups,
        rows=[row(each) for each in found.letters.items],
        command=letters_query.command("list", letters, _flags(query)),
        empty=_empty(query),
        first=query.url() if query.after else "",
        following=query.url(after=cursor) if cursor else "",
    )


def row(letter: ShownLetter) -> LetterRow:
    """A letter as texts."""
    known = error_codes.TABLE.get(letter.error_code)
    return LetterRow(
        target_id=letter.target_id,
        device=letter.device,
        target=letter.target,
        site=letter.site,
        reason=_words(letter.reason),
        code=letter.error_code,
        message=letter.message,
        attempts=formatting.exact(letter.attempts),
        parked=formatting.age(1000 * letter.parked_seconds),
        parked_at=_iso(letter.parked),
        first_at=_iso(letter.first_failure),
        last_at=_iso(letter.last_failure),
        next_try=formatting.age(1000 * letter.next_try_seconds),
        meaning=known.meaning if known else "",
        hint=known.hint if known else "",
    )


def _group(group: ShownGroup, query: LettersQuery, wanted: TargetFilter) -> GroupRow:
    title, note = _names(group, query.view)
    letters = LetterQuery(
        group.reason or query.reason,
        _narrowed(wanted, group, query.view),
        message=group.message if query.view is View.TEXT else query.message,
    )
    touched = formatting.counted(group.devices, "device")
    if query.view is not View.SITE:
        touched += f", {formatting.counted(group.sites, 'site')}"
    return GroupRow(
        key=" ".join((group.reason, group.error_code, group.collector, title, letters.message)),
        title=title,
        note=note,
        message=group.message,
        others=f"and {formatting.counted(group.texts - 1, 'other text')}"
        if group.texts > 1
        else "",
        number=formatting.exact(group.letters),
        touched=touched,
        arriving=f"{group.arrived_last_hour:,} /h",
        oldest=formatting.age(1000 * group.oldest_seconds),
        first=_iso(group.first_failure),
        last=_iso(group.last_failure),
        url=query.of_letters(letters),
        query=letters,
        where=target_filter.text(letters.wanted),
    )


def _names(group: ShownGroup, view: View) -> tuple[str, str]:
    """The title of a group, and what stands beside it."""
    if view is View.DEVICE:
        return group.device, ""
    if view is View.SITE:
        return group.site or "(no site)", ""
    if view is View.COLLECTOR:
        return group.collector, ""
    return _words(group.reason), f"{group.error_code} · {group.collector}"


def _narrowed(wanted: TargetFilter, group: ShownGroup, view: View) -> TargetFilter:
    """The filter of the letters of a group, without its reason and text."""
    if view is View.DEVICE:
        return replace(wanted, names=(group.device,))
    if view is View.SITE:
        return replace(wanted, sites=(group.site,))
    narrower = replace(wanted, collectors=(group.collector,))
    return narrower if view is View.COLLECTOR else replace(narrower, codes=(group.error_code,))


def _summary(every: ShownGroup | None) -> str:
    """`12 dead letters of 9 devices at 2 sites, the oldest for 3 h, 1 new in the last hour.`"""
    if every is None:
        return ""
    letters = formatting.counted(every.letters, "dead letter")
    devices = formatting.counted(every.devices, "device")
    sites = formatting.counted(every.sites, "site")
    oldest = formatting.age(1000 * every.oldest_seconds)
    arrived = formatting.exact(every.arrived_last_hour)
    return (
        f"{letters} of {devices} at {sites}, the oldest for {oldest}, "
        f"{arrived} new in the last hour."
    )


def _flags(query: LettersQuery) -> list[str]:
    """The grouping, as the command has it."""
    return ["--group", query.view.value] if query.view.group_by not in (None, GroupBy.CAUSE) else []


def _empty(query: LettersQuery) -> str:
    """Why nothing is listed."""
    if query.after:
        return "There are no more."
    if query.is_narrowed:
        return "No dead letter matches."
    return "No target is a dead letter: none needs a person."


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _iso(at: object) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else ""
