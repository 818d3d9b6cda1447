"""The first page of a device: why it is polled as it is, its targets, strip, attempts, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.db.inventory.targets import Target
from poller.db.record.event_rows import RecordedEvent
from poller.db.record.run_pages import NamedRun
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import Overview
from poller.domain.why.causes import Cause
from poller.presentation import formatting
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.targets import why_json
from poller.presentation.targets.why_types import WhyItem
from poller.service.device_report import DeviceReport
from poller.web.pages.alerts import alert_lines
from poller.web.pages.alerts.alert_lines import AlertLine
from poller.web.pages.device import action_buttons, device_targets, slot_links
from poller.web.pages.device.action_buttons import ActionButton
from poller.web.pages.device.device_targets import TargetRow, TargetsView
from poller.web.pages.device.slot_links import StripView
from poller.web.pages.fleet import day_strip

_TONES = {
    Result.OK: Tone.OK,
    Result.PARTIAL: Tone.LATE,
    Result.FAILED: Tone.FAILING,
    Result.REFUSED: Tone.FAILING,
}
#: Explanations that are shown, and those with their parts; a device has a few targets.
_MOST_REASONS = 20
_MOST_DETAILED = 5
_MOST_WORKERS = 8
#: Targets that are all explained, also those that are well.
_FEW = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one target is polled as it is. `details` are the parts of the explanation."""

    target: str
    sentence: str
    tone: str
    glyph: str
    also: Sequence[str]
    hint: str
    details: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why the targets are polled as they are. Of many targets those that are well come apart."""

    shown: Sequence[Reason]  # the worst first
    well: Sequence[Reason] = ()
    more: int = 0  # targets that are not shown


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A row of the targets table with its strip and its actions."""

    row: TargetRow
    strip: str
    actions: Sequence[ActionButton]
    may_pause: bool
    may_edit: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the ledger."""

    planned: str
    target: str
    outcome: str
    tone: str
    late: str
    took: str
    error: str
    samples: str
    worker: str
    attempt: str


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event of the device."""

    at: str
    kind: str
    target: str
    message: str


@dataclass(frozen=True, slots=True)
class SummaryView:
    """The first page of a device."""

    reasons: Reasons
    targets: TargetsView
    lines: Sequence[TargetLine]
    strip: StripView
    slot: str  # the selected slot as text, or ""
    attempts: Sequence[Attempt]
    left_out: str  # which attempts of the slot are not shown, or ""
    events: Sequence[EventLine]
    alerts: Sequence[AlertLine]
    actions: Sequence[ActionButton]
    may_pause: bool


def build_view(
    found: DeviceReport,
    actor: Actor,
    overview: Overview | None,
    slot_ms: int | None,
    after: int = 0,
) -> SummaryView:
    """Return the view of a device as it was read; `after`: so many targets come before."""
    name = found.device.name
    targets = device_targets.build_view(name, found.targets, found.state, overview, after)
    strip = slot_links.build_view(found.slots, slot_ms)
    chosen = next((slot.text for slot in strip.slots if slot.chosen), "")
    return SummaryView(
        reasons=_reasons(found),
        targets=targets,
        lines=[_line(found, row, actor) for row in targets.rows],
        strip=strip,
        slot=chosen,
        attempts=[attempt(each) for each in found.attempts],
        left_out=_left_out(found, slot_ms),
        events=[event_line(each) for each in found.events],
        alerts=alert_lines.lines(found.alerts),
        actions=action_buttons.of_device(name, found.state, found.targets, actor),
        may_pause=any(_may_pause(found, each, actor) for each in found.targets),
    )


def _left_out(found: DeviceReport, slot_ms: int | None) -> str:
    """`shown are 118 of 600: those that were not good, and the newest`; "" for all of them."""
    of_slot = next((slot.runs for slot in found.slots if slot.start_ms == slot_ms), 0)
    shown = len(found.attempts)
    if of_slot <= shown:
        return ""
    total = formatting.exact(of_slot)
    return f"shown are {shown} of {total}: those that were not good, and the newest"


