"""`poller top`: the overview live in a terminal, with the failing devices and why they fail."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.output import render
from poller.domain.fleet import search_words
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.presentation import formatting, health
from poller.presentation.store_check import StoreCheck
from poller.service import command_actor
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.cli.top.top_state import TopData, TopState

#: Rows are read for the tallest screen that is likely.
MOST_ROWS = 100


@expand_options
def command(
    *,
    selection: FilterOptions,
    every_s: Annotated[
        float, typer.Option("--every", min=1, max=60, help="Seconds between two looks.")
    ] = 2.0,
    may_poll: Annotated[
        bool, typer.Option("--write", help="Let the key p poll the marked device.")
    ] = False,
) -> None:
    """Show the fleet live: / filters, f shows failing ones only, Enter says why, q quits."""
    from poller.cli.top.top_state import TopState

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise errors.InvalidInput(
            "poller top needs a terminal", hint="poller status, or poller status --failing --json"
        )
    where = _text_of(selection)
    services = bootstrap.services()
    done = _run(services, TopState(where=where, may_poll=may_poll), every_s)
    for line in done:
        render.note(f"the same as a command: {line}")


def _text_of(selection: FilterOptions) -> str:
    """The filter of the options as one text, as `/` takes it. Raises InvalidInput."""
    typed = search_words.as_filter(selection.where or "")
    others = replace(selection, where=None)
    wanted = typed if others.is_empty else target_filter.merge(typed, others.parse())
    return (selection.where or "") if others.is_empty else target_filter.text(wanted)


def _run(services: Services, state: TopState, every_s: float) -> list[str]:
    """Show the screen until q. Returns the commands that would have done the same."""
    from rich.console import Group
    from rich.live import Live

    from poller.cli.top import top_screen, top_state
    from poller.cli.top.key_reader import KeyReader
    from poller.cli.top.top_state import Wish

    console = render.console()
    commands: list[str] = []
    next_mono = 0.0
    with KeyReader() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            if time.monotonic() >= next_mono and not (state.paused and state.data):
                state = state.with_data(_read(services, state))
                next_mono = time.monotonic() + every_s
            drawn = top_screen.lines(state, console.width, console.height)
            live.update(Group(*drawn), refresh=True)
            state, wish = top_state.pressed(state, keys.wait(0.25))
            if wish is Wish.QUIT:
                return commands
            if wish is Wish.READ:
                next_mono = 0.0
            elif wish is Wish.OPEN:
                state = replace(state, detail=_why(services, state.selected))
                commands.append(f"poller why {shlex.quote(state.selected)}")
            elif wish is Wish.POLL:
                can = state.may_poll
                note = _poll(services, state.selected) if can else "start with --write to poll"
                state = replace(state, note=note)
                if can:
                    commands.append(f"poller poll {shlex.quote(state.selected)}")


def _read(services: Services, state: TopState) -> TopData:
    """Read the overview and the devices of the filter. A wrong filter is a text on the screen."""
    from poller.cli.top.top_state import TopData
    from poller.service.fleet import device_listing, fleet_picture

    view = overview_reader.read(services.redis, services.keys)
    verdict = health.judge(view, StoreCheck(services).check(view))
    actor = command_actor.of_command()
    try:
        wanted = _wanted(state)
        found = device_listing.page(services, actor, wanted, MOST_ROWS)
        picture = fleet_picture.picture(services)
        return TopData(view, verdict, picture, found.devices, more=found.last is not None)
    except (errors.InvalidInput, errors.NotFound, errors.StoreError) as error:
        text = f"{error}; {error.hint}" if error.hint else str(error)
        return TopData(view, verdict, fleet_picture.FleetPicture(), (), text)


def _wanted(state: TopState) -> TargetFilter:
    wanted = search_words.as_filter(state.where)
    if state.only_failing and not wanted.states:
        failing = TargetFilter(states=(TargetState.FAILING,))
        return target_filter.merge(wanted, failing)
    return wanted


def _why(services: Services, device: str) -> tuple[str, ...]:
    """The sentences of `poller why` for the targets of a device."""
    from poller.service import target_explanation

    try:
        found = target_explanation.explain_device(services, device)
    except errors.PollerError as error:
        return (str(error),)
    return tuple(f"{each.facts.name}: {each.sentence}" for each in found)


def _poll(services: Services, device: str) -> str:
    from poller.service.operations import poll_actions, target_choice

    actor = command_actor.of_command()
    try:
        chosen = target_choice.named(services, actor, [(device, None)])
        asked = poll_actions.request(services, actor, chosen, device)
    except errors.PollerError as error:
        return str(error)
    return f"{device} will be polled at once ({formatting.counted(len(asked.ids), 'target')})"
