"""Filters that select targets by site, collector, device or error: options and SQL query.

Every command that filters targets takes its options from here, so a filter is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion, target_arguments
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.db.record.dead_letter_rows import Named, Wanted

_SELECT_HINT = (
    "add DEVICE/TARGET, --reason auth_failed or --all; poller deadletter list shows what there is"
)


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """The filter options of the `deadletter` commands; an empty filter selects every letter."""

    reason: Annotated[
        Reason | None, typer.Option("--reason", help="Only with this reason.", show_choices=True)
    ] = None
    code: Annotated[
        str, typer.Option("--code", metavar="CODE", help="Only with this error code.")
    ] = ""
    collector: Annotated[
        str,
        typer.Option(
            "--collector", help="Only with this collector.", autocompletion=completion.collectors
        ),
    ] = ""
    site: Annotated[
        str, typer.Option("--site", help="Only at this site.", autocompletion=completion.sites)
    ] = ""
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="DEVICE[/TARGET]",
            help="Only of this device.",
            autocompletion=completion.devices,
        ),
    ] = ""

    @property
    def is_empty(self) -> bool:
        return self == LetterFilter()

    def query(self, engine: Engine) -> Wanted:
        """The filter in terms of SQL.

        Raises InvalidInput for an unknown code, NotFound for a device.
        """
        from poller.db.inventory import devices, targets
        from poller.db.record.dead_letter_rows import Wanted

        if self.code and self.code not in error_codes.TABLE:
            raise errors.InvalidInput(
                f'there is no error code "{self.code}"',
                hint="one of " + ", ".join(error_codes.TABLE),
            )

        query = Wanted(
            reason=self.reason.value if self.reason else "",
            code=self.code,
            collector=self.collector,
            site=self.site,
        )
        if not self.device:
            return query

        device, target = target_arguments.split_target(self.device)
        if target:
            return replace(query, ids=[targets.show(engine, device, target).id])

        return replace(query, device=devices.show(engine, device).name)

    def letters(self, engine: Engine, limit: int | None = None) -> list[Named]:
        """The letters that match, the oldest first.

        Raises NotFound if its site or collector is unknown.
        """
        from poller.db.record import dead_letter_rows

        query = self.query(engine)
        found = dead_letter_rows.listing(engine, query, limit)
        if not found:
            self._refuse_unknown_names(engine)

        return found

    def _refuse_unknown_names(self, engine: Engine) -> None:
        """Raise NotFound if the filter's site or collector does not exist."""
        from poller.db.inventory import sites, targets

        if self.site:
            names = [site.name for site in sites.listing(engine)]
            target_arguments.refuse_unknown("site", self.site, names)

        if self.collector and not targets.listing(engine, collector=self.collector, limit=1):
            names = list(bootstrap.services().registry.collectors)
            target_arguments.refuse_unknown(
                "collector", self.collector, names, command="poller collectors"
            )


def selected_letters(
    engine: Engine, words: Sequence[str] | None, letter_filter: LetterFilter, every: bool
) -> list[Named]:
    """The letters of named targets, or those that match a filter, or all of them with `--all`.

    Raises InvalidInput unless exactly one of the three is used, NotFound if no letter is selected.
    """
    selections = [bool(words), not letter_filter.is_empty, every]
    if sum(selections) != 1:
        raise errors.InvalidInput(
            "say which: names, filters or --all, and only one of these", hint=_SELECT_HINT
        )

    if words:
        found = letters_of(engine, list(target_arguments.targets(engine, words)))
    else:
        found = letter_filter.letters(engine)

    if not found:
        raise errors.NotFound("no dead letter matches", hint="poller deadletter list")

    return found


def letters_of(engine: Engine, target_ids: Sequence[int]) -> list[Named]:
    """The letters of these targets."""
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    return dead_letter_rows.listing(engine, Wanted(ids=target_ids))
