"""The list of alerts as texts: those that fire first, with what covers each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.alerts.rule import Severity
from poller.presentation import formatting
from poller.presentation.alerts import alert_sentences
from poller.service.alerts.alerts_by_state import StatePage
from poller.web.pages.alerts import alert_lines, alert_list_query
from poller.web.pages.alerts.alert_lines import AlertLine
from poller.web.pages.alerts.alert_list_query import AlertListQuery, Shown
from poller.web.pages.alerts.alert_page import LENGTHS


@dataclass(frozen=True, slots=True)
class Said:
    """The result of a form: what was done, and what was refused."""

    text: str = ""
    refused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AlertListView:
    """One page of alerts."""

    as_of: str
    query: AlertListQuery
    numbers: str  # `2 firing (1 critical), 3 suppressed`; "" for none
    hidden: str  # `3 suppressed`, if the list leaves them out
    rows: Sequence[AlertLine]
    empty: str
    first: str
    following: str
    said: Said

    @property
    def states(self) -> Sequence[Shown]:
        return list(Shown)

    @property
    def severities(self) -> Sequence[Severity]:
        return list(Severity)

    @property
    def lengths(self) -> Sequence[str]:
        return LENGTHS

    @property
    def has_open(self) -> bool:
        return any(row.is_open for row in self.rows)


def build_view(
    query: AlertListQuery, found: StatePage, numbers: AlertNumbers, now_ms: int, said: Said
) -> AlertListView:
    """Build the view of a page."""
    cursor = alert_list_query.cursor(found.last)
    covered = formatting.exact(numbers.suppressed) if numbers.suppressed else ""
    return AlertListView(
        as_of=formatting.instant(now_ms),
        query=query,
        numbers=alert_sentences.in_words(numbers),
        hidden="" if query.covered else covered,
        rows=alert_lines.lines(found.items),
        empty=_empty(query),
        first=query.url() if query.after else "",
        following=query.url(after=cursor) if cursor else "",
        said=said,
    )


def _empty(query: AlertListQuery) -> str:
    """Why the list is empty."""
    if query.after:
        return "There are no more."
    if query.is_narrowed:
        return "No alert matches."
    if query.state in (Shown.ALL, Shown.RESOLVED):
        return "No alert is on record."
    return "No alert is open." if query.state is Shown.OPEN else f"No alert is {query.state}."
