"""Maintenance as texts: what is covered until when, and the form of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller import errors
from poller.domain.inventory import duration, target_filter
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.alerts.maintenance_actions import MaintenancePage, ShownMaintenance
from poller.web.pages.alerts import alert_lines
from poller.web.pages.device.target_form import FormField

_TONES = {"active": Tone.LATE, "waiting": Tone.UNKNOWN, "over": Tone.OK}
_FIELDS = (
    FormField("where", "Devices", "", f"a filter, such as {target_filter.EXAMPLE}"),
    FormField("rule", "Rule", "", "empty: every rule"),
    FormField("reason", "Reason", "", "for those who look at it later", is_required=True),
    FormField("start", "Begins", "", "empty: now; or such as 2h, or 2027-01-31T22:00Z"),
    FormField("end", "Ends", "", "such as 4h, or 2027-02-01T06:00Z", is_required=True),
)
_RECURRENCE = (
    FormField("cron", "Recurs", "", "minute hour day month weekday, such as 0 2 * * sun"),
    FormField("time_zone", "Time zone", "", "empty: UTC; or such as Europe/Berlin"),
    FormField("length", "Length", "", "of one recurrence, such as 2h"),
)
#: The names of the fields, as the body of the API has them.
NAMES = tuple(each.name for each in (*_FIELDS, *_RECURRENCE))


@dataclass(frozen=True, slots=True)
class MaintenanceLine:
    """One maintenance."""

    id: int
    tone: str
    state: str
    where: str
    what: str  # what else is covered: a rule, or one alert
    path: str  # the devices or alerts that it is about, below the root
    reason: str
    until: str
    following: str
    recurs: str
    end: str
    by: str
    may_end: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A form that was refused: its texts, and why."""

    texts: Mapping[str, str]
    error: errors.PollerError | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceView:
    """One page of maintenances, and the form."""

    as_of: str
    lines: Sequence[MaintenanceLine]
    over: bool
    first: str
    following: str
    said: str
    error: str
    hint: str
    fields: Sequence[FormField]
    recurrence: Sequence[FormField]

    @property
    def is_recurrence_open(self) -> bool:
        return any(each.text or each.error for each in self.recurrence)


def build_view(
    found: MaintenancePage,
    over: bool,
    pages: tuple[str, str],
    now_ms: int,
    said: str = "",
    refused: Refused | None = None,
) -> MaintenanceView:
    """Build the view of a page. `pages` are the addresses of the first and the next page."""
    texts = refused.texts if refused else {}
    error = refused.error if refused else None
    return MaintenanceView(
        as_of=formatting.instant(now_ms),
        lines=[_line(each) for each in found.items],
        over=over,
        first=pages[0],
        following=pages[1],
        said=said,
        error=f"{error.message}." if error else "",
        hint=error.hint if error else "",
        fields=[_filled(each, texts, error) for each in _FIELDS],
        recurrence=[_filled(each, texts, error) for each in _RECURRENCE],
    )


def _line(of: ShownMaintenance) -> MaintenanceLine:
    recurs = ""
    if of.cron:
        length = duration.format_ms(of.length_seconds * 1000)
        recurs = f"{of.cron} {of.time_zone}, {length} each"
    silenced = of.alert.partition("|")[0]
    rule = f"rule {of.rule}" if of.rule else ""
    return MaintenanceLine(
        id=of.id,
        tone=str(_TONES[of.state]),
        state=of.state,
        where=of.where,
        what=f"one alert of the rule {silenced}" if silenced else rule,
        path=_path(of.where, silenced or of.rule),
        reason=of.reason,
        until=alert_lines.instant(of.active_until),
        following=alert_lines.instant(of.next_start),
        recurs=recurs,
        end=alert_lines.instant(of.end),
        by=of.created_by,
        may_end=of.state != "over",
    )


def _path(where: str, rule: str) -> str:
    """The devices of a filter; else the alerts of a rule, with those that something covers."""
    if where:
        return f"devices?{urlencode({'where': where})}"
    return f"alerts?{urlencode({'rule': rule, 'covered': 'yes'})}" if rule else ""


def _filled(
    field: FormField, texts: Mapping[str, str], error: errors.PollerError | None
) -> FormField:
    """A field with the text that was typed, and the error if it is about this field."""
    is_wrong = error is not None and error.message.startswith(f"{field.name}:")
    return FormField(
        name=field.name,
        label=field.label,
        text=texts.get(field.name, ""),
        help=field.help,
        error=f"{error.message}." if error is not None and is_wrong else "",
        is_required=field.is_required,
    )
