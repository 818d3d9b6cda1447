"""`poller device show`: a device, the state of its targets, why, and when they are polled next."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from poller import bootstrap
from poller.cli.arguments import schedule_options
from poller.cli.arguments.target_arguments import device_argument
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item
from poller.cli.output.render import Json
from poller.domain.why.causes import Cause
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Causes that are a state of their own: the last poll says nothing about the target of now.
_OWN_STATES = {
    Cause.DISABLED: "disabled",
    Cause.PAUSED: "paused",
    Cause.SITE_DARK: "site dark",
    Cause.DEAD_LETTER: "dead letter",
    Cause.NOT_ON_BOARD: "not scheduled yet",
}
#: Columns that a narrow screen leaves out, the highest first: the state says whether it is polled.
_SPARE = {"ENABLED": 5, "ID": 4, "TIMEOUT": 3, "POLICY": 2}
#: Targets that are all explained, also those that are well.
_FEW = 3


def show(name: Annotated[str, device_argument("NAME")], as_json: Json = False) -> None:
    """Show a device and its targets: their states, why, and their next polls."""
    from poller.service.inventory import device_actions

    services = bootstrap.services()
    inventory_database.database(services)
    found, of_device = device_actions.show(services, command_actor.of_command(), name)
    device = asdict(found)
    its_targets = schedule_options.described(of_device)
    summaries = _summaries(services, name)
    for target in its_targets:
        target.update(summaries.get(target["id"], {}))

    if as_json:
        render.document("poller.device/1", {**device, "targets": its_targets})
        return

    states = Counter(_state(target) for target in its_targets)
    text = ", ".join(f"{number} {state}" for state, number in states.items() if state)
    render.record("poller.device/1", {**device, "state": text}, as_json=False)
    render.echo("")
    _explain(name, list(summaries.values()))
    render.listing("poller.target.list/1", its_targets, _columns(its_targets), as_json=False)

    for target in its_targets:
        if target.get("why"):
            render.paragraph(f"{target['name']}: {target['why']}")


def _summaries(services: Services, device: str) -> dict[int, dict[str, Any]]:
    """State, sentence and next poll of each target, the worst first; also while Redis is away."""
    from poller.presentation.targets import why_json
    from poller.service import target_explanation

    explained = target_explanation.explain_device(services, device, with_runs=False)
    summaries = {}
    for each in explained:
        summaries[each.facts.target_id] = why_json.summary(each).model_dump()
    return summaries


def _explain(device: str, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Print the sentence of each target; of many only those of targets that are not well."""
    is_short = len(summaries) <= _FEW
    shown = [each for each in summaries if is_short or each["cause"] != Cause.HEALTHY]
    for each in shown:
        render.paragraph(f"{each['target'] or device}: {each['sentence']}")
    well = len(summaries) - len(shown)
    if well:
        other = "other " if shown else ""
        render.echo(f"{formatting.counted(well, f'{other}target')} polled as planned")
    if summaries:
        render.echo("")


def _columns(items: Sequence[Item]) -> list[Column]:
    """The columns of the targets. On a screen the state comes first, and empty ones are left out.

    In a pipe columns stay where scripts know them.
    """
    from poller.cli.commands.target import COLUMNS

    state = Column("STATE", _state, fit=Fit.WHOLE)
    following = Column("NEXT POLL", _next_poll, fit=Fit.WHOLE)
    target, *others = COLUMNS[1:]
    if not sys.stdout.isatty():
        return [target, *others, state, following]
    filled = [
        replace(each, minimum=len(each.title), spare=_SPARE.get(each.title, each.spare))
        for each in others
        if any(each.text(item) for item in items)
    ]
    return [target, state, following, *filled]


def _state(item: Item) -> str:
    """`failing`, `paused`; empty while nothing is known."""
    cause = item.get("cause")
    known = {state.value: word for state, word in _OWN_STATES.items()}
    return known.get(str(cause)) or str(item.get("state") or "")


def _next_poll(item: Item) -> str:
    """`in 14 s`, `12 s overdue`, `in flight`; empty for a target that is not polled."""
    if item.get("place") == "in_flight":
        return "in flight"
    seconds = item.get("next_poll_in_seconds")
    if seconds is None or item.get("cause") in (Cause.DISABLED, Cause.SITE_DARK):
        return ""
    age = formatting.age(abs(seconds) * 1000)
    return f"in {age}" if seconds >= 0 else f"{age} overdue"
