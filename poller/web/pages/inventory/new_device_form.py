"""The form of a new device with its first targets: suggested ones, and one that is typed by hand.

The form carries all that was typed and found, so that every step works without scripts and without
a state in the server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from poller import errors
from poller.domain.inventory import naming
from poller.service.discovery.address_discovery import AddressResult, Suggested
from poller.service.discovery.unsaved_devices import MOST_TARGETS
from poller.service.inventory_forms import csv_form
from poller.web.access.form_values import FormValues
from poller.web.pages.device import target_form
from poller.web.pages.device.target_form import FormField, TargetForm
from poller.web.pages.inventory import device_form, new_target_form

#: The fields of a device that are sent when they are not empty.
DEVICE = ("name", "address", "site", "credential", "tags", "parent", "requires")
#: The marks of the targets that are tested and added, and the place of the one by hand.
CHOSEN = "target"
BY_HAND = "hand"
_HAND = "hand."
_ROW_FIELDS = ("collector", "reason", "name", "interval", "credential", "options")


@dataclass(frozen=True, slots=True)
class Row:
    """A suggested target: what was found, and what a person may change before it is stored."""

    place: int
    collector: str
    reason: str
    name: str
    interval: str
    credential: str
    options: str  # words of the form key=value
    is_chosen: bool
    error: str = ""
    wrong: str = ""  # the name of the field that the error is about

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the fields, by the names that the form sends them under."""
        return {f"t.{self.place}.{name}": getattr(self, name) for name in _ROW_FIELDS}


@dataclass(frozen=True, slots=True)
class NewDeviceForm:
    """All that was typed and found."""

    texts: Mapping[str, str]  # of the device, by field
    tried: Sequence[str] = ()  # further credentials
    rows: Sequence[Row] = ()
    facts: Sequence[tuple[str, str]] = ()  # what the device says about itself
    hand: TargetForm | None = None
    has_hand: bool = False  # the target by hand is chosen

    @property
    def credentials(self) -> list[str]:
        """The credentials that a discovery tries, in order."""
        named = dict.fromkeys([self.texts["credential"], *self.tried])
        return [name for name in named if name]

    @property
    def chosen(self) -> list[Row]:
        return [row for row in self.rows if row.is_chosen]


def read(form: FormValues, hand: TargetForm | None) -> NewDeviceForm:
    """Return what a page sent. `hand` is the empty form of the target by hand."""
    texts = {name: form.one(name) for name in DEVICE}
    marks = form.all(CHOSEN)
    number = min(form.number("rows") or 0, MOST_TARGETS)
    rows = [_row(form, place, str(place) in marks) for place in range(number)]
    facts = [(key, text) for key, _, text in (each.partition("=") for each in form.all("fact"))]
    typed = hand
    if hand is not None and hand.collector == form.one("collector"):
        typed = _changed(hand, partial(_as_sent, form))
    return NewDeviceForm(texts, tuple(form.all("try")), rows, facts, typed, BY_HAND in marks)


def hand_form(
    collector: str, described: Sequence[Mapping[str, Any]], credentials: Sequence[str]
) -> TargetForm:
    """Return the empty form of a target by hand, with names of its own in the form."""
    form = new_target_form.build("", collector, described, credentials)
    return _changed(form, _with_prefix)


def with_found(form: NewDeviceForm, found: AddressResult) -> NewDeviceForm:
    """Return the form with what answered. An empty name becomes what the device calls itself."""
    suggested = found.suggestions[:MOST_TARGETS]
    texts = dict(form.texts)
    working = [each.credential for each in suggested if each.credential]
    if working and texts["credential"] not in working:
        texts["credential"] = working[0]
    if not texts["name"]:
        texts["name"] = next(filter(None, (usable_name(each.name) for each in suggested)), "")
    facts: dict[str, str] = {}
    for each in suggested:
        facts |= {key: text for key, text in each.facts.items() if key not in facts}
    rows = _suggested_rows(suggested, texts["credential"])
    tried = () if working else form.tried
    return replace(form, texts=texts, tried=tried, rows=rows, facts=list(facts.items()))


