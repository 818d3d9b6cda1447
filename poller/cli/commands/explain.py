"""`poller explain CODE`: the meaning of a code of a run, an error or an exit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.presentation import code_explanations

_COLUMNS = (
    column("CODE", "code", fit=Fit.WHOLE),
    column("MEANING", "meaning", fit=Fit.WRAP),
    column("TRY", "try", fit=Fit.WRAP),
)


def command(
    codes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE]...",
            help="For example timeout, P301, 5 or exit-codes. Default: all codes.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain codes of runs, errors and exits."""
    by_code = code_explanations.by_code()

    items: list[dict[str, Any]] = []
    for word in codes or ("runs", "errors", "exit-codes"):
        of_kind = [item for item in by_code.values() if item["kind"] == word.lower()]
        items += of_kind or [code_explanations.find(word, by_code)]

    if codes and len(items) == 1:
        render.record("poller.explain/1", items[0], as_json)
    else:
        render.listing("poller.explain/1", items, _COLUMNS, as_json)
