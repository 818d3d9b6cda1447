"""The options that select devices and targets, the same in every command that takes a filter.

Commands whose own options have these names (`device edit --site NEW`) take `--where` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from poller import errors
from poller.cli.arguments import completion
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter, TargetState

if TYPE_CHECKING:
    from poller.bootstrap import Services

_PANEL = "Filter"

Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="FILTER",
        help=f"Those that match: {target_filter.EXAMPLE}; keys: {', '.join(target_filter.KEYS)}.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The options of a filter. Repeated values match any of them, except tags, which all match."""

    site: Annotated[
        list[str] | None,
        typer.Option(
            "--site",
            help='Only of this site; "" for devices without one.',
            autocompletion=completion.sites,
            rich_help_panel=_PANEL,
        ),
    ] = None
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", help="Only with this tag; with all of several.", rich_help_panel=_PANEL
        ),
    ] = None
    collector: Annotated[
        list[str] | None,
        typer.Option(
            "--collector",
            help="Only with this collector.",
            autocompletion=completion.collectors,
            rich_help_panel=_PANEL,
        ),
    ] = None
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"Only in this state: {', '.join(TargetState)}.",
            autocompletion=completion.states,
            rich_help_panel=_PANEL,
        ),
    ] = None
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--code", metavar="CODE", help="Only with this error code.", rich_help_panel=_PANEL
        ),
    ] = None
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="PATTERN",
            help="Only devices of this name; * and ? are wildcards.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    address: Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            metavar="NETWORK",
            help="Only in this network, as 10.1.0.0/16, or of this host name.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    where: Where = None

    @property
    def is_empty(self) -> bool:
        return self == FilterOptions()

    def parse(self) -> TargetFilter:
        """The filter of the options and of `--where`. Raises InvalidInput, which names the key."""
        given = {
            "site": self.site,
            "tag": self.tag,
            "collector": self.collector,
            "state": self.state,
            "code": self.code,
            "name": self.pattern,
            "address": self.address,
        }
        values = {key: value for key, value in given.items() if value}
        of_options = target_filter.checked(values)
        if self.where is None:
            return of_options
        return target_filter.merge(of_options, parse_where(self.where))

    def target_ids(self, services: Services) -> set[int] | None:
        """The ids of the targets that match, or None for all. Raises InvalidInput, NotFound."""
        from poller.service import target_selection

        if self.is_empty:
            return None
        found = target_selection.select_targets(services, self.parse())
        return {target.id for target in found}


def parse_where(text: str | None) -> TargetFilter:
    """The filter of `--where`. Raises InvalidInput, also for an empty one."""
    return target_filter.parse_nonempty(text or "", "--where")


def refuse_both(names: object, is_filtered: bool, hint: str) -> None:
    """Raise InvalidInput unless the command names what it changes, or filters it: one of both."""
    if bool(names) == is_filtered:
        problem = "not both" if names else "neither is there"
        raise errors.InvalidInput(
            f"say which: names or a filter, {problem}",
            hint=f"for example --where {target_filter.EXAMPLE!r}, or: {hint}",
        )
