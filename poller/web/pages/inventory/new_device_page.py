"""The page of a new device: what answered, what test polls read, and what is to be typed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Result
from poller.presentation import formatting
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.history import measure_texts
from poller.service.discovery.address_discovery import AddressResult, Discovery
from poller.service.discovery.unsaved_devices import Trial, TrialPoll
from poller.service.inventory.new_sites import NewSite
from poller.web.pages.device.target_form import FormField
from poller.web.pages.inventory import device_form, new_device_commands, new_device_form
from poller.web.pages.inventory.device_form import Choices
from poller.web.pages.inventory.new_device_commands import Takes
from poller.web.pages.inventory.new_device_form import NewDeviceForm

#: Readings of a test poll that are shown.
READINGS = 8
#: Further credentials that are offered.
MOST_OFFERED = 100
_TONES = {Result.OK: Tone.OK, Result.PARTIAL: Tone.LATE}


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One value that a test poll read."""

    metric: str
    labels: str
    value: str


@dataclass(frozen=True, slots=True)
class TrialLine:
    """The result of one test poll. `more` values are not shown."""

    target: str
    tone: str
    word: str
    text: str
    hint: str
    values: Sequence[ReadLine]
    more: int


@dataclass(frozen=True, slots=True)
class SilentLine:
    """A collector without a suggestion, and the reason."""

    collector: str
    tried: str  # the credentials that were sent
    reason: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps so far: a discovery, test polls, or a try that was refused."""

    found: AddressResult | None = None
    trial: Trial | None = None
    error: errors.PollerError | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """The choices that the fields of the page offer."""

    choices: Choices
    collectors: Sequence[str]
    defaults: Mapping[str, str]  # of intervals, by collector
    by: str  # the collector that is offered first
    takes: Mapping[str, Takes]  # by collector


@dataclass(frozen=True, slots=True)
class NewDeviceView:
    """All of the page."""

    form: NewDeviceForm
    fields: Sequence[FormField]
    offered: Offered
    more_credentials: Sequence[str]  # to try beside the chosen one
    is_cut: bool  # there are further credentials
    steps: Steps
    found_text: str
    silent: Sequence[SilentLine]
    hints: Sequence[str]
    trials: Sequence[TrialLine]
    notes: Sequence[str]
    discover_command: str
    commands: Sequence[str]  # that add the same

    @property
    def has_targets(self) -> bool:
        return bool(self.form.rows or self.form.hand)


def build_view(form: NewDeviceForm, offered: Offered, steps: Steps) -> NewDeviceView:
    """Return the page."""
    fields = device_form.of_new(form.texts, offered.choices)
    error = steps.error
    if error is not None:
        fields = device_form.marked(fields, form.texts, error)
        form = new_device_form.refused(form, error)
    chosen = form.texts["credential"]
    credentials = [name for name in offered.choices.credentials if name != chosen]
    found, trial = steps.found, steps.trial
    silent = [each for each in found.discoveries if not each.suggestions] if found else []
    return NewDeviceView(
        form=form,
        fields=fields,
        offered=offered,
        more_credentials=credentials[:MOST_OFFERED],
        is_cut=len(credentials) > MOST_OFFERED,
        steps=steps,
        found_text=_found_text(found) if found else "",
        silent=[SilentLine(each.collector, ", ".join(each.tried), each.reason) for each in silent],
        hints=_hints(silent, is_all=found is not None and not found.suggestions),
        trials=[_trial_line(each) for each in trial.polls] if trial else (),
        notes=[*trial.notes, *map(_site_note, trial.new_sites)] if trial else (),
        discover_command=new_device_commands.discover(form),
        commands=_commands(form, offered),
    )


def _commands(form: NewDeviceForm, offered: Offered) -> list[str]:
    try:
        targets = new_device_form.target_fields(form)
    except errors.InvalidInput:  # shown beside its target
        return []
    return [
        *new_device_commands.collect(form, targets, offered.takes),
        *new_device_commands.add(form, targets),
    ]


def _found_text(found: AddressResult) -> str:
    number = len(found.suggestions)
    if number:
        return f"{formatting.counted(number, 'target')} suggested at {found.name}."
    if all(each.silent for each in found.discoveries):
        return f"Nothing answers at {found.name}."
    return f"No target is suggested at {found.name}."


def _hints(silent: Iterable[Discovery], is_all: bool) -> list[str]:
    """Return what to do about the errors of credentials or, if nothing answers, of all."""
    wanted = [each.code for each in silent if each.tried or is_all]
    codes = dict.fromkeys(code for code in wanted if code in error_codes.TABLE)
    return [f"{code}: {error_codes.TABLE[code].hint}" for code in codes]


def _site_note(site: NewSite) -> str:
    near = f"; did you mean {site.near}?" if site.near else ""
    return f"makes the new site {site.name}{near}"


def _trial_line(trial: TrialPoll) -> TrialLine:
    result = trial.result
    if result is None:
        tone = Tone.UNKNOWN
        return TrialLine(
            trial.target, str(tone), _word(tone, "not polled"), trial.problem, "", (), 0
        )
    tone = _TONES.get(result.result, Tone.FAILING)
    values: list[ReadLine] = []
    number = 0
    if result.readings is not None:
        number = len(result.readings.values)
        pairs = zip(result.readings.series.series, result.readings.values, strict=True)
        values = [_read_line(*pair) for pair, _ in zip(pairs, range(READINGS), strict=False)]
    parts = []
    if number or not result.code:
        took = formatting.duration(result.duration_ms)
        parts.append(f"{formatting.counted(number, 'value')} in {took}")
    if result.code:
        parts.append(f"{result.code}: {result.message}")
    known = error_codes.TABLE.get(result.code)
    word = _word(tone, str(result.result))
    hint = known.hint if known else ""
    more = number - len(values)
    return TrialLine(trial.target, str(tone), word, "; ".join(parts), hint, values, more)


def _word(tone: Tone, text: str) -> str:
    return f"{GLYPHS[tone]} {text}"


def _read_line(series: Any, value: float) -> ReadLine:
    labels = " ".join(f"{name}={text}" for name, text in series.labels)
    shown = measure_texts.number(value) if math.isfinite(value) else str(value)
    return ReadLine(series.name, labels, shown)
