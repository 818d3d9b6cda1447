"""The address of the list of alerts: filter and page. It is the whole state of the view."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller import errors
from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.rule import Severity
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.alerts.alert_actions import AlertQuery
from poller.service.alerts.alerts_by_state import Place
from poller.web.api.contract import paging

#: Alerts of one page.
LIMIT = 50


class Shown(enum.StrEnum):
    """The states that are listed."""

    OPEN = "open"
    FIRING = "firing"
    PENDING = "pending"
    RESOLVED = "resolved"
    ALL = "all"

    @property
    def states(self) -> Sequence[AlertState]:
        """The states; none selects those that are open."""
        if self is Shown.OPEN:
            return ()
        return tuple(AlertState) if self is Shown.ALL else (AlertState(self.value),)


@dataclass(frozen=True, slots=True)
class AlertListQuery:
    """The parameters of the address. The texts are as they were typed."""

    state: Shown = Shown.OPEN
    severity: str = ""
    site: str = ""
    device: str = ""
    rule: str = ""
    covered: str = ""  # "yes": also those that something covers
    after: str = ""  # the cursor

    @property
    def is_narrowed(self) -> bool:
        """Whether a filter is set, so that an empty list says little."""
        return bool(self.severity or self.site or self.device or self.rule)

    @property
    def wanted(self) -> AlertQuery:
        """The query of the service."""
        return AlertQuery(
            states=self.state.states,
            severities=(Severity(self.severity),) if self.severity else (),
            rules=(self.rule,) if self.rule else (),
            suppressed=None if self.covered else False,
            wanted=self._about,
        )

    @property
    def place(self) -> Place | None:
        """Where the page before ended. Raises InvalidInput for a wrong cursor."""
        key = paging.decode(self.after, str, int)
        if key is None:
            return None
        if key[0] not in list(AlertState):
            raise errors.InvalidInput("after: this is not a page of this list", hint="begin anew")
        return Place(AlertState(key[0]), key[1])

    @property
    def command(self) -> str:
        """The command that lists the same."""
        words = ["poller", "alerts", "list"]
        words += [f"--alert-state={each.value}" for each in self.state.states]
        where = target_filter.text(self._about)
        options = (("severity", self.severity), ("rule", self.rule), ("where", where))
        for option, text in options:
            if text:
                words += [f"--{option}", text]
        if self.covered:
            words.append("--suppressed")
        return shlex.join(words)

    @property
    def _about(self) -> TargetFilter:
        """The filter of what alerts are about."""
        names = (self.device,) if self.device else ()
        sites = (self.site,) if self.site else ()
        return TargetFilter(names=names, sites=sites)

    def url(self, path: str = "alerts", **changes: object) -> str:
        """The address with some parameters changed. Every change goes back to the first page."""
        query = replace(self, **{"after": "", **changes})  # type: ignore[arg-type]
        given = {each.name: getattr(query, each.name) for each in fields(query)}
        if query.state is Shown.OPEN:
            del given["state"]
        kept = {name: str(value) for name, value in given.items() if value}
        return f"{path}?{urlencode(kept)}" if kept else path


def cursor(place: Place | None) -> str:
    """The cursor of the next page; "" on the last one."""
    return (place and paging.encode([place.state.value, place.id])) or ""


Text = Annotated[str, Query(max_length=200)]


def _query(
    state: Shown = Shown.OPEN,
    severity: Severity | Literal[""] = "",
    site: Text = "",
    device: Text = "",
    rule: Text = "",
    covered: Literal["", "yes"] = "",
    after: Annotated[str, Query(max_length=2_000)] = "",
) -> AlertListQuery:
    return AlertListQuery(
        state, str(severity), site.strip(), device.strip(), rule.strip(), covered, after
    )


#: A parameter of a route: FastAPI makes it from the address.
RequestedAlerts = Annotated[AlertListQuery, Depends(_query)]
