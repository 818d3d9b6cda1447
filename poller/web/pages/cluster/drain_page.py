"""The question before a drain of workers as texts: what they have, and who takes over."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poller import errors
from poller.domain.inventory import duration
from poller.domain.record.overview import Overview
from poller.domain.scheduling import queue_routing
from poller.domain.scheduling.worker_drain import QueueCover
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.operations import drain_actions
from poller.service.operations.drain_actions import DrainPlan
from poller.web.pages.device.target_form import FormField

USUAL = duration.format_ms(drain_actions.USUAL_S * 1000)
#: Rows of the table of queues; those without another worker come first.
ROWS = 250
FORCE = "force"
_FIELDS = (
    FormField("for", "For", USUAL, "1m to 30d; then they take work again by themselves"),
    FormField("reason", "Reason", "", "for those who look later"),
)


@dataclass(frozen=True, slots=True)
class CoverRow:
    """A queue of the workers, and who serves it meanwhile."""

    queue: str
    kind: str  # polls or jobs
    others: str
    names: str
    tone: str
    targets: str  # that wait in it; "" for a queue of jobs


@dataclass(frozen=True, slots=True)
class DrainView:
    """The question."""

    as_of: str
    title: str
    names: Sequence[str]
    unfinished: str
    others: str
    left: Sequence[str]
    rows: Sequence[CoverRow]
    more: str
    fields: Sequence[FormField]
    is_forced: bool
    error: str
    hint: str
    command: str


def build_view(
    planned: DrainPlan,
    view: Overview,
    texts: Mapping[str, str] | None = None,
    error: errors.PollerError | None = None,
) -> DrainView:
    """Build the question. A refused form keeps its texts."""
    given = texts or {}
    due = {load.queue: load.due for load in view.loads}
    covers = sorted(planned.covers, key=lambda each: (len(each.others), each.queue))
    names = planned.names
    is_forced = bool(given.get(FORCE))
    hidden = len(covers) - ROWS
    return DrainView(
        as_of=formatting.instant(view.as_of_ms),
        title=f"drain {names[0] if len(names) == 1 else formatting.counted(len(names), 'worker')}",
        names=names,
        unfinished=formatting.counted(planned.unfinished, "batch or job", "batches and jobs"),
        others=_others(planned.others),
        left=planned.left,
        rows=[_row(each, due) for each in covers[:ROWS]],
        more=f"{formatting.exact(hidden)} more queues" if hidden > 0 else "",
        fields=[_filled(each, given, error) for each in _FIELDS],
        is_forced=is_forced,
        error=f"{error.message}." if error else "",
        hint=error.hint if error else "",
        command=_command(names, given, bool(planned.left)),
    )


def _others(number: int) -> str:
    if not number:
        return "no other worker runs"
    return f"{formatting.counted(number, 'other worker')} take{'s' if number == 1 else ''} over"


def _row(cover: QueueCover, due: Mapping[str, int]) -> CoverRow:
    number = len(cover.others)
    return CoverRow(
        queue=cover.queue.removeprefix(queue_routing.QUEUE_PREFIX)
        if cover.is_poll
        else cover.queue,
        kind="polls" if cover.is_poll else "jobs",
        others=formatting.counted(number, "worker") if number else "no worker",
        names=", ".join(cover.others[:3]) + (", …" if number > 3 else ""),
        tone=str(Tone.OK if number else Tone.FAILING),
        targets=formatting.exact(due.get(cover.queue, 0)) if cover.is_poll else "",
    )


def _filled(
    field: FormField, texts: Mapping[str, str], error: errors.PollerError | None
) -> FormField:
    wrong = getattr(error, "field", "").removesuffix("_s") if error else ""
    message = f"{error.message}." if error and wrong == field.name else ""
    return replace(field, text=texts.get(field.name, field.text), error=message)


def _command(names: Sequence[str], texts: Mapping[str, str], is_left: bool) -> str:
    words = ["poller", "workers", "drain", *names, "--for", texts.get("for") or USUAL]
    if texts.get("reason"):
        words += ["--reason", texts["reason"]]
    return shlex.join([*words, "--force"] if is_left else words)