def attempt(named: NamedRun) -> Attempt:
    """Return the view of one run."""
    run = named.run
    tone = _TONES.get(run.outcome, Tone.UNKNOWN)
    error = ": ".join(part for part in (run.error_code, run.message) if part)
    late_ms = run.lateness_ms
    return Attempt(
        planned=formatting.instant(run.plan_ms),
        target=named.target,
        outcome=f"{GLYPHS[tone]} {run.outcome.value}",
        tone="" if tone is Tone.OK else str(tone),
        late=formatting.NOT_MEASURED if late_ms is None else formatting.duration(max(0, late_ms)),
        took=formatting.duration(run.duration_ms) if run.started_ms else formatting.NOT_MEASURED,
        error=error,
        samples=formatting.exact(run.samples),
        worker=run.runner or formatting.NOT_MEASURED,
        attempt=str(run.attempt),
    )


def event_line(recorded: RecordedEvent) -> EventLine:
    """Return the view of one event."""
    event = recorded.event
    kind = event.kind.value.replace("_", " ")
    return EventLine(formatting.instant(event.at_ms), kind, event.target, event.message)


def _line(found: DeviceReport, row: TargetRow, actor: Actor) -> TargetLine:
    target = next(each for each in found.targets if each.name == row.name)
    slots = found.slots_of.get(target.id, ())
    return TargetLine(
        row=row,
        strip=day_strip.svg([slot.state for slot in slots]) if slots else "",
        actions=action_buttons.of_target(target, found.state, actor),
        may_pause=_may_pause(found, target, actor),
        may_edit=actor.may(Scope.INVENTORY),
    )


def _may_pause(found: DeviceReport, target: Target, actor: Actor) -> bool:
    return action_buttons.may_pause(target, found.state, actor)


def _reasons(found: DeviceReport) -> Reasons:
    every = [why_json.item(each) for each in found.explanations]
    is_short = len(every) <= _FEW
    first = [each for each in every if is_short or _tone(each) is not Tone.OK]
    well = [each for each in every if not is_short and _tone(each) is Tone.OK]
    return Reasons(
        shown=[
            _reason(each, number < _MOST_DETAILED)
            for number, each in enumerate(first[:_MOST_REASONS])
        ],
        well=[_reason(each, is_detailed=False) for each in well[:_MOST_REASONS]],
        more=len(every) - min(len(first), _MOST_REASONS) - min(len(well), _MOST_REASONS),
    )


def _tone(item: WhyItem) -> Tone:
    if item.cause in _STOPPED:
        return Tone.UNKNOWN
    return Tone.FAILING if item.is_bad else Tone.OK


def _reason(item: WhyItem, is_detailed: bool) -> Reason:
    tone = _tone(item)
    return Reason(
        target=item.target or "",
        sentence=item.sentence,
        tone=str(tone),
        glyph=GLYPHS[tone],
        also=item.also,
        hint=item.hint,
        details=_details(item) if is_detailed else (),
    )


#: Causes of a target that a person stopped, or that is new.
_STOPPED = frozenset((Cause.DISABLED, Cause.PAUSED, Cause.NOT_ON_BOARD, Cause.NEVER_POLLED))


def _details(item: WhyItem) -> list[tuple[str, str]]:
    """The parts of an explanation as pairs of words and text."""
    found = [("next due", f"{step.name}: {step.text}") for step in item.schedule.steps]
    if item.board is not None:
        board = item.board
        found.append(("on the board", f"{board.place}, queue {board.queue}"))
        if board.holder:
            found.append(("held by", f"{board.holder}, attempt {board.attempt}"))
    if item.breaker is not None:
        trips = formatting.counted(item.breaker.trips, "trip")
        found.append(("breaker", f"{item.breaker.state}, {trips}"))
    if item.site.name:
        answering = f"{item.site.neighbours_answering} of {item.site.neighbours}"
        found.append(("site", f"{item.site.name}: {answering} neighbours answer"))
    for worker in item.workers[:_MOST_WORKERS]:
        fits = "may take it" if worker.fits else worker.reason
        found.append(("worker", f"{worker.worker}: {fits}"))
    return found
