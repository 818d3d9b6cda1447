"""One step of an act on many devices as texts: its values, the plan, how far it is, the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet.act_runs import ActRun
from poller.service.fleet.fleet_plan import Action, FleetDone, FleetPlan
from poller.service.selection.match_count import Count
from poller.web.api.contract.bulk_bodies import SAMPLES
from poller.web.pages.device.target_form import FormField
from poller.web.pages.fleet import bulk_form


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of a person, and its instant."""

    action: Action
    wanted: TargetFilter
    now_ms: int
    texts: Mapping[str, str] = field(default_factory=dict)  # the values of the act, as typed

    @property
    def where(self) -> str:
        return target_filter.text(self.wanted)


@dataclass(frozen=True, slots=True)
class BulkView:
    """One step. `step` is values, plan, run or done."""

    as_of: str
    step: str
    title: str
    where: str
    action: str = ""
    fields: Sequence[FormField] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    explanation: str = ""
    number: int = 0
    is_typed: bool = False
    samples: Sequence[str] = ()
    more: int = 0
    notes: Sequence[str] = ()
    command: str = ""
    dry_run: str = ""
    refused: errors.PollerError | None = None
    text: str = ""  # the result
    done: int = 0
    ticket: str = ""
    undo: str = ""
    error: str = ""  # why it ended early


def values_view(
    asked: Asked,
    count: Count,
    credentials: Sequence[str],
    error: errors.InvalidInput | None = None,
) -> BulkView:
    """The form of the values that the act needs."""
    bound = "" if count.is_exact else "at least "
    counted = f"{bound}{formatting.counted(count.number, 'device')}"
    return BulkView(
        as_of=formatting.instant(asked.now_ms),
        step="values",
        title=bulk_form.TITLES[asked.action].format(counted),
        where=asked.where,
        action=asked.action,
        fields=bulk_form.fields(asked.action, asked.texts, credentials, error),
        explanation=bulk_form.explanation(asked.action),
        refused=error,
    )


def plan_view(
    asked: Asked, plan: FleetPlan, undo: str = "", refused: errors.PollerError | None = None
) -> BulkView:
    """The question: how many, which, and what cannot be taken back."""
    command = dry_run = ""
    if asked.action is not Action.UNDO:
        given = (asked.action, asked.wanted, asked.texts)
        command, dry_run = bulk_form.command(*given), bulk_form.command(*given, dry_run=True)
    return BulkView(
        as_of=formatting.instant(asked.now_ms),
        step="plan",
        title=f"{plan.phrase}?",
        where=asked.where,
        action=asked.action,
        texts=asked.texts,
        number=len(plan.names),
        is_typed=plan.is_typed,
        samples=plan.names[:SAMPLES],
        more=max(0, len(plan.names) - SAMPLES),
        notes=plan.notes,
        command=command,
        dry_run=dry_run if dry_run != command else "",
        refused=refused,
        undo=undo,
    )


def done_view(asked: Asked, done: FleetDone) -> BulkView:
    """The result, with a link to the polls or a way back."""
    return BulkView(
        as_of=formatting.instant(asked.now_ms),
        step="done",
        title="Done",
        where=asked.where,
        text=done.text,
        ticket=done.ticket,
        undo=done.undo,
    )


def run_view(run: ActRun, now_ms: int) -> BulkView:
    """How far a large act is, or its result."""
    base = BulkView(
        as_of=formatting.instant(now_ms),
        step="run",
        title=run.phrase,
        where=run.where,
        number=run.total,
        done=run.done,
        text=run.text,
        ticket=run.ticket,
        undo=run.undo,
        error=run.error,
    )
    if run.is_lost:
        text = "the web process that did it has ended; do it again, and what is done stays done"
        return _ended(base, text)
    if not run.is_over:
        return base
    return _ended(base, run.error)


def _ended(view: BulkView, error: str) -> BulkView:
    title = "Ended early" if error else "Done"
    return replace(view, step="done", title=title, error=error)