def usable_name(text: str) -> str:
    """Return a device's name for itself as a name of the inventory; "" if it makes none."""
    kept = re.sub(r"[\s/\\]+", "-", text).strip("-")
    try:
        return naming.checked_name(kept)
    except errors.InvalidInput:
        return ""


def device_fields(form: NewDeviceForm) -> dict[str, Any]:
    """Return the fields of the device as the service takes them. No name means its address."""
    fields = {name: device_form.value_of(name, text) for name, text in form.texts.items() if text}
    fields["address"] = form.texts["address"]
    fields.setdefault("name", form.texts["address"])
    return fields


def target_fields(form: NewDeviceForm) -> list[dict[str, Any]]:
    """Return the fields of the chosen targets. Raises InvalidInput, which names the target."""
    found = []
    for number, row in enumerate(form.chosen):
        with errors.inside(f"targets.{number}"):
            found.append(_fields(row, form.texts["credential"]))
    if form.hand is not None and form.has_hand:
        plain = _changed(form.hand, _without_prefix)
        texts = {each.name: each.text for each in plain.fields}
        found.append(new_target_form.fields(plain, texts))
    return found


def refused(form: NewDeviceForm, error: errors.PollerError) -> NewDeviceForm:
    """Return the form with an error beside the target that it names."""
    part, _, rest = str(getattr(error, "field", "")).partition(".")
    number, _, named = rest.partition(".")
    if part != "targets" or not number.isdigit():
        return form
    chosen = form.chosen
    if int(number) < len(chosen):
        place = chosen[int(number)].place
        wrong = named.partition(".")[0]
        rows = [
            replace(row, error=str(error), wrong=wrong) if row.place == place else row
            for row in form.rows
        ]
        return replace(form, rows=rows)
    if form.hand is None:
        return form
    plain = _changed(form.hand, _without_prefix)
    marked = target_form.refused(plain, {}, str(error), error.hint, named)
    return replace(form, hand=_changed(marked, _with_prefix))


def option_words(options: Mapping[str, Any]) -> str:
    """Return options as they are typed: `port=1161 modules=system,if_mib`."""
    return shlex.join(f"{key}={target_form.text_of(value)}" for key, value in options.items())


def _as_sent(form: FormValues, field: FormField) -> FormField:
    return replace(field, text=form.one(field.name).replace("\r\n", "\n"))


def _row(form: FormValues, place: int, is_chosen: bool) -> Row:
    texts = {name: form.one(f"t.{place}.{name}") for name in _ROW_FIELDS}
    return Row(place, is_chosen=is_chosen, **texts)


def _suggested_rows(suggested: Sequence[Suggested], credential: str) -> list[Row]:
    """Return a row for each suggestion; those that used a login are chosen, else the first."""
    has_login = any(each.credential for each in suggested)
    rows = []
    numbers: dict[str, int] = {}
    for place, each in enumerate(suggested):
        number = numbers[each.collector] = numbers.get(each.collector, 0) + 1
        row = Row(
            place=place,
            collector=each.collector,
            reason=each.reason,
            name=each.collector if number == 1 else f"{each.collector}{number}",
            interval="",
            credential="" if each.credential == credential else each.credential,
            options=option_words(each.options),
            is_chosen=bool(each.credential) if has_login else place == 0,
        )
        rows.append(row)
    return rows


def _fields(row: Row, credential: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"collector": row.collector}
    if row.name and row.name != row.collector:
        fields["name"] = row.name
    if row.interval:
        fields["interval"] = row.interval
    if row.credential and row.credential != credential:
        fields["credential"] = row.credential
    try:
        return {**fields, "options": csv_form.options_cell(row.options) or {}}
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message, error.cause, error.hint, field="options") from None


def _changed(form: TargetForm, change: Callable[[FormField], FormField]) -> TargetForm:
    """Return a form with each of its fields changed."""
    schedule = [change(each) for each in form.schedule]
    return replace(form, schedule=schedule, options=[change(each) for each in form.options])


def _with_prefix(field: FormField) -> FormField:
    return replace(field, name=_HAND + field.name)


def _without_prefix(field: FormField) -> FormField:
    return replace(field, name=field.name.removeprefix(_HAND))
